"""Operators of ONNX Runtime's QOperator format against ONNX Runtime: the same within 1 LSB."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from imported import import_node
from onnx import TensorProto, helper, numpy_helper

from glowmcu.graph import evaluate as graph_evaluate

RNG = np.random.default_rng(8)
Array = np.ndarray[Any, Any]


def run(
    op: str, feeds: dict[str, Array], constants: dict[str, Array], inputs: str, **at: Any
) -> None:
    proto = helper.make_node(op, inputs.split(), ["y"], name="n", domain="com.microsoft", **at)
    kinds = {n: helper.np_dtype_to_tensor_dtype(a.dtype) for n, a in feeds.items()}
    graph = helper.make_graph(
        [proto],
        "g",
        [helper.make_tensor_value_info(n, kinds[n], a.shape) for n, a in feeds.items()],
        [helper.make_tensor_value_info("y", TensorProto.UNDEFINED, None)],
        [numpy_helper.from_array(a, n) for n, a in constants.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    model.graph.output[0].ClearField("type")
    session = onnxruntime.InferenceSession(model.SerializeToString())
    (right,) = session.run(None, feeds)
    ours = import_node(proto, feeds, constants, 17)
    found = graph_evaluate.evaluate(ours, feeds)["y"]
    assert found.dtype == right.dtype and found.shape == right.shape
    assert np.abs(found.astype(int) - right.astype(int)).max() <= 1


def numbers(dtype: Any, *shape: int) -> Array:
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max, shape).astype(dtype)


def quants(dtype: Any, **scales: float) -> dict[str, Array]:
    points = {f"z{n}": np.asarray(7, dtype) for n in scales}
    return {f"s{n}": np.asarray(s, np.float32) for n, s in scales.items()} | points


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_binary(op: str, dtype: Any) -> None:
    feeds = {"a": numbers(dtype, 2, 3, 8), "b": numbers(dtype, 3, 8)}
    constants = quants(dtype, a=0.02, b=0.05, y=0.06)
    run(op, feeds, constants, "a sa za b sb zb sy zy")


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_unary(dtype: Any) -> None:
    feeds = {"x": numbers(dtype, 2, 16)}
    constants = quants(dtype, x=0.05, y=0.03)
    run("QLinearSigmoid", feeds, constants, "x sx zx sy zy")
    run("QLinearLeakyRelu", feeds, constants, "x sx zx sy zy", alpha=0.2)


@pytest.mark.parametrize("axis", [-1, 1])
def test_softmax(axis: int) -> None:
    feeds = {"x": numbers(np.uint8, 2, 5, 6)}
    constants = quants(np.uint8, x=0.05, y=1 / 256)
    constants["zy"] = np.asarray(0, np.uint8)
    run("QLinearSoftmax", feeds, constants, "x sx zx sy zy", axis=axis, opset=13)


def test_pool_and_concat() -> None:
    x = numbers(np.uint8, 1, 3, 4, 4)
    constants = quants(np.uint8, x=0.05, y=0.03)
    run("QLinearGlobalAveragePool", {"x": x}, constants, "x sx zx sy zy")
    run("QLinearAveragePool", {"x": x}, constants, "x sx zx sy zy", kernel_shape=[2, 2])
    feeds = {"a": x, "b": numbers(np.uint8, 1, 2, 4, 4)}
    constants = quants(np.uint8, a=0.02, b=0.05, y=0.06)
    run("QLinearConcat", feeds, constants, "sy zy a sa za b sb zb", axis=1)
