"""Conditions known at run time: what they skip, and the results at every level."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from glowmcu.driver import Compilation, compile_network
from glowmcu.instr.evaluate import evaluate, is_skipped
from glowmcu.options import Options
from glowmcu.verify.host import HostLibrary
from glowmcu.verify.levels import verify_compilation
from glowmcu.verify.sanitize import run_sanitized

Array = np.ndarray[Any, Any]
X = np.random.default_rng(5).normal(size=(4, 8)).astype(np.float32)
THEN = "then_branch = g () => (float[4, 8] a) { s = Softmax(x) a = Mul(s, x) }"
ELSE = "else_branch = h () => (float[4, 8] b) { u = CumSum(x, k) b = CumSum(u, k) }"
UNTIL = (
    "body = g (int64 i, bool go, float[4, 8] v) => (bool more, float[4, 8] w) "
    "{ w = CumSum(v, k) t = ReduceMax<keepdims = 0>(w) more = Less(t, limit) }"
)


def model(text: str) -> onnx.ModelProto:
    proto = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> graph {text}')
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.array(1, np.int64), "k"))
    return proto


IF = model(f"(float[4, 8] x, bool c) => (float[4, 8] y) {{ y = If(c) <{THEN}, {ELSE}> }}")
NESTED = model(
    "(float[4, 8] x, bool c, bool d) => (float[4, 8] y) { y = If(c) <then_branch = g () => "
    f"(float[4, 8] p) {{ e = CumSum(x, k) q = If(d) <{THEN}, {ELSE}> p = Sub(q, e) }}, "
    "else_branch = h () => (float[4, 8] n) { n = Softmax<axis = 0>(x) }> }"
)
LOOP = model(
    "(float[4, 8] x, float limit) => (float[4, 8] y) <int64 m = {6}> "
    f"{{ y = Loop<{UNTIL}>(m, , x) }}"
)
SHARED = model(
    "(float[4, 8] x, bool c) => (float[4, 8] y, float[4, 8] z) "
    "{ s = Softmax(x) u = CumSum(x, k) y = Where(c, s, u) z = CumSum(s, k) }"
)
TRUE, FALSE = np.array(True), np.array(False)


def compiled(proto: onnx.ModelProto, name: str, **options: Any) -> Compilation:
    return compile_network(proto, Options(name=name, **options))


def executed(compilation: Compilation, feeds: dict[str, Array]) -> list[str]:
    """Return the kernels that run."""
    found: list[str] = []

    def watch(_index: int, instruction: Any, memory: Any) -> None:
        if not is_skipped(instruction, memory):
            found.append(instruction.kernel.symbol.removeprefix("gm_"))

    evaluate(compilation.function, feeds, watch=watch)
    return found


def check(proto: onnx.ModelProto, compilation: Compilation, feeds: dict[str, Array]) -> None:
    """Compare numpy on the planned arena and the host's C with ONNX Runtime."""
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    names = [o.name for o in session.get_outputs()]
    plan = compilation.plan
    levels = (
        evaluate(compilation.function, feeds, plan.offsets, plan.size),
        HostLibrary(compilation.unit).run(feeds),
    )
    for name, right in zip(names, session.run(None, feeds), strict=True):
        for level in levels:
            np.testing.assert_allclose(level[name], right, rtol=1e-5, atol=1e-6)


@pytest.mark.cc
@pytest.mark.parametrize("condition", [TRUE, FALSE])
def test_one_branch_runs(condition: Array) -> None:
    compilation = compiled(IF, "branch")
    feeds = {"x": X, "c": condition}
    check(IF, compilation, feeds)
    assert ("softmax_f32" in executed(compilation, feeds)) == bool(condition)
    assert ("running_sum" in executed(compilation, feeds)) != bool(condition)


@pytest.mark.cc
@pytest.mark.parametrize("d", [TRUE, FALSE])
@pytest.mark.parametrize("c", [TRUE, FALSE])
def test_branches_in_branches(c: Array, d: Array) -> None:
    compilation = compiled(NESTED, "nested")
    feeds = {"x": X, "c": c, "d": d}
    check(NESTED, compilation, feeds)
    if not c:
        assert "running_sum" not in executed(compilation, feeds)


@pytest.mark.cc
@pytest.mark.parametrize(("limit", "runs"), [(0.0, 1), (50.0, 3), (1e9, 6)])
def test_loops_end_early(limit: float, runs: int) -> None:
    compilation = compiled(LOOP, "repeated")
    feeds = {"x": np.abs(X), "limit": np.array(limit, np.float32)}
    check(LOOP, compilation, feeds)
    assert executed(compilation, feeds).count("running_sum") == runs


@pytest.mark.cc
def test_conditions_are_clean_under_sanitizers() -> None:
    feeds = {"x": X, "c": TRUE, "d": FALSE}
    compilation = compiled(NESTED, "nested")
    (found,) = run_sanitized(compilation.unit, [feeds])
    np.testing.assert_array_equal(found["y"], HostLibrary(compilation.unit).run(feeds)["y"])


def test_what_others_need_is_never_skipped() -> None:
    compilation = compiled(SHARED, "shared")
    guarded = [type(i).__name__ for i in compilation.function.instructions if i.guard]
    assert guarded == ["RunningSum"]


def test_conditions_are_computed_first() -> None:
    text = "(float[4, 8] x, float h) => (float[4, 8] y) { t = ReduceMean<keepdims = 0>(x) "
    proto = model(f"{text} c = Less(t, h) y = If(c) <{THEN}, {ELSE}> }}")
    function = compiled(proto, "first").function
    later = function.instructions[2:-1]
    assert [i.guard is not None for i in function.instructions[:2]] == [False, False]
    assert all(i.guard is not None for i in later)


@pytest.mark.cc
def test_self_test_and_verification_leave_out_what_is_skipped() -> None:
    compilation = compiled(IF, "tested", self_test=True)
    samples = {"x": np.stack([X, X]), "c": np.array([True, False])}
    assert all(c.passed for c in verify_compilation(compilation, samples))


@pytest.mark.qemu
@pytest.mark.usefixtures("qemu")
def test_control_flow_on_a_board() -> None:
    compilation = compiled(IF, "branch", target="cortex-m4")
    samples = {"x": np.stack([X, X]), "c": np.array([True, False])}
    assert all(c.passed for c in verify_compilation(compilation, samples, board="mps2-an386"))
