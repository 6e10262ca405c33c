"""Loop and Scan as loops in C: every level against ONNX Runtime, dead memory poisoned."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator

from glowmcu.core.types import dequantize, quantize
from glowmcu.driver import Compilation, compile_network
from glowmcu.errors import UnsupportedError
from glowmcu.graph.evaluate import evaluate as evaluate_graph
from glowmcu.instr.evaluate import evaluate
from glowmcu.instr.loop import loop_spans
from glowmcu.memory.lifetime import dead_ranges
from glowmcu.options import Options
from glowmcu.targets.board import board
from glowmcu.verify.extent import cropped
from glowmcu.verify.host import HostLibrary
from glowmcu.verify.levels import verify_compilation
from glowmcu.verify.profile import profile_on_board
from glowmcu.verify.sanitize import run_sanitized

Array = np.ndarray[Any, Any]
Feeds = dict[str, Array]
STRICT = (
    "-std=c99 -O1 -ffp-contract=off -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion "
    "-Wshadow -Wdouble-promotion -Werror"
).split()
X = np.array([1.5, -2.0, 0.25], np.float32)
Y = np.array([0.5, 3.0, -1.25], np.float32)


def model(text: str, opset: int = 17) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> graph {text}')


def compiled(proto: onnx.ModelProto, loops: int = 1, **options: Any) -> Compilation:
    """Compile; there must be so many loops in C."""
    found = compile_network(proto, Options(name="looped", **options))
    assert len(loop_spans(found.function.instructions)) == loops
    assert found.unit.files["looped.c"].count("for (int32_t n") == loops
    return found


def on_planned_arena(compilation: Compilation, feeds: Feeds) -> Feeds:
    """Return what the numpy instructions give where memory that holds nothing is overwritten."""
    function, plan = compilation.function, compilation.plan

    def poison(index: int, arena: Array) -> None:
        for start, stop in dead_ranges(function, plan, index):
            arena[start:stop] = 0xA5

    return evaluate(function, feeds, plan.offsets, plan.size, before=poison)


def check(proto: onnx.ModelProto, compilation: Compilation, **feeds: Array) -> None:
    """Compare the graph, the instructions on their arena and the C with ONNX Runtime."""
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    names = [o.name for o in session.get_outputs()]
    levels = (
        evaluate_graph(compilation.graph, feeds),
        on_planned_arena(compilation, feeds),
        HostLibrary(compilation.unit, flags=tuple(STRICT)).run(feeds),
    )
    for name, right in zip(names, session.run(None, feeds), strict=True):
        for level in levels:
            found = cropped(level, compilation.unit.extents)[name]
            assert found.shape == right.shape
            np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-6)


def both(proto: onnx.ModelProto, loops: int = 1, **feeds: Array) -> Compilation:
    """Check a network as it is and where no memory is shared."""
    for share in (False, True):
        compilation = compiled(proto, loops, share=share)
        check(proto, compilation, **feeds)
    return compilation


def loop(
    text: str,
    states: str = "float[3] a, float[3] b",
    results: str = "float[3] c, float[3] d",
    outputs: str = "float[3] p, float[3] q",
    trips: str = "m",
    first: str = "x, y",
    count: int = 101,
    condition: str = "",
    inputs: str = "float[3] x, float[3] y",
) -> onnx.ModelProto:
    names = ", ".join(re.findall(r"\] (\w+)", outputs))
    body = f"body = g (int64 i, bool go, {states}) => (bool more, {results}) {{ {text} }}"
    return model(
        f"({inputs}) => ({outputs}) <int64 m = {{{count}}}> "
        f"{{ {names} = Loop<{body}>({trips}, {condition}, {first}) }}"
    )


SMALLER = "h = Constant<value_float = 0.75>()"
GO = "more = Identity(go)"
BODIES = {
    "swap": f"{GO} c = Identity(b) d = Identity(a)",
    "swap and change": f"{GO} {SMALLER} t = Mul(a, h) c = Identity(b) d = Add(t, b)",
    "one passes through": f"{GO} {SMALLER} t = Mul(b, h) d = Add(t, a) c = Identity(a)",
    "both in place": f"{GO} {SMALLER} t = Mul(b, h) d = Sin(t) c = Cos(a)",
    "an outer value": f"{GO} c = Identity(y) d = Sin(a)",
    "outer values in each turn": f"{GO} s = Add(a, x) c = Sin(s) t = Mul(b, y) d = Sub(t, x)",
    "the same value twice": f"{GO} c = Sin(b) d = Identity(c)",
    "crosswise": f"{GO} {SMALLER} s = Add(a, b) c = Mul(s, h) t = Sub(b, a) d = Sin(t)",
    "a constant": f"{GO} d = Sin(a) c = Constant<value_floats = [1.0, 2.0, 3.0]>()",
    "by its number": f"{GO} f = Cast<to = 1>(i) c = Add(b, f) t = Sub(a, f) d = Cos(t)",
    "softmax": f"{GO} c = Softmax(b) s = Softmax(a) d = Add(s, b)",
}


@pytest.mark.cc
@pytest.mark.parametrize("name", BODIES)
def test_carried_values(name: str) -> None:
    proto = loop(BODIES[name])
    both(proto, x=X, y=Y)


@pytest.mark.cc
def test_three_values_in_a_ring_odd_times() -> None:
    both(
        loop(
            f"{GO} d = Identity(b) e = Identity(c) f = Identity(a)",
            states="float[3] a, float[3] b, float[3] c",
            results="float[3] d, float[3] e, float[3] f",
            outputs="float[3] p, float[3] q, float[3] r",
            first="x, y, x",
            count=100,
        ),
        x=X,
        y=Y,
    )


@pytest.mark.cc
@pytest.mark.parametrize("trips", [0, 1, 2, 7, 101, 1000, -3])
def test_trip_count_at_run_time(trips: int) -> None:
    proto = loop(
        f"{BODIES['swap and change']} r = Mul(c, d)",
        results="float[3] c, float[3] d, float[3] r",
        outputs="float[3] p, float[3] q, float[N, 3] rows",
        trips="n",
        inputs="float[3] x, float[3] y, int64 k",
    )
    node = onnx.helper.make_node("Min", ["k", "m"], ["n"])
    proto.graph.node.insert(0, node)
    both(proto, x=X, y=Y, k=np.array(trips, np.int64))


UNTIL = "c = Add(a, b) d = Identity(b) t = ReduceMax<keepdims = 0>(c) more = Less(t, limit)"


@pytest.mark.cc
@pytest.mark.parametrize("limit", [-100.0, 5.0, 60.0, 1e9])
@pytest.mark.parametrize("start", [True, False])
def test_condition_at_run_time(limit: float, start: bool) -> None:
    proto = loop(
        f"{UNTIL} r = Mul(c, d)",
        results="float[3] c, float[3] d, float[3] r",
        outputs="float[3] p, float[3] q, float[N, 3] rows",
        condition="start",
        inputs="float[3] x, float[3] y, float limit, bool start",
    )
    both(proto, x=X, y=Y, limit=np.array(limit, np.float32), start=np.array(start))


@pytest.mark.cc
@pytest.mark.parametrize(("trips", "limit"), [(0, 9.0), (3, 1e9), (101, 9.0), (190, 1e9)])
def test_trip_count_and_condition_at_run_time(trips: int, limit: float) -> None:
    proto = loop(UNTIL, trips="n", inputs="float[3] x, float[3] y, float limit, int64 k")
    proto.graph.node.insert(0, onnx.helper.make_node("Min", ["k", "m"], ["n"]))
    both(proto, x=X, y=Y, limit=np.array(limit, np.float32), k=np.array(trips, np.int64))


def test_an_unbounded_trip_count_is_refused() -> None:
    proto = loop(UNTIL, trips="n", inputs="float[3] x, float[3] y, float limit, int64 n")
    with pytest.raises(UnsupportedError, match="nothing bounds it") as raised:
        compile_network(proto, Options())
    assert raised.value.problems[0].needs == ("n",)
    assert "--fix-input n=" in str(raised.value)


INNER = (
    "body = h (int64 j, bool go2, float[3] u) => (bool more2, float[3] v, float[3] w) {{ "
    "more2 = Identity(go2) s = Add(u, a) v = {}(s) w = Mul(v, x) }}"
)


@pytest.mark.cc
@pytest.mark.parametrize("function", ["Sin", "Softmax"])
def test_loops_in_loops(function: str) -> None:
    text = (
        f"{GO} k = Constant<value_int = 30>() "
        f"c, rows = Loop<{INNER.format(function)}>(k, , b) "
        "d = ReduceMean<axes = [0], keepdims = 0>(rows)"
    )
    both(loop(text), 2, x=X, y=Y)


@pytest.mark.cc
@pytest.mark.parametrize("flag", [True, False])
def test_a_choice_in_a_loop(flag: bool) -> None:
    text = (
        f"{GO} z = Constant<value_float = 0.0>() t = ReduceSum<keepdims = 0>(a) "
        "pos = Greater(t, z) o = And(pos, flag) c = If(o) "
        "<then_branch = p1 () => (float[3] r1) { r1 = Softmax(a) }, "
        "else_branch = p2 () => (float[3] r2) { s2 = Softmax(b) r2 = Sub(s2, a) }> d = Sin(a)"
    )
    proto = loop(text, inputs="float[3] x, float[3] y, bool flag")
    compilation = both(proto, x=X, y=Y, flag=np.array(flag))
    guarded = [i for i in compilation.function.instructions if i.guard]
    assert guarded and all(i.loop is not None for i in guarded)


@pytest.mark.cc
@pytest.mark.parametrize("flag", [True, False])
def test_a_loop_in_a_choice_runs_only_if_it_is_chosen(flag: bool) -> None:
    body = (
        "body = g (int64 i, bool go, float[3] a) => (bool more, float[3] c) "
        "{ more = Identity(go) s = Softmax(a) c = Add(s, y) }"
    )
    proto = model(
        "(float[3] x, float[3] y, bool flag) => (float[3] p) <int64 m = {50}> { p = If(flag) "
        f"<then_branch = p1 () => (float[3] r1) {{ r1 = Loop<{body}>(m, , x) }}, "
        "else_branch = p2 () => (float[3] r2) { r2 = Sin(y) }> }"
    )
    feeds = {"x": X, "y": Y, "flag": np.array(flag)}
    compilation = both(proto, **feeds)
    ran: list[str] = []
    evaluate(compilation.function, feeds, watch=lambda _n, i, _m: ran.append(type(i).__name__))
    assert (ran.count("Softmax") or ran.count("SoftmaxF32")) == (50 if flag else 0)


SCAN = (
    "body = g (float[3] s, float[3] e, float[2] o) => (float[3] t, float[3] r) "
    "{ u = Add(s, e) t = Softmax(u) k = ReduceSum<keepdims = 0>(o) r = Mul(t, k) }"
)


@pytest.mark.cc
@pytest.mark.parametrize(
    ("attributes", "shape", "result"),
    [
        ("", (50, 3), (50, 3)),
        ("scan_input_directions = [1, 0]", (50, 3), (50, 3)),
        ("scan_output_directions = [1]", (50, 3), (50, 3)),
        ("scan_input_axes = [1, 0], scan_output_axes = [1]", (3, 50), (3, 50)),
        (
            "scan_input_axes = [-1, 0], scan_output_axes = [-1], scan_output_directions = [1]",
            (3, 50),
            (3, 50),
        ),
    ],
)
def test_scan(attributes: str, shape: tuple[int, ...], result: tuple[int, ...]) -> None:
    options = ", ".join(filter(None, ["num_scan_inputs = 2", attributes, SCAN]))
    proto = model(
        f"(float[3] x, float[{shape[0]}, {shape[1]}] e, float[50, 2] o) => "
        f"(float[3] p, float[{result[0]}, {result[1]}] q) {{ p, q = Scan<{options}>(x, e, o) }}"
    )
    random = np.random.default_rng(3)
    feeds = {
        "x": X,
        "e": random.normal(size=shape).astype(np.float32),
        "o": random.normal(size=(50, 2)).astype(np.float32),
    }
    both(proto, **feeds)


@pytest.mark.cc
def test_scan_in_batches() -> None:
    options = f"num_scan_inputs = 2, {SCAN}"
    proto = model(
        "(float[2, 3] x, float[2, 50, 3] e, float[2, 50, 2] o) => "
        f"(float[2, 3] p, float[2, 50, 3] q) {{ p, q = Scan<{options}>(, x, e, o) }}",
        opset=8,
    )
    compilation = compiled(proto, 2)
    random = np.random.default_rng(3)
    shapes = {"x": (2, 3), "e": (2, 50, 3), "o": (2, 50, 2)}
    feeds = {n: random.normal(size=s).astype(np.float32) for n, s in shapes.items()}
    found = HostLibrary(compilation.unit).run(feeds)
    single = model(
        "(float[3] x, float[50, 3] e, float[50, 2] o) => "
        f"(float[3] p, float[50, 3] q) {{ p, q = Scan<{options}>(x, e, o) }}"
    )
    for sample in range(2):
        right = ReferenceEvaluator(single).run(None, {n: a[sample] for n, a in feeds.items()})
        for name, array in zip("pq", right, strict=True):
            np.testing.assert_allclose(found[name][sample], array, rtol=1e-5, atol=1e-6)


def recurrent(steps: int, outputs: str = "hl") -> onnx.ModelProto:
    """Return an LSTM that an exporter wrote as a Scan of simple operators, as a recurrence has."""
    random = np.random.default_rng(4)
    proto = model(
        f"(float[{steps}, 1, 8] x) => (float[1, 4] hl, float[{steps}, 1, 4] ys) "
        "<float[1, 4] zero = {0, 0, 0, 0}> { hl, cl, ys = Scan<num_scan_inputs = 1, body = b "
        "(float[1, 4] h0, float[1, 4] c0, float[1, 8] e) => (float[1, 4] h1, float[1, 4] c1, "
        "float[1, 4] y) { xw = MatMul(e, W) hr = MatMul(h0, R) s = Add(xw, hr) g = Add(s, B) "
        "gi, go, gf, gc = Split<axis = 1>(g) i = Sigmoid(gi) o = Sigmoid(go) f = Sigmoid(gf) "
        "k = Tanh(gc) fc = Mul(f, c0) ik = Mul(i, k) c1 = Add(fc, ik) t = Tanh(c1) h1 = Mul(o, t) "
        "y = Identity(h1) }>(zero, zero, x) }"
    )
    for name, shape in (("W", (8, 16)), ("R", (4, 16)), ("B", (16,))):
        data = random.normal(size=shape).astype(np.float32) * 0.4
        proto.graph.initializer.append(onnx.numpy_helper.from_array(data, name))
    wanted = [o for o in proto.graph.output if o.name in outputs.split()]
    del proto.graph.output[:]
    proto.graph.output.extend(wanted)
    return proto


def sequences(count: int, steps: int) -> Array:
    return np.random.default_rng(6).normal(size=(count, steps, 1, 8)).astype(np.float32)


@pytest.mark.cc
def test_five_hundred_steps_are_little_code() -> None:
    proto = recurrent(500)
    start = time.perf_counter()
    compilation = both(proto, x=sequences(1, 500)[0])
    assert time.perf_counter() - start < 30  # with ONNX Runtime, gcc and both levels of numpy
    report = compilation.unit.report
    assert compilation.unit.files["looped.c"].count("\n") < 250
    assert report["code_bytes_estimate"] < 8000
    assert report["macs"] == 500 * (8 * 16 + 4 * 16)
    # the sequence, and nothing that grows with it: what is not read is not stacked
    assert compilation.plan.size < 500 * 8 * 4 + 1000


def test_costs_count_iterations() -> None:
    layers = compiled(recurrent(100)).unit.report["layers"]
    dense = [layer for layer in layers if layer["op"] == "DenseF32"]
    assert [layer["turns"] for layer in dense] == [100, 100]
    assert sum(layer["macs"] for layer in dense) == 100 * (8 * 16 + 4 * 16)


@pytest.mark.cc
def test_levels_agree_layer_by_layer() -> None:
    compilation = compiled(recurrent(70, "hl ys"), self_test=True)
    found = verify_compilation(compilation, {"x": sequences(2, 70)})
    assert all(c.passed for c in found)
    assert any("DenseF32" in name for c in found for name in c.layers)


@pytest.mark.cc
@pytest.mark.parametrize("name", ["swap and change", "outer values in each turn"])
def test_loops_are_clean_under_sanitizers(name: str) -> None:
    feeds = {"x": X, "y": Y}
    compilation = compiled(loop(BODIES[name]))
    (found,) = run_sanitized(compilation.unit, [feeds])
    right = HostLibrary(compilation.unit).run(feeds)
    assert all(np.array_equal(found[n], right[n]) for n in right)


def test_a_network_with_a_loop_can_be_quantized_around_it() -> None:
    proto = recurrent(70)
    random = np.random.default_rng(9)
    for name, shape in (("V", (4, 16)), ("U", (16, 4))):
        data = random.normal(size=shape).astype(np.float32)
        proto.graph.initializer.append(onnx.numpy_helper.from_array(data, name))
    for node in onnx.parser.parse_graph(
        "g (float[1, 4] hl) => (float[1, 4] z) { v = MatMul(hl, V) r = Relu(v) z = MatMul(r, U) }"
    ).node:
        proto.graph.node.append(node)
    del proto.graph.output[:]
    proto.graph.output.append(
        onnx.helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, [1, 4])
    )
    samples = {"x": sequences(8, 70)}
    options = Options(name="looped", quantize="int8")
    compilation = compile_network(proto, options, samples)
    names = [type(i).__name__ for i in compilation.function.instructions]
    assert "LoopHead" in names and names.count("DenseS8") == 2
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    x = samples["x"][0]
    (right,) = session.run(None, {"x": x})
    (given,) = compilation.function.inputs
    stored = x if given.type.quant is None else quantize(x, given.type.quant, given.type.dtype)
    found = on_planned_arena(compilation, {"x": stored})["z"]
    (output,) = compilation.function.outputs
    real = dequantize(found, output.type.quant) if output.type.quant else found
    np.testing.assert_allclose(real, right, atol=0.1 * float(np.abs(right).max()))


@pytest.mark.qemu
@pytest.mark.usefixtures("qemu")
def test_loops_on_a_board() -> None:
    compilation = compiled(recurrent(70, "hl ys"), target="cortex-m4")
    found = verify_compilation(compilation, {"x": sequences(2, 70)}, board="mps2-an386")
    assert all(c.passed for c in found)
    run = profile_on_board(compilation.unit, board("mps2-an386"), {"x": sequences(1, 70)[0]})
    counts = {layer.op: layer.instructions for layer in run.layers}
    assert counts["DenseF32"] > 70 * (8 * 16 + 4 * 16) / 4


def everything() -> onnx.ModelProto:
    """Return loops within one another and in a choice, that end early, with what they stack."""
    inner = (
        "body = h (int64 j, bool go2, float[3] u) => (bool more2, float[3] v, float[3] w) { "
        "s = Add(u, a) v = Sin(s) w = Mul(v, x) r2 = ReduceSum<keepdims = 0>(v) "
        "more2 = Less(r2, limit) }"
    )
    body = (
        "body = g (int64 i, bool go, float[3] a) => (bool more, float[3] c, float[3] row) { "
        f"k = Min(i, m) t, rows = Loop<{inner}>(k, , a) c = Softmax(t) row = Sub(c, y) "
        "r = ReduceMax<keepdims = 0>(row) more = Less(r, limit) }"
    )
    return model(
        "(float[3] x, float[3] y, float limit, bool flag, bool first, int64 n) => "
        "(float[3] p, float[N, 3] q) <int64 m = {90}> { most = Min(n, m) "
        f"l, q = Loop<{body}>(most, first, x) p = If(flag) <then_branch = p1 () => (float[3] r1) "
        f"{{ r1, q1 = Loop<{body}>(most, first, y) }}, "
        "else_branch = p2 () => (float[3] r2) { r2 = Sin(l) }> }"
    )


@pytest.mark.cc
@pytest.mark.parametrize("flag", [True, False])
def test_everything_at_once(flag: bool) -> None:
    for limit in (0.0, 2.5, 1e9):
        both(
            everything(),
            4,
            x=X,
            y=Y,
            limit=np.array(limit, np.float32),
            flag=np.array(flag),
            first=np.array(True),
            n=np.array(60, np.int64),
        )


COMPILERS = ("gcc -std=c99", "gcc -std=c99 -m32", "clang -std=c99")


@pytest.mark.cc
@pytest.mark.parametrize("command", COMPILERS)
def test_compilers_have_nothing_to_say(command: str, tmp_path: Path) -> None:
    unit = compiled(everything(), 4).unit
    unit.write(tmp_path)
    done = subprocess.run(
        [*command.split(), *STRICT[1:], "-O2", "-I.", "-c", *unit.sources],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[:3000]


@pytest.mark.cc
def test_the_layout_is_clang_formats(tmp_path: Path) -> None:
    if shutil.which("clang-format") is None:
        pytest.skip("clang-format is not installed")
    text = compiled(everything(), 4).unit.files["looped.c"]
    style = Path(__file__).resolve().parents[2] / ".clang-format"
    done = subprocess.run(
        ["clang-format", f"--style=file:{style}"],
        input=text,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == text


@pytest.mark.cc
def test_long_loops_on_constants_are_left_to_the_device() -> None:
    body = (
        "body = g (int64 i, bool go, int32[3] a) => (bool more, int32[3] c) { "
        "more = Identity(go) b = Add(a, a) c = Sub(b, k) }"
    )
    text = (
        "(int32[3] x) => (int32[3] p) <int64 m = {{{}}}, int32[3] k = {{1, 2, 4}}> "
        f"{{{{ a = Loop<{body.replace('{', '{{').replace('}', '}}')}>(m, , k) p = Add(a, x) }}}}"
    )
    feeds = {"x": np.array([5, 6, 7], np.int32)}
    assert not loop_spans(compile_network(model(text.format(9)), Options()).function.instructions)
    start = time.perf_counter()
    proto = model(text.format(1 << 30))
    compilation = compiled(proto)
    assert time.perf_counter() - start < 20
    short = model(text.format(11_000))
    check(short, compiled(short), **feeds)
    assert compilation.function.instructions[1].turns == 1 << 30
