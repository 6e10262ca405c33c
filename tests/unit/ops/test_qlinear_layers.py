"""Integer layers against ONNX Runtime: the meaning of the graph is the same within 1 LSB."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from imported import golden, import_node
from onnx import helper

from glowmcu.graph import evaluate as graph_evaluate
from glowmcu.graph import verify as graph_verify

RNG = np.random.default_rng(9)
Array = np.ndarray[Any, Any]


def run(
    op: str, feeds: dict[str, Array], constants: dict[str, Array], inputs: str, **at: Any
) -> None:
    proto = helper.make_node(op, inputs.split(), ["y"], name="n", **at)
    (right,) = golden(proto, feeds, constants, 17, "onnxruntime")
    graph = import_node(proto, feeds, constants, 17)
    graph_verify.verify(graph)
    found = graph_evaluate.evaluate(graph, feeds)["y"]
    assert found.dtype == right.dtype and found.shape == right.shape
    assert np.abs(found.astype(int) - right.astype(int)).max() <= 1


def numbers(dtype: Any, *shape: int) -> Array:
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max, shape).astype(dtype)


def scalar(value: float, dtype: Any = np.float32) -> Array:
    return np.asarray(value, dtype)


@pytest.mark.parametrize("per_channel", [False, True])
def test_convolution(per_channel: bool) -> None:
    constants = {
        "sx": scalar(0.03),
        "zx": scalar(7, np.uint8),
        "w": numbers(np.int8, 4, 3, 3, 3),
        "sw": np.asarray([0.01, 0.02, 0.03, 0.04], np.float32) if per_channel else scalar(0.02),
        "zw": np.zeros(4, np.int8) if per_channel else scalar(0, np.int8),
        "sy": scalar(0.7),
        "zy": scalar(120, np.uint8),
        "b": RNG.integers(-900, 900, 4).astype(np.int32),
    }
    feeds = {"x": numbers(np.uint8, 1, 3, 8, 8)}
    run("QLinearConv", feeds, constants, "x sx zx w sw zw sy zy b", pads=[1, 1, 1, 1])


def test_matrix_product() -> None:
    constants = {
        "sa": scalar(0.03),
        "za": scalar(7, np.uint8),
        "b": numbers(np.int8, 6, 5),
        "sb": scalar(0.02),
        "zb": scalar(0, np.int8),
        "sy": scalar(0.4),
        "zy": scalar(120, np.uint8),
    }
    run("QLinearMatMul", {"a": numbers(np.uint8, 3, 6)}, constants, "a sa za b sb zb sy zy")


def test_integer_products() -> None:
    feeds = {"a": numbers(np.uint8, 3, 6), "za": scalar(9, np.uint8)}
    constants = {"b": numbers(np.int8, 6, 5), "zb": scalar(3, np.int8)}
    run("MatMulInteger", feeds, constants, "a b za zb")
    del feeds["za"]
    run("MatMulInteger", feeds, constants | {"za": scalar(9, np.uint8)}, "a b za zb")
    run("MatMulInteger", feeds, {"b": constants["b"]}, "a b")


def test_integer_convolution() -> None:
    feeds = {"x": numbers(np.uint8, 1, 2, 5, 5)}
    constants = {"w": numbers(np.uint8, 3, 2, 3, 3), "zx": scalar(9, np.uint8)}
    run("ConvInteger", feeds, constants, "x w zx")
