"""Quantized types: what stored integers mean."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from glowmcu.core import dtypes
from glowmcu.core.types import Quant, TensorType, compact, dequantize, quantize


def onnx_quantize(real: np.ndarray, scale: float, zero_point: int) -> np.ndarray:
    node = helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"])
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, real.shape)],
        [helper.make_tensor_value_info("y", TensorProto.INT8, real.shape)],
        [
            helper.make_tensor("s", TensorProto.FLOAT, [], [scale]),
            helper.make_tensor("z", TensorProto.INT8, [], [zero_point]),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    return ReferenceEvaluator(model).run(None, {"x": real})[0]


def test_quantize_is_the_one_of_onnx() -> None:
    real = np.concatenate(
        [np.linspace(-20, 20, 997), np.arange(-40, 40) * 0.125, [1e6, -1e6]]
    ).astype(np.float32)
    got = quantize(real, Quant.per_tensor(0.25, -3), dtypes.I8)
    np.testing.assert_array_equal(got, onnx_quantize(real, 0.25, -3))


def test_storing_and_reading_back_is_exact() -> None:
    stored = np.arange(-128, 128, dtype=np.int8)
    for scale in (1e-6, 0.0123, 1 / 3, 7.7):
        quant = Quant.per_tensor(scale, 11)
        np.testing.assert_array_equal(quantize(dequantize(stored, quant), quant, dtypes.I8), stored)


def test_per_axis_scales_broadcast_along_their_axis() -> None:
    quant = Quant((1.0, 2.0, 4.0), (0, 1, 2), axis=1)
    stored = np.full((2, 3), 3, np.int8)
    np.testing.assert_array_equal(dequantize(stored, quant), [[3, 4, 4], [3, 4, 4]])


def test_nan_and_infinity_are_stored_as_limits() -> None:
    real = np.asarray([np.nan, np.inf, -np.inf], np.float32)
    got = quantize(real, Quant.per_tensor(0.1, 0), dtypes.I8)
    np.testing.assert_array_equal(got, [-128, 127, -128])


def test_types_print_and_measure() -> None:
    type_ = TensorType(dtypes.I8, (1, 25, 5, 64), Quant.per_tensor(0.12, -3))
    assert str(type_) == "i8<1x25x5x64>{s=0.12 z=-3}"
    assert type_.nbytes == 8000
    assert type_.real() == TensorType(dtypes.F32, (1, 25, 5, 64))
    assert TensorType(dtypes.F64, ()).nbytes == 8


def test_only_large_arrays_of_equal_numbers_become_a_view_of_one() -> None:
    same = np.full((100, 100), 3, np.int8)
    assert compact(same).strides == (0, 0)
    np.testing.assert_array_equal(compact(same), same)
    for array in (np.full(9, 3), np.arange(5000), np.full((100, 100), np.nan, np.float32)):
        assert compact(array) is array
    moved = np.arange(10000).reshape(100, 100).T
    assert compact(moved).flags.c_contiguous
    inner = same.copy()
    inner[50, 50] = 4
    assert compact(inner) is inner
