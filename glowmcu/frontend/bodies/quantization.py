"""QuantizeLinear and DequantizeLinear of types and scales that have no kernel of their own."""

from __future__ import annotations

from typing import NoReturn

import numpy as np
import onnx

from glowmcu.core import dtypes
from glowmcu.core.dtypes import DType
from glowmcu.frontend.bodies.body import Body, body
from glowmcu.ops.onnx_node import OnnxNode


def _dtype(node: OnnxNode, number: int) -> DType:
    try:
        return dtypes.of(onnx.helper.tensor_dtype_to_np_dtype(number))
    except (TypeError, KeyError, ValueError):
        _refuse(node, number)


def _refuse(node: OnnxNode, number: int) -> NoReturn:
    node.fail(f"elements of type number {number}")


def _per_element(b: Body, node: OnnxNode, index: int) -> str:
    """Return a scale or zero point as float32, shaped to broadcast against x."""
    x, value = node.value(0), node.value(index)
    name, axis = b.real(index), int(node.attr("axis", 1))
    axis += x.type.rank if axis < 0 else 0
    block = int(node.attr("block_size", 0))
    if block:
        before, after = value.shape[: axis + 1], value.shape[axis + 1 :]
        spread = b("Expand", b.reshape(name, *before, 1, *after), _shape(*before, block, *after))
        whole = b.reshape(spread, *before[:-1], before[-1] * block, *after)
        return b.part(whole, axis, 0, x.shape[axis])
    if value.type.numel == 1:
        return b.reshape(name)
    return b.reshape(name, value.type.numel, *[1] * (x.type.rank - axis - 1))


def _shape(*sizes: int) -> np.ndarray:
    return np.asarray(sizes, np.int64)


@body("DequantizeLinear")
def dequantize_linear(b: Body, node: OnnxNode) -> str:
    """(x - zero point) * scale, in float32."""
    x = b.real(0)
    if node.optional(2) is not None:
        x = b("Sub", x, _per_element(b, node, 2))
    number = int(node.attr("output_dtype", 0))
    dtype = _dtype(node, number) if number else node.value(1).type.dtype
    return b.cast(b("Mul", x, _per_element(b, node, 1)), dtype)


@body("QuantizeLinear")
def quantize_linear(b: Body, node: OnnxNode) -> str:
    """x / scale + zero point, in float32, rounded and saturated."""
    number, zero = int(node.attr("output_dtype", 0)), node.optional(2)
    dtype = _dtype(node, number) if number else dtypes.U8
    dtype = dtype if zero is None else zero.type.dtype
    node.attr("precision")
    y = b("Div", b.real(0), _per_element(b, node, 1))
    if dtype.is_float:
        saturate = int(node.attr("saturate", 1))
        return b("Cast", y, to=onnx.helper.np_dtype_to_tensor_dtype(dtype.numpy), saturate=saturate)
    y = b("Round", y)
    if zero is not None:
        y = b("Add", y, _per_element(b, node, 2))
    return b.cast(b("Clip", y, float(dtype.low), float(dtype.high)), dtype)
