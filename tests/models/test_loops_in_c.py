"""Loop and Scan as loops in C: every level against ONNX Runtime, dead memory poisoned."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator

from glowmcu.driver import Compilation, compile_network
from glowmcu.errors import UnsupportedError
from glowmcu.graph.evaluate import evaluate as evaluate_graph
from glowmcu.instr.evaluate import evaluate
from glowmcu.instr.loop import loop_spans
from glowmcu.memory.lifetime import dead_ranges
from glowmcu.options import Options
from glowmcu.verify.extent import cropped
from glowmcu.verify.host import HostLibrary

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
