"""Weights of every stored form end in integer layers: 4 bits, zero points that do not fit int8."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from glowmcu.core.passes import Runner
from glowmcu.frontend import load
from glowmcu.graph.evaluate import evaluate
from glowmcu.graph.graph import Graph
from glowmcu.graph.printer import dump
from glowmcu.graph.verify import verify
from glowmcu.ops.concat import Concat
from glowmcu.passes import GRAPH_PASSES


def through_passes(graph: Graph) -> Graph:
    return Runner(verify, dump, lambda g: len(g.nodes())).run(graph, GRAPH_PASSES)


def model(layer: str, weights: onnx.TensorProto, zero: onnx.TensorProto | None) -> bytes:
    """int8 x -> layer with dequantized weights -> int8 y."""
    conv = layer == "Conv"
    shape = (1, 3, 5, 5) if conv else (2, 10)
    scalars: list[tuple[str, Any]] = [
        ("xs", np.float32(0.05)),
        ("xz", np.int8(-8)),
        ("ws", np.float32(0.01)),
        ("ys", np.float32(0.2)),
        ("yz", np.int8(3)),
    ]
    tensors = [numpy_helper.from_array(np.asarray(a), name) for name, a in scalars]
    tensors += [weights] + ([zero] if zero is not None else [])
    node = helper.make_node
    nodes = [
        node("DequantizeLinear", ["x", "xs", "xz"], ["xd"]),
        node("DequantizeLinear", ["w", "ws"] + (["wz"] if zero is not None else []), ["wd"]),
        node(layer, ["xd", "wd"], ["c"], **({"pads": [1, 1, 1, 1]} if conv else {})),
        node("QuantizeLinear", ["c", "ys", "yz"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.INT8, shape)
    y = helper.make_tensor_value_info("y", TensorProto.INT8, None)
    graph = helper.make_graph(nodes, "g", [x], [y], tensors)
    opset = [helper.make_opsetid("", 21)]
    made = helper.make_model(graph, opset_imports=opset, ir_version=10)
    return bytes(made.SerializeToString())


def stored(layer: str, low: int, high: int) -> np.ndarray[Any, Any]:
    shape = (4, 3, 3, 3) if layer == "Conv" else (10, 6)
    return np.random.default_rng(0).integers(low, high, shape, endpoint=True)


def check(content: bytes, repeated: int) -> None:
    graph = through_passes(load(content, {}).graph)
    assert not [n for n in graph.nodes() if n.types[0].dtype.is_float]
    joined = [len(n.inputs) for n in graph.nodes() if isinstance(n.op, Concat)]
    assert joined == ([repeated] if repeated > 1 else [])
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    (x,) = graph.inputs
    feed = {"x": np.random.default_rng(1).integers(-128, 127, x.shape).astype(np.int8)}
    (expected,) = session.run(None, feed)
    got = evaluate(graph, feed)["y"]
    assert np.abs(got.astype(int) - expected).max() <= 1


@pytest.mark.parametrize("layer", ["Conv", "MatMul"])
@pytest.mark.parametrize(
    ("dtype", "zero", "repeated"),
    [(np.uint8, 128, 1), (np.uint8, 100, 2), (np.uint8, None, 3), (np.int8, 5, 2), (np.int8, 0, 1)],
)
def test_weights_of_eight_bits(layer: str, dtype: type, zero: int | None, repeated: int) -> None:
    low = 0 if dtype is np.uint8 else -128
    data = stored(layer, low, low + 255).astype(dtype)
    data.flat[:2] = low, low + 255
    weights = numpy_helper.from_array(data, "w")
    point = None if zero is None else numpy_helper.from_array(np.asarray(zero, dtype), "wz")
    check(model(layer, weights, point), repeated)


@pytest.mark.parametrize("layer", ["Conv", "MatMul"])
@pytest.mark.parametrize("kind", [TensorProto.INT4, TensorProto.UINT4])
def test_weights_of_four_bits(layer: str, kind: int) -> None:
    low = 0 if kind == TensorProto.UINT4 else -8
    data = stored(layer, low, low + 15)
    weights = helper.make_tensor("w", kind, data.shape, data.reshape(-1).tolist())
    zero = helper.make_tensor("wz", kind, (), [low + 8])
    check(model(layer, weights, zero), 1)
