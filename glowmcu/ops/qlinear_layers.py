"""Importers of integer layers: the QOperator format's and those of dynamic quantization.

One of the QOperator format means dequantize, the layer on real numbers, quantize, and is imported
as that; MatMulInteger and ConvInteger are products of integers.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.dtypes import DType
from glowmcu.core.types import Quant, TensorType
from glowmcu.graph.graph import Value, constant
from glowmcu.ops._window import sliding
from glowmcu.ops.base import IMPORTERS, onnx_op
from glowmcu.ops.cast import Cast
from glowmcu.ops.conv_onnx import convolution
from glowmcu.ops.elementwise_onnx import elementwise
from glowmcu.ops.matmul import product
from glowmcu.ops.onnx_node import OnnxNode
from glowmcu.ops.pad import Pad
from glowmcu.ops.qlinear import quant_at, real_operand, stored_result
from glowmcu.ops.quant import Dequantize, Quantize
from glowmcu.ops.reshape import Reshape


def layer(node: OnnxNode, op_type: str, *inputs: Value | None) -> Value:
    """Import the node as if it were one of another type on other inputs; the result is inner."""
    inner = OnnxNode(
        op_type,
        node.name,
        node.opset,
        inputs,
        (f"{node.output_names[0]}.real",),
        node.attributes,
        used=node.used,
    )
    found = IMPORTERS["", op_type](inner)
    value: Value = found[0] if isinstance(found, tuple) else found
    return value


def real_weights(node: OnnxNode, index: int, axis: int) -> Value:
    """Return the real numbers of constant weights at `index`, scales per tensor or along `axis`."""
    weights = node.const(index, "the weights")
    scale, zero = node.const(index + 1, "a scale"), node.const(index + 2, "a zero point")
    if weights is None or scale is None:
        node.fail("the weights or their scale are missing")
    scales = tuple(float(s) for s in scale.reshape(-1))
    zeros = np.zeros(len(scales)) if zero is None else zero.reshape(-1)
    points = tuple(int(z) for z in np.broadcast_to(zeros, (len(scales),)))
    quant = Quant(scales, points, axis if len(scales) > 1 else None)
    return _real_constant(node, index, weights, quant)


def _real_constant(node: OnnxNode, index: int, data: np.ndarray, quant: Quant) -> Value:
    type_ = TensorType(dtypes.of(data.dtype), data.shape, quant)
    stored = constant(node.value(index).name, data, type_)
    return node.apply(Dequantize(), stored, suffix=f"real{index}").output


@onnx_op("QLinearConv")
def import_qlinear_conv(node: OnnxNode) -> Value:
    """Convolution of stored integers with constant weights, scales per tensor or channel."""
    x, weights = real_operand(node, 0), real_weights(node, 3, 0)
    bias = node.const(8, "the bias")
    real_bias = None
    if bias is not None:
        x_scale, w_scale = node.const(1, "a scale"), node.const(4, "a scale")
        assert x_scale is not None and w_scale is not None
        unit = np.broadcast_to((x_scale.reshape(-1) * w_scale.reshape(-1)), bias.shape)
        quant = Quant(tuple(float(s) for s in unit), (0,) * bias.size, 0)
        real_bias = _real_constant(node, 8, bias, quant)
    return stored_result(node, layer(node, "Conv", x, weights, real_bias), 6)


@onnx_op("QLinearMatMul")
def import_qlinear_matmul(node: OnnxNode) -> Value:
    """Matrix product of stored integers; scales of a constant second operand may be per column."""
    b = node.value(3)
    fixed = b.data is not None
    right = real_weights(node, 3, b.type.rank - 1) if fixed else real_operand(node, 3)
    return stored_result(node, layer(node, "MatMul", real_operand(node, 0), right), 6)


@onnx_op("QGemm", domain="com.microsoft")
def import_qgemm(node: OnnxNode) -> Value:
    """Gemm of stored integers; the result is stored where a scale for it is given."""
    right = real_weights(node, 3, 0 if node.attr("transB", 0) else 1)
    bias = node.const(6, "the bias")
    real_bias = None
    if bias is not None:
        a_scale, b_scale = node.const(1, "a scale"), node.const(4, "a scale")
        assert a_scale is not None and b_scale is not None
        alpha = float(node.attr("alpha", 1.0))
        unit = np.broadcast_to(alpha * a_scale.reshape(-1) * b_scale.reshape(-1), bias.shape[-1:])
        real_bias = _real_constant(
            node,
            6,
            bias.reshape(-1),
            Quant(tuple(float(s) for s in unit), (0,) * bias.size, 0),
        )
    y = layer(node, "Gemm", real_operand(node, 0), right, real_bias)
    return y if node.optional(7) is None else stored_result(node, y, 7)


@onnx_op("QLinearAveragePool", "QLinearGlobalAveragePool", domain="com.microsoft")
def import_qlinear_pool(node: OnnxNode) -> Value:
    """Averages of stored integers, channels first."""
    if node.attr("channels_last", 0):
        node.fail("channels_last=1", hint="export the model with channels first")
    y = layer(node, node.op_type.removeprefix("QLinear"), real_operand(node, 0))
    return stored_result(node, y, 3)


@onnx_op("QLinearConcat", domain="com.microsoft")
def import_qlinear_concat(node: OnnxNode) -> Value:
    """Stored tensors, each with its own scale; the result has the first one."""
    parts = [real_operand(node, i) for i in range(2, len(node.inputs), 3)]
    dtype = node.value(2).type.dtype
    y = layer(node, "Concat", *parts)
    return node.apply(Quantize(dtype, quant_at(node, 0)), y).output


@onnx_op("MatMulInteger")
def import_matmul_integer(node: OnnxNode) -> Value:
    """Exact products of integers less their zero points, which may be computed at run time."""
    a, b = node.value(0), _less_zero_point(node, 1, node.value(1).type.rank - 1)
    zero = node.optional(2)
    if b.data is None or b.type.rank > 2 or zero is None or _is_zero(zero):
        a = _less_zero_point(node, 0, max(a.type.rank - 2, 0))
        return product(node, a, b, dtypes.I32)
    # (a - zero) . b is a . b less the zero point times the sums of b, which are constants
    found = product(node, a, b, dtypes.I32, suffix="product")
    sums = node.constant(np.asarray(b.data.astype(np.int64).sum(axis=0), np.int32), "sums")
    point = _point(node, a, zero, max(a.type.rank - 2, 0), dtypes.I32)
    less = elementwise(node, "mul", point, sums, suffix="shift")
    if a.type.rank == 1 and less.type.rank > found.type.rank:
        less = node.apply(Reshape(found.shape), less, suffix="shift.row").output
    return elementwise(node, "sub", found, less)


@onnx_op("ConvInteger")
def import_conv_integer(node: OnnxNode) -> Value:
    """Exact products of integers less their zero points, which may be computed at run time."""
    x, w = node.value(0), _less_zero_point(node, 1, 0)
    zero = node.optional(2)
    found = sliding(node, x.shape[2:], w.shape[2:])
    pads = (*found.begins, *found.ends)
    one = zero is not None and zero.type.numel == 1 and not _is_zero(zero)
    if zero is None or not one or w.data is None or (any(pads) and zero.data is None):
        return convolution(node, _less_zero_point(node, 0, 1), w, None, dtypes.I32)
    # as in MatMulInteger; what is padded is the zero point
    if any(pads):
        border = (0, 0, *found.begins, 0, 0, *found.ends)
        value = float(zero.data.reshape(-1)[0]) if zero.data is not None else 0.0
        x = node.apply(Pad(border, value=value), x, suffix="padded").output
        attributes = {**node.attributes, "pads": [0] * len(pads), "auto_pad": "NOTSET"}
    else:
        attributes = dict(node.attributes)
    inner = replace(node, attributes=attributes, output_names=(f"{node.output_names[0]}.product",))
    y = convolution(inner, x, w, None, dtypes.I32)
    sums = w.data.astype(np.int64).reshape(w.shape[0], -1).sum(axis=1).astype(np.int32)
    per_channel = node.constant(sums.reshape(-1, *(1,) * (w.type.rank - 2)), "sums")
    point = _point(node, x, zero, 0, dtypes.I32)
    return elementwise(node, "sub", y, elementwise(node, "mul", point, per_channel, suffix="shift"))


def _is_zero(zero: Value) -> bool:
    return zero.data is not None and not np.any(zero.data)


def _less_zero_point(node: OnnxNode, index: int, axis: int) -> Value:
    """Return operand `index` less its zero point: constants as narrow as they may be, else i16.

    axis  the one that a vector of zero points counts
    """
    x, zero = node.value(index), node.optional(index + 2)
    if zero is None or _is_zero(zero):
        return x
    point = _point(node, x, zero, axis, dtypes.I16)
    if x.data is not None and point.data is not None:
        found = x.data.astype(np.int16) - point.data
        fits = found.min(initial=0) >= -128 and found.max(initial=0) <= 127
        return node.constant(found.astype(np.int8) if fits else found, f"centred{index}")
    wide = node.apply(Cast(dtypes.I16), x, suffix=f"wide{index}").output
    return elementwise(node, "sub", wide, point, suffix=f"centred{index}")


def _point(node: OnnxNode, x: Value, zero: Value, axis: int, dtype: DType) -> Value:
    """Return zero points as `dtype`, shaped to broadcast against x."""
    shape: tuple[int, ...] = zero.shape
    if zero.type.numel == 1:
        shape = ()
    elif zero.type.rank == 1 and x.type.rank > 1:
        shape = (zero.type.numel, *(1,) * (x.type.rank - axis - 1))
    if zero.data is not None:
        name = f"point.{x.name}.{dtype}"
        return node.constant(zero.data.astype(dtype.numpy).reshape(shape), name)
    suffix = f"point.{x.name}"
    point = node.apply(Cast(dtype), zero, suffix=suffix).output
    if shape == point.shape:
        return point
    return node.apply(Reshape(shape), point, suffix=f"{suffix}.shaped").output
