"""A float network with int16 activations and int8 weights, written as QDQ here: glowmcu's integers
against ONNX Runtime."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from networks import inputs, model
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from glowmcu.core import dtypes
from glowmcu.driver import compile_network
from glowmcu.options import Options
from glowmcu.targets.board import board
from glowmcu.verify.board import run_on_board
from glowmcu.verify.host import HostLibrary

COUNT = 4
GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "costs.json"


def run(network: onnx.ModelProto, x: NDArray[np.generic], names: list[str]) -> list[list[object]]:
    """Return the named tensors of every sample, by ONNX Runtime without optimization."""
    watched = onnx.ModelProto()
    watched.CopyFrom(network)
    del watched.graph.output[:]
    watched.graph.output.extend(onnx.ValueInfoProto(name=n) for n in names)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(watched.SerializeToString(), options)
    (given,) = session.get_inputs()
    return [session.run(names, {given.name: sample}) for sample in x]


def weights_of(network: onnx.ModelProto) -> dict[str, NDArray[np.float32]]:
    """Return the constant float tensors of a network, those that are stored as integers too."""
    found = {t.name: numpy_helper.to_array(t) for t in network.graph.initializer}
    for node in network.graph.node:
        if node.op_type == "DequantizeLinear" and node.input[0] in found:
            stored, scale = (found[n] for n in node.input[:2])
            axis = next((a.i for a in node.attribute if a.name == "axis"), 1)
            shape = [-1 if a == axis else 1 for a in range(stored.ndim)]
            wide = scale.reshape(shape) if scale.ndim else scale
            found[node.output[0]] = (stored.astype(np.float32) * wide).astype(np.float32)
    return found


class Writer:
    """Collects the nodes and constants of a QDQ network."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, name: str, value: NDArray[np.generic]) -> str:
        self.constants.append(numpy_helper.from_array(value, name))
        return name

    def add(self, kind: str, given: list[str], name: str, **attributes: object) -> str:
        self.nodes.append(helper.make_node(kind, given, [name], name=name, **attributes))
        return name

    def weights(self, name: str, real: NDArray[np.float32], axis: int) -> str:
        """Quantize weights to int8 for each index of an axis."""
        others = tuple(a for a in range(real.ndim) if a != axis)
        scale = (np.maximum(np.abs(real).max(axis=others), 1e-9) / 127).astype(np.float32)
        shape = [-1 if a == axis else 1 for a in range(real.ndim)]
        stored = np.rint(real / scale.reshape(shape)).astype(np.int8)
        parts = [self.constant(f"{name}_q", stored), self.constant(f"{name}_s", scale)]
        return self.add("DequantizeLinear", parts, f"{name}_r", axis=axis)

    def activation(self, name: str, largest: float) -> str:
        """Quantize a tensor to int16, symmetric; return the name of its real numbers."""
        scale = self.constant(f"{name}_s", np.asarray(largest / 32767, np.float32))
        zero = self.constant(f"{name}_z", np.asarray(0, np.int16))
        stored = self.add("QuantizeLinear", [name, scale, zero], f"{name}_q")
        return self.add("DequantizeLinear", [stored, scale, zero], f"{name}_r")


def as_int16(network: onnx.ModelProto, samples: NDArray[np.float32]) -> onnx.ModelProto:
    """Return the network with int16 activations, but none before Relu and bias."""
    constants = weights_of(network)
    skipped = {"DequantizeLinear", "Reshape", "Transpose"}
    made = [n for n in network.graph.node if n.op_type not in skipped]
    products = {n.output[0] for n in made if n.op_type == "MatMul"}
    fused = {n.input[0] for n in made if n.op_type == "Relu"}
    fused |= {v for n in made if n.op_type == "Add" for v in n.input if v in products}
    names = [n.output[0] for n in made if n.output[0] not in fused]
    (x,) = (i for i in network.graph.input if i.name not in constants)
    found = run(network, samples, names)
    largest = {n: max(float(np.abs(f[i]).max()) for f in found) for i, n in enumerate(names)}
    writer, real = Writer(), {x.name: x.name}
    real[x.name] = writer.activation(x.name, float(np.abs(samples).max()))
    for node in network.graph.node:
        if node.op_type == "DequantizeLinear":
            continue
        given = []
        for index, name in enumerate(node.input):
            value = constants.get(name)
            if value is None:
                given.append(real[name])
            elif node.op_type in ("Conv", "MatMul") and index == 1:
                axis = 0 if node.op_type == "Conv" else 1
                given.append(writer.weights(f"{node.name or node.output[0]}_w", value, axis))
            else:
                given.append(writer.constant(f"{node.output[0]}_c{index}", value))
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        del copy.input[:]
        copy.input.extend(given)
        writer.nodes.append(copy)
        (y,) = node.output
        real[y] = writer.activation(y, largest[y]) if y in largest else y
    (output,) = network.graph.output
    result = helper.make_tensor_value_info(real[output.name], TensorProto.FLOAT, None)
    graph = helper.make_graph(writer.nodes, "int16", [x], [result], writer.constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def enclosed(kind: str, dtype: type, shapes: list[tuple[int, ...]], **attributes: object) -> bytes:
    """Return a network of one operator between DequantizeLinear and QuantizeLinear.

    Its second and later operands are constants, which are stored in the same type.
    """
    writer, rng = Writer(), np.random.default_rng(5)
    zero = writer.constant("z", np.asarray(0 if dtype is np.int16 else 3, dtype))
    scale = writer.constant("s", np.asarray(8 / np.iinfo(dtype).max, np.float32))
    x = helper.make_tensor_value_info(
        "x", helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shapes[0]
    )
    given = [writer.add("DequantizeLinear", ["x", scale, zero], "x_r")]
    for index, shape in enumerate(shapes[1:]):
        data = rng.integers(-99, 99, shape).astype(np.int8)
        parts = [
            writer.constant(f"c{index}", data),
            writer.constant(f"cs{index}", np.float32(0.01)),
        ]
        given.append(writer.add("DequantizeLinear", parts, f"c{index}_r"))
    writer.add(kind, given, "y_r", **attributes)
    writer.add("QuantizeLinear", ["y_r", scale, zero], "y")
    y = helper.make_tensor_value_info("y", x.type.tensor_type.elem_type, None)
    graph = helper.make_graph(writer.nodes, "one", [x], [y], writer.constants)
    opset = 23 if kind == "RMSNormalization" else 21
    network = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10
    )
    return bytes(network.SerializeToString())


@pytest.mark.cc
@pytest.mark.parametrize("dtype", [np.int8, np.int16])
@pytest.mark.parametrize(
    ("kind", "shapes", "attributes"),
    [
        ("LayerNormalization", [(4, 33), (33,), (33,)], {"epsilon": 1e-5}),
        ("LayerNormalization", [(4, 33), (33,)], {"epsilon": 1e-3}),
        ("LogSoftmax", [(4, 33)], {}),
        ("Softmax", [(4, 33)], {}),
        ("PRelu", [(2, 5, 4, 3), (5, 1, 1)], {}),
        ("PRelu", [(2, 5, 4, 3), (1,)], {}),
    ],
)
def test_an_operator_is_computed_in_integers(
    kind: str, dtype: type, shapes: list[tuple[int, ...]], attributes: dict[str, object]
) -> None:
    network = enclosed(kind, dtype, shapes, **attributes)
    found = compile_network(network, Options(name="one"))
    assert not any(t.dtype.is_float for n in found.graph.nodes() for t in n.types)
    rng = np.random.default_rng(7)
    x = rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shapes[0]).astype(dtype)
    session = ort.InferenceSession(network)
    (expected,) = session.run(None, {"x": x})
    (slot,) = found.unit.inputs
    (got,) = HostLibrary(found.unit).run({slot.name: x}).values()
    assert np.abs(got.astype(int) - expected.astype(int)).max() <= 1


def convolution(dtype: type, zero: int, weights: NDArray[np.generic], padded: int) -> bytes:
    """Return a QDQ convolution of [1, C, 6, 5] with a bias; x and y are stored alike."""
    writer = Writer()
    scale = writer.constant("s", np.asarray(2.0**-13, np.float32))
    point = writer.constant("z", np.asarray(zero, dtype))
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    x = helper.make_tensor_value_info("x", kind, [1, weights.shape[1], 6, 5])
    real = writer.add("DequantizeLinear", ["x", scale, point], "x_r")
    parts = [writer.constant("w", weights), writer.constant("ws", np.float32(0.002))]
    w = writer.add("DequantizeLinear", parts, "w_r")
    bias = writer.constant("b", np.linspace(-1, 1, len(weights)).astype(np.float32))
    writer.add("Conv", [real, w, bias], "y_r", pads=[padded] * 4)
    wider = writer.constant("ys", np.asarray(2.0**-11, np.float32))
    writer.add("QuantizeLinear", ["y_r", wider, point], "y")
    y = helper.make_tensor_value_info("y", kind, None)
    graph = helper.make_graph(writer.nodes, "conv", [x], [y], writer.constants)
    network = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return bytes(network.SerializeToString())


@pytest.mark.cc
@pytest.mark.parametrize("channels", [3, 300])
@pytest.mark.parametrize(
    ("dtype", "zero"), [(np.int16, 0), (np.int16, -1000), (np.uint16, 32768), (np.uint16, 200)]
)
def test_any_zero_point_and_any_sum(dtype: type, zero: int, channels: int) -> None:
    """300 channels of weights of 127 and -127 sum up beyond 2^31."""
    rng = np.random.default_rng(4)
    weights = (rng.integers(0, 2, (4, channels, 3, 3)) * 254 - 127).astype(np.int8)
    network = convolution(dtype, zero, weights, 1)
    found = compile_network(network, Options(name="conv"))
    assert not any(t.dtype.is_float for n in found.graph.nodes() for t in n.types)
    limits = np.iinfo(dtype)
    x = rng.integers(limits.min, limits.max, (1, channels, 6, 5)).astype(dtype)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    (expected,) = ort.InferenceSession(network, options).run(None, {"x": x})
    (slot,) = found.unit.inputs
    perm = slot.perm or (0, 1, 2, 3)
    (got,) = HostLibrary(found.unit).run({slot.name: x.transpose(perm)}).values()
    (result,) = found.unit.outputs
    wanted = expected.transpose(result.perm or (0, 1, 2, 3))
    assert np.abs(got.astype(int) - wanted.astype(int)).max() <= 1


@pytest.mark.cc
def test_weights_of_16_bits_stay_in_float() -> None:
    weights = np.arange(-54, 54).reshape(4, 3, 3, 3).astype(np.int16) * 300
    found = compile_network(convolution(np.int16, 0, weights, 0), Options(name="conv"))
    assert any("in float" in note and "Conv2D" in note for note in found.info.notes)


@pytest.mark.cc
@pytest.mark.parametrize("name", ["kws", "ic", "ad"])
def test_a_network_of_int16_gives_what_onnx_runtime_gives(
    name: str, shared: Path, tmp_path: Path
) -> None:
    path = model(shared, name, "float")
    if not path.is_file():
        pytest.skip(f"{path.name} is not among the shared models")
    x = inputs(shared, name, "float", COUNT if name != "ad" else 1)[:COUNT]
    network = onnx.load(path)
    shape = (1, *(d.dim_value for d in network.graph.input[0].type.tensor_type.shape.dim[1:]))
    x = x.reshape(len(x), *shape)
    quantized = as_int16(network, x)
    (output,) = quantized.graph.output
    expected = np.stack([r[0] for r in run(quantized, x, [output.name])])
    saved = tmp_path / f"{name}_int16.onnx"
    onnx.save(quantized, saved)
    found = compile_network(saved, Options(name=f"{name}_int16"))
    kinds = {b.type.dtype for i in found.function.instructions for b in i.outputs()}
    assert dtypes.I16 in kinds
    assert not [n for n in found.info.notes if "in float" in n]
    library = HostLibrary(found.unit)
    (slot,) = found.unit.inputs
    got = np.stack([next(iter(library.run({slot.name: s}).values())) for s in x])
    span = float(np.abs(expected).max())
    assert np.abs(got.reshape(expected.shape) - expected).max() <= span * 2.0**-11


@pytest.mark.qemu
@pytest.mark.parametrize(
    ("processor", "place"),
    [("cortex-m0", "mps2-an385"), ("cortex-m4", "mps2-an386"), ("cortex-m55", "mps3-an547")],
)
def test_boards_give_the_same_bits(
    processor: str, place: str, shared: Path, qemu: None, tmp_path: Path
) -> None:
    """On the DSP extension they take at most half as many instructions again as for int8."""
    path = model(shared, "kws", "float")
    if not path.is_file():
        pytest.skip(f"{path.name} is not among the shared models")
    x = inputs(shared, "kws", "float", 2).reshape(2, 1, 49, 10, 1)
    saved = tmp_path / "kws_int16.onnx"
    onnx.save(as_int16(onnx.load(path), x), saved)
    found = compile_network(saved, Options(name="kws_int16", target=processor))
    folders = {i.kernel.folder for i in found.function.instructions if i.kernel}
    assert ("arm_dsp" in folders) == (processor != "cortex-m0")
    (slot,) = found.unit.inputs
    feeds = [{slot.name: s} for s in x]
    run = run_on_board(found.unit, board(place), feeds, profile=True, optimize="-O3")
    library = HostLibrary(found.for_host().unit)
    for feed, outputs in zip(feeds, run.outputs, strict=True):
        for name, wanted in library.run(feed).items():
            np.testing.assert_array_equal(outputs[name], wanted)
    if processor == "cortex-m4":
        golden = json.loads(GOLDEN.read_text())["kws_int8"][processor]["instructions"]
        assert sum(run.instructions[0]) < 1.5 * golden
