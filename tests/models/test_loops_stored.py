"""Loops in integer networks and over images: states stay as layers want them, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from glowmcu.core.types import Array
from glowmcu.driver import Compilation, compile_network
from glowmcu.instr.evaluate import evaluate
from glowmcu.options import Options
from glowmcu.quantize.write import to_onnx
from glowmcu.verify.host import HostLibrary

STEPS, WIDTH = 80, 16
RANDOM = np.random.default_rng(0)
CELL = (
    "w = DequantizeLinear(Wq, sw, z8) r = DequantizeLinear(Rq, sw, z8) {xd} {hd} "
    "xw = MatMul(xd, w) {xwd} hr = MatMul(hd, r) {hrd} g = Add(xwd, hrd) {gd} "
    "t = Tanh(gd) {h1}"
)


def pair(source: str, result: str, scale: str, zero: str) -> str:
    return (
        f"{result}_q = QuantizeLinear({source}, {scale}, {zero}) "
        f"{result} = DequantizeLinear({result}_q, {scale}, {zero})"
    )


def cell(zero: str, element: str) -> str:
    places = {
        "xd": (element, "sx"),
        "hd": ("h0", "sh"),
        "xwd": ("xw", "sg"),
        "hrd": ("hr", "sg"),
        "gd": ("g", "sg"),
        "h1": ("t", "sh"),
    }
    return CELL.format(**{n: pair(s, n, scale, zero) for n, (s, scale) in places.items()})


def integer_network(kind: str, zero: str) -> onnx.ModelProto:
    """Return a recurrent network with QuantizeLinear and DequantizeLinear around every layer."""
    tensors = f"float[1, {WIDTH}]"
    if kind == "scan":
        inputs, results = "", f"{tensors} hl, float[{STEPS}, 1, {WIDTH}] ys"
        node = (
            f"hl, ys = Scan<num_scan_inputs = 1, body = b ({tensors} h0, {tensors} e) => "
            f"({tensors} h1, {tensors} y) {{ {cell(zero, 'e')} y = Identity(h1) }}>(first, xq)"
        )
    else:
        inputs, results = ", int64 k", f"{tensors} hl"
        node = (
            f"n = Min(k, most) hl = Loop<body = b (int64 i, bool go, {tensors} h0) => "
            f"(bool more, {tensors} h1) {{ more = Identity(go) e = Gather<axis = 0>(xq, i) "
            f"{cell(zero, 'e')} }}>(n, , first)"
        )
    proto = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> graph (float[{STEPS}, 1, {WIDTH}] x{inputs}) => '
        f"({results}) <float sw = {{0.001}}, float sx = {{0.03}}, float sh = {{0.0078125}}, "
        f"float sg = {{0.05}}, int8 z8 = {{0}}, uint8 zu = {{131}}, int64 most = {{{STEPS}}}> "
        f"{{ {pair('x', 'xq', 'sx', zero)} {node} }}"
    )
    for name in ("Wq", "Rq"):
        data = RANDOM.integers(-127, 127, (WIDTH, WIDTH)).astype(np.int8)
        proto.graph.initializer.append(onnx.numpy_helper.from_array(data, name))
    first = RANDOM.uniform(-0.9, 0.9, (1, WIDTH)).astype(np.float32)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(first, "first"))
    return proto


def reference(proto: onnx.ModelProto, feeds: dict[str, Array]) -> dict[str, Array]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options)
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(None, feeds), strict=True))


def check(compilation: Compilation, feeds: dict[str, Array], right: dict[str, Array]) -> None:
    """The C gives the bits of numpy, both almost what ONNX Runtime gives."""
    plan = compilation.plan
    numpy = evaluate(compilation.function, feeds, plan.offsets, plan.size)
    found = HostLibrary(compilation.unit).run(feeds)
    for name, expected in right.items():
        np.testing.assert_array_equal(found[name], numpy[name])
        apart = np.abs(found[name] - expected)
        assert apart.max() < 1.2 * 0.05
        assert np.mean(apart > 0.0079) < 0.05


@pytest.mark.cc
@pytest.mark.parametrize("zero", ["z8", "zu"])
def test_integer_states_and_rows(zero: str) -> None:
    proto = integer_network("scan", zero)
    compilation = compile_network(proto, Options(name="stored"))
    inside = [i for i in compilation.function.instructions if i.loop is not None]
    assert [type(i).__name__ for i in inside].count("DenseS8") == 2
    assert not any(b.type.dtype.is_float for i in inside for b in (*i.inputs(), *i.outputs()))
    feeds: dict[str, Any] = {"x": RANDOM.normal(size=(STEPS, 1, WIDTH)).astype(np.float32)}
    check(compilation, feeds, reference(proto, feeds))


@pytest.mark.cc
@pytest.mark.parametrize("trips", [0, 1, 50, 900])
def test_without_a_turn_the_first_value_is_not_rounded(trips: int) -> None:
    proto = integer_network("loop", "z8")
    compilation = compile_network(proto, Options(name="stored"))
    feeds: dict[str, Any] = {
        "x": RANDOM.normal(size=(STEPS, 1, WIDTH)).astype(np.float32),
        "k": np.array(trips, np.int64),
    }
    right = reference(proto, feeds)
    check(compilation, feeds, right)
    if trips == 0:
        found = evaluate(compilation.function, feeds)["hl"]
        np.testing.assert_array_equal(found, right["hl"])


@pytest.mark.cc
@pytest.mark.parametrize("target", ["host", "cortex-m4"])
def test_images_are_carried_in_the_layout_of_the_layers(target: str) -> None:
    image = "float[1, 4, 12, 12]"
    body = (
        f"body = g (int64 i, bool go, {image} a) => (bool more, {image} c) {{ more = Identity(go) "
        "s = Conv<pads = [1, 1, 1, 1]>(a, W) t = Relu(s) u = Conv<pads = [1, 1, 1, 1]>(t, W) "
        "c = Add(u, a) }"
    )
    proto = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> graph ({image} x) => ({image} y) '
        f"<int64 m = {{30}}> {{ e = Conv<pads = [1, 1, 1, 1]>(x, W) r = Loop<{body}>(m, , e) "
        "y = Conv<pads = [1, 1, 1, 1]>(r, W) }"
    )
    weights = (RANDOM.normal(size=(4, 4, 3, 3)) * 0.05).astype(np.float32)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(weights, "W"))
    compilation = compile_network(proto, Options(name="stored", target=target)).for_host()
    inside = [type(i).__name__ for i in compilation.function.instructions if i.loop is not None]
    assert inside == ["LoopHead", "ConvF32", "ConvF32", "Map"]
    assert compilation.plan.size < 2.5 * 4 * 4 * 12 * 12
    feeds: dict[str, Any] = {"x": RANDOM.normal(size=(1, 4, 12, 12)).astype(np.float32)}
    right = reference(proto, feeds)["y"]
    found = HostLibrary(compilation.unit).run(feeds)["y"]
    np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-5)


def test_integer_loops_can_be_written_as_onnx() -> None:
    proto = integer_network("scan", "z8")
    graph = compile_network(proto, Options(name="stored")).graph
    feeds: dict[str, Any] = {"x": RANDOM.normal(size=(STEPS, 1, WIDTH)).astype(np.float32)}
    written = to_onnx(graph)
    assert [n.op_type for n in written.graph.node].count("Loop") == 1
    right, found = reference(proto, feeds), reference(written, feeds)
    for name, array in right.items():
        assert np.abs(found[name] - array).max() < 1.2 * 0.05
        assert np.mean(np.abs(found[name] - array) > 0.0079) < 0.05
