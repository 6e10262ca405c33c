"""Loop and Scan against ONNX Runtime, through the whole import."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import glowmcu.ops  # noqa: F401  registers the importers
from glowmcu.errors import InvalidModelError, UnsupportedError
from glowmcu.frontend import load
from glowmcu.frontend.nesting import MAX_LOOPS
from glowmcu.graph.evaluate import evaluate
from glowmcu.ops.loop import Loop
from glowmcu.verify.extent import cropped

Array = np.ndarray[Any, Any]
STEP = "body = g (int64 i, bool c, float[2] v) => (bool d, float[2] w{outputs}) {{ {text} }}"


def model(text: str, opset: int = 17) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> graph {text}')


def check(proto: onnx.ModelProto, **feeds: Array) -> None:
    imported = load(proto)
    expected = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, feeds)
    found = cropped(evaluate(imported.graph, feeds), imported.extents)
    names = [output.name for output in proto.graph.output]
    for name, right in zip(names, expected, strict=True):
        assert found[name].dtype == right.dtype
        np.testing.assert_allclose(found[name], right, rtol=1e-5)


def loop(text: str, trips: str = "m", condition: str = "", outputs: str = "") -> onnx.ModelProto:
    """Return a Loop that carries x; `text` makes d and w, and s where that is a scan output."""
    results = ("y", "z")[: 1 + bool(outputs)]
    body = STEP.format(outputs=f", {outputs}" if outputs else "", text=text)
    shapes = ", ".join(("float[2] y", "float[N, 2] z")[: len(results)])
    return model(
        f"(float[2] x, float limit) => ({shapes}) <int64 m = {{5}}, bool never = {{0}}> "
        f"{{ {', '.join(results)} = Loop<{body}>({trips}, {condition}, x) }}"
    )


X = np.array([1.5, -2.0], np.float32)
LIMIT = np.array(9.0, np.float32)
ADD = "d = Identity(c) f = Cast<to = 1>(i) w = Add(v, f)"
UNTIL = "w = Add(v, v) t = ReduceSum<keepdims = 0>(w) a = Abs(t) d = Less(a, limit)"


def test_trip_count() -> None:
    check(loop(ADD), x=X, limit=LIMIT)


def test_scan_outputs() -> None:
    check(loop(f"{ADD} s = Mul(v, v)", outputs="float[2] s"), x=X, limit=LIMIT)


def test_no_iterations() -> None:
    check(loop(f"{ADD} s = Mul(v, v)", condition="never", outputs="float[2] s"), x=X, limit=LIMIT)


def test_condition_known_at_compile_time_ends_the_loop() -> None:
    text = "three = Constant<value_int = 3>() d = Less(i, three) w = Add(v, v)"
    check(loop(text, trips=""), x=X, limit=LIMIT)


@pytest.mark.parametrize("limit", [0.0, 2.0, 9.0, 1e9])
def test_condition_known_at_run_time_stops_the_changes(limit: float) -> None:
    check(loop(UNTIL), x=X, limit=np.array(limit, np.float32))


def test_condition_known_at_run_time_needs_a_bound() -> None:
    with pytest.raises(UnsupportedError, match="there is no bound on the iterations"):
        load(loop(UNTIL, trips=""))


@pytest.mark.parametrize("limit", [0.0, 2.0, 9.0, 1e9])
def test_number_of_rows_known_at_run_time_is_reported(limit: float) -> None:
    graph = load(loop(f"{UNTIL} s = Mul(v, v)", outputs="float[2] s")).graph
    assert graph.output_names == ("y", "z", "z_shape")
    check(
        loop(f"{UNTIL} s = Mul(v, v)", outputs="float[2] s"),
        x=X,
        limit=np.array(limit, np.float32),
    )


def test_endless_loops_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="its iterations have more than 4096 nodes"):
        load(loop("d = Identity(c) w = Identity(v)", trips=""))


def test_trip_count_known_at_run_time_is_refused() -> None:
    text = STEP.format(outputs="", text=ADD)
    proto = model(f"(float[2] x, int64 n) => (float[2] y) {{ y = Loop<{text}>(n, , x) }}")
    with pytest.raises(
        UnsupportedError, match="the trip count is computed at run time, and"
    ) as raised:
        load(proto)
    assert raised.value.problems[0].needs == ("n",)


def test_nested_loops_see_what_is_around() -> None:
    inner = "body = h (int64 j, bool e, float[2] p) => (bool e2, float[2] q) {{ {} }}".format(
        "e2 = Identity(e) o = Mul(p, x) q = Add(o, v)"
    )
    text = f"two = Constant<value_int = 2>() d = Identity(c) w = Loop<{inner}>(two, , v)"
    check(loop(text), x=X, limit=LIMIT)


SCAN = (
    "body = g (float[2] v, float[2] x) => (float[2] w, float[2] y) { w = Add(v, x) y = Mul(w, w) }"
)


@pytest.mark.parametrize(
    ("attributes", "shape", "result"),
    [
        ("", (4, 2), (4, 2)),
        ("scan_input_directions = [1]", (4, 2), (4, 2)),
        ("scan_output_directions = [1]", (4, 2), (4, 2)),
        ("scan_input_axes = [1]", (2, 4), (4, 2)),
        ("scan_output_axes = [1]", (4, 2), (2, 4)),
        ("scan_input_axes = [-1], scan_output_axes = [-1]", (2, 4), (2, 4)),
    ],
)
def test_scan(attributes: str, shape: tuple[int, ...], result: tuple[int, ...]) -> None:
    options = ", ".join(filter(None, ["num_scan_inputs = 1", attributes, SCAN]))
    proto = model(
        f"(float[2] s, float[{shape[0]}, {shape[1]}] x) => "
        f"(float[2] t, float[{result[0]}, {result[1]}] y) {{ t, y = Scan<{options}>(s, x) }}"
    )
    check(proto, s=X, x=np.arange(8, dtype=np.float32).reshape(shape))


def test_body_that_does_not_fit() -> None:
    with pytest.raises(InvalidModelError, match="the body of Scan has 2 inputs and 2 outputs"):
        load(
            model(
                "(float[2] s, float[4, 2] x) => (float[2] t) "
                f"{{ t = Scan<num_scan_inputs = 1, {SCAN}>(s, x) }}"
            )
        )


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (f"Loop<{STEP.format(outputs='', text=ADD)}>(m, , )", "the body of Loop has 3 inputs"),
        (f"Scan<num_scan_inputs = 99999999999, {SCAN}>(x, x)", "99999999999 of its 2 inputs"),
        (f"Scan<num_scan_inputs = 1, {SCAN}>(x, )", "the body of Scan has 2 inputs"),
        *(
            (f"Scan<num_scan_inputs = 1, {name} = [0, 1], {SCAN}>(x, r)", f"{name} has 2 numbers")
            for name in ("scan_input_axes", "scan_input_directions", "scan_output_axes")
        ),
        (
            f"Scan<num_scan_inputs = 1, scan_input_directions = [2], {SCAN}>(x, r)",
            r"scan_input_directions \[2\] has numbers other than 0 and 1",
        ),
        (
            f"Loop<{STEP.format(outputs='', text=ADD)}>(two, , x)",
            "the trip count has 2 elements instead of one",
        ),
        (
            f"Loop<{STEP.format(outputs='', text=ADD)}>(many, , x)",
            "its trip count of 2147483648 is no bound(.|\n)*counted in 32 bits",
        ),
    ],
)
def test_wrong_inputs(node: str, message: str) -> None:
    proto = model(
        "(float[2] x, float[4, 2] r) => (float[2] y) "
        "<int64 m = {5}, int64[2] two = {5, 6}, int64 many = {2147483648}> "
        f"{{ y{', z' * node.count('r)')} = {node} }}"
    )
    with pytest.raises((UnsupportedError, InvalidModelError), match=message):
        load(proto)


def nested(depth: int) -> onnx.ModelProto:
    """Return so many loops inside of one another."""
    text = "r1 = Sin(v1)"
    for level in range(1, depth + 1):
        outer = f"r{level + 1} = Loop<" if level < depth else "y = Loop<"
        state = f"v{level + 1}" if level < depth else "x"
        text = (
            f"{outer}body = g{level} (int64 i{level}, bool c{level}, float[2] v{level}) => "
            f"(bool d{level}, float[2] r{level}) {{ d{level} = Identity(c{level}) {text} }}"
            f">(m, , {state})"
        )
    return model(f"(float[2] x) => (float[2] y) <int64 m = {{100}}> {{ {text} }}")


def in_functions(proto: onnx.ModelProto, calls: int) -> onnx.ModelProto:
    """Return a model whose nodes are those of a function, called by one, and so on."""
    body = [*proto.graph.node]
    constant = onnx.helper.make_node("Constant", [], ["m"], value=proto.graph.initializer[0])
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("own", 1)]
    for number in range(calls):
        nodes = [constant, *body]
        proto.functions.append(
            onnx.helper.make_function("own", f"f{number}", ["x"], ["y"], nodes, opsets)
        )
        body = [onnx.helper.make_node(f"f{number}", ["x"], ["y"], domain="own")]
    del proto.graph.node[:]
    proto.graph.node.extend(body)
    proto.opset_import.append(opsets[1])
    return proto


@pytest.mark.parametrize("calls", [0, 2])
def test_loops_may_be_nested_so_deep(calls: int) -> None:
    (looped,) = (n for n in load(in_functions(nested(MAX_LOOPS), calls)).graph.nodes())
    assert isinstance(looped.op, Loop)
    with pytest.raises(UnsupportedError, match=f"nested {MAX_LOOPS + 1} deep"):
        load(in_functions(nested(MAX_LOOPS + 1), calls))


def test_what_fails_in_a_body_is_told_once_and_by_its_own_name() -> None:
    text = "d = Identity(c) u = Add(v, x) w = nowhere.Strange(u)"
    proto = loop(text)
    proto.opset_import.append(onnx.helper.make_opsetid("nowhere", 1))
    with pytest.raises(UnsupportedError, match="Strange") as raised:
        load(proto)
    assert len(raised.value.problems) == 1


GROW = "d = Identity(c) w = Concat<axis = 0>(v, x)"


def test_values_that_grow_are_unrolled() -> None:
    body = f"body = g (int64 i, bool c, v) => (bool d, w) {{ {GROW} }}"
    proto = model(f"(float[2] x) => (float[12] y) <int64 m = {{5}}> {{ y = Loop<{body}>(m, , x) }}")
    check(proto, x=X)


def test_values_that_grow_for_long_are_refused() -> None:
    body = f"body = g (int64 i, bool c, v) => (bool d, w) {{ {GROW} }}"
    proto = model(f"(float[2] x) => (y) <int64 m = {{5000}}> {{ y = Loop<{body}>(m, , x) }}")
    with pytest.raises(UnsupportedError, match="a value that it hands on changes its type"):
        load(proto)


@pytest.mark.parametrize(
    ("count", "loops"), [(14, 0), (20, 1)], ids=["weights of each turn", "too many turns"]
)
def test_weights_selected_by_the_number_stay_in_flash(count: int, loops: int) -> None:
    text = "d = Identity(c) k = Gather(W, i) u = MatMul(v, k) t = Tanh(u) s = Add(t, v) w = Sin(s)"
    body = f"body = g (int64 i, bool c, float[8] v) => (bool d, float[8] w) {{ {text} }}"
    proto = model(
        f"(float[8] x) => (float[8] y) <int64 m = {{{count}}}> {{ y = Loop<{body}>(m, , x) }}"
    )
    weights = np.random.default_rng(1).normal(size=(count, 8, 8)).astype(np.float32) / 8
    proto.graph.initializer.append(onnx.numpy_helper.from_array(weights, "W"))
    found = [n for n in load(proto).graph.nodes() if isinstance(n.op, Loop)]
    assert len(found) == loops
    check(proto, x=np.linspace(-1, 1, 8, dtype=np.float32))


def test_a_body_that_must_be_unrolled_names_the_inputs_to_fix() -> None:
    text = """(bool go, float[1] x) => (float[1] y) <int64 m = {3}, float[5] t = {1, 2, 3, 4, 5}> {
        y = Loop(m, go, x) <body = g (int64 i, bool c, float[1] v) => (bool d, float[1] w) {
            one = Constant<value_ints = [1]>()
            zero = Constant<value_ints = [0]>()
            from = Unsqueeze(i, zero)
            to = Add(from, one)
            part = Slice(t, from, to)
            w = Add(v, part)
            d = Identity(c)
        }>
    }"""
    proto = model(text)
    with pytest.raises(UnsupportedError, match="starts is computed at run time") as raised:
        load(proto)
    assert raised.value.problems[0].needs == ("go",)
    assert "--fix-input go=" in raised.value.problems[0].hint
    found = load(proto, {}, {"go": True})
    x = np.ones(1, np.float32)
    assert evaluate(found.graph, {"x": x})["y"].tolist() == [7.0]
