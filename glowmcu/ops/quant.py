"""Between real numbers and stored integers: Quantize, Dequantize, AsQuant."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.dtypes import DType
from glowmcu.core.types import Array, Quant, TensorType, quantize
from glowmcu.graph.graph import Value, constant
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder
from glowmcu.ops._functions import QUANTIZABLE
from glowmcu.ops._program import Arg, Input, Literal, Step
from glowmcu.ops.base import Example, Op, f32, i8, onnx_op, weights_i8
from glowmcu.ops.cast import Cast
from glowmcu.ops.elementwise import Elementwise, emit_map
from glowmcu.ops.onnx_node import OnnxNode
from glowmcu.ops.reshape import Reshape


class Quantize(Op):
    """Real numbers to integers of type `dtype` that mean them by `quant`, ONNX QuantizeLinear."""

    dtype: DType
    quant: Quant

    raw = True

    def infer(self, x: TensorType) -> TensorType:
        if not x.dtype.is_float:
            raise TypeError(f"Quantize takes real numbers, not {x}")
        return TensorType(self.dtype, x.shape, self.quant)

    def reference(self, x: Array) -> Array:
        return quantize(x, self.quant, self.dtype)

    def lower(self, b: Builder, x: Buffer) -> Buffer:
        y = b.result()
        operands, args = quant_operands(b, self.quant, y.type.rank, 1)
        step = Step(f"quantize_{self.dtype}", (Input(0), *args))
        emit_map(b, y, (x, *operands), (step,))
        return y

    examples = (
        Example((f32(3, 5),), {"dtype": dtypes.I8, "quant": Quant.per_tensor(0.02, -3)}),
        Example((f32(2, 9),), {"dtype": dtypes.U8, "quant": Quant.per_tensor(0.01, 200)}),
        Example(
            (f32(2, 3, 4),), {"dtype": dtypes.I8, "quant": Quant((0.5, 0.01, 0.02), (0, 1, 2), 1)}
        ),
        Example((f32(40),), {"dtype": dtypes.I16, "quant": Quant.per_tensor(1e-4, 5)}),
        Example((f32(40),), {"dtype": dtypes.I32, "quant": Quant.per_tensor(1e-7)}),
    )


class Dequantize(Op):
    """The real numbers that stored integers mean, as float32."""

    def infer(self, x: TensorType) -> TensorType:
        if x.dtype is not dtypes.F32 and x.quant is None:
            raise TypeError(f"Dequantize takes a quantized tensor, not {x}")
        return TensorType(dtypes.F32, x.shape)

    def reference(self, x: Array) -> Array:
        return x

    def lower(self, b: Builder, x: Buffer) -> Buffer:
        y = b.result()
        assert x.type.quant is not None
        operands, args = quant_operands(b, x.type.quant, x.type.rank, 1)
        emit_map(b, y, (x, *operands), (Step("dequantize", (Input(0), *args)),))
        return y

    examples = (
        Example((i8(3, 5),)),
        Example((weights_i8(4, 3, axis=0),)),
        Example((TensorType(dtypes.U8, (7,), Quant.per_tensor(0.1, 128)),)),
        Example((TensorType(dtypes.I32, (7,), Quant.per_tensor(0.001)),)),
    )


class AsQuant(Op):
    """The same stored integers, and what they mean; None: they are just integers."""

    quant: Quant | None

    raw = True
    same_bytes = True

    def infer(self, x: TensorType) -> TensorType:
        return x.with_quant(self.quant)

    def reference(self, x: Array) -> Array:
        return x

    def lower(self, b: Builder, x: Buffer) -> Buffer:
        return b.view(x, b.result().type)

    examples = (
        Example((TensorType(dtypes.I8, (2, 3)),), {"quant": Quant.per_tensor(0.5, 7)}, low=-9),
    )


class StayReal(Op):
    """The same real numbers; what makes them is not turned into integer arithmetic."""

    raw = True
    same_bytes = True

    def infer(self, x: TensorType) -> TensorType:
        return x

    def reference(self, x: Array) -> Array:
        return x

    def lower(self, b: Builder, x: Buffer) -> Buffer:
        return b.view(x, b.result().type)

    examples = (Example((f32(2, 3),)),)


def quant_operands(
    b: Builder, quant: Quant, rank: int, first: int
) -> tuple[tuple[Buffer, ...], tuple[Arg, Arg]]:
    """Return constants and arguments for scale and zero point; arguments count from `first`."""
    buffers: list[Buffer] = []
    args: list[Arg] = []
    for array, dtype, name in zip(
        quant.arrays(rank), (dtypes.F32, dtypes.I32), ("scale", "zero_point"), strict=True
    ):
        if np.all(array == array.reshape(-1)[0]):
            args.append(Literal(array.reshape(-1)[0].item(), dtype))
        else:
            args.append(Input(first + len(buffers)))
            buffers.append(b.constant(array, f"{b.name}.{name}"))
    return tuple(buffers), (args[0], args[1])


@onnx_op("QuantizeLinear")
def import_quantize_linear(node: OnnxNode) -> Value:
    """Per tensor, axis or block, to 2 to 16 bits, int32 and small floats; run-time scales too."""
    x = _real(node, node.value(0))
    dtype = _stored_type(node)
    if node.attr("precision", 0) not in (0, 1):
        node.fail("the division is asked for in another precision than float32")
    node.attr("saturate")
    if _is_fixed(node):
        return node.apply(Quantize(dtype, _quant(node, x)), x).output
    scale, zero = _broadcast(node, x)
    return node.apply(Elementwise(f"quantize_{dtype}"), x, scale, zero).output


@onnx_op("DequantizeLinear")
def import_dequantize_linear(node: OnnxNode) -> Value:
    """Per tensor, axis or block, from 2 to 16 bits, int32 and small floats; run-time scales too.

    Constants of 4 or 2 bits become int8, which holds them all.
    """
    x = node.value(0)
    if x.data is not None and x.type.dtype in dtypes.SMALL_INTEGERS:
        x = constant(x.name, x.data.astype(np.int8))
    if x.type.dtype not in QUANTIZABLE:
        _refuse_type(node, str(x.type.dtype))
    if node.attr("output_dtype", 0) not in (0, 1):
        node.fail("the result is asked for in another type than float32")
    if not _is_fixed(node):
        scale, zero = _broadcast(node, x)
        return node.apply(Elementwise("dequantize"), x, scale, zero).output
    quant = _quant(node, x)
    if x.data is not None:
        x = constant(x.name, x.data, x.type.with_quant(quant))
    elif x.type.quant != quant:
        x = node.apply(AsQuant(quant), x, suffix="stored").output
    return node.apply(Dequantize(), x).output


def _quant(node: OnnxNode, x: Value) -> Quant:
    """Return the quantization that the scale and zero point of the node give to x."""
    scale = node.const(1, "the scale")
    zero = node.const(2, "the zero point")
    assert scale is not None
    axis = int(node.attr("axis", 1))
    zeros = np.zeros(scale.shape, np.int32) if zero is None else zero
    if scale.size == 1:
        return Quant.per_tensor(float(scale.reshape(-1)[0]), int(zeros.reshape(-1)[0]))
    axis += x.type.rank if axis < 0 else 0
    if scale.ndim != 1 or not 0 <= axis < x.type.rank or x.shape[axis] != scale.size:
        node.fail(f"{scale.size} scales do not fit axis {axis} of {x.type}")
    scales = tuple(float(s) for s in scale)
    points = tuple(int(z) for z in np.broadcast_to(zeros.reshape(-1), scale.shape))
    return Quant(scales, points, axis)


def _stored_type(node: OnnxNode) -> DType:
    zero = node.optional(2)
    if zero is not None:
        dtype = zero.type.dtype
    else:
        number = int(node.attr("output_dtype", 0))
        names = {0: dtypes.U8, 2: dtypes.U8, 3: dtypes.I8, 4: dtypes.U16, 5: dtypes.I16}
        found = names.get(number)
        if found is None:
            _refuse_type(node, f"number {number}")
        dtype = found
    if dtype not in QUANTIZABLE:
        _refuse_type(node, str(dtype))
    node.attr("output_dtype")
    return dtype


def _refuse_type(node: OnnxNode, name: str) -> NoReturn:
    node.fail(
        f"quantized elements of type {name}",
        why="stored integers are int8, uint8, int16, uint16 or int32",
        hint="quantize the model to int8",
    )


def _real(node: OnnxNode, x: Value) -> Value:
    if x.type.dtype.is_integer:
        return node.apply(Cast(dtypes.F32), x, suffix="real").output
    if x.type.dtype is not dtypes.F32:
        node.fail(f"real numbers of type {x.type.dtype}", hint="convert the model to float32")
    return x


def _is_fixed(node: OnnxNode) -> bool:
    """Tell whether scale and zero point are known, for the whole tensor or an axis."""
    scale, zero = node.value(1), node.optional(2)
    if scale.type.dtype is not dtypes.F32:
        node.fail(f"scales of type {scale.type.dtype}", hint="convert the model to float32")
    known = scale.data is not None and (zero is None or zero.data is not None)
    return known and not node.attr("block_size", 0)


def _broadcast(node: OnnxNode, x: Value) -> tuple[Value, Value]:
    """Return scale and zero point (int32) as operands of an element-wise function on x."""
    scale, zero = node.value(1), node.optional(2)
    if zero is None:
        zero = node.constant(np.zeros(scale.shape, np.int32), "zero_point")
    if zero.data is not None:
        zero = node.constant(zero.data.astype(np.int32), "zero_point")
    else:
        zero = node.apply(Cast(dtypes.I32), zero, suffix="zero_point").output
    axis = int(node.attr("axis", 1))
    axis += x.type.rank if axis < 0 else 0
    if node.attr("block_size", 0):
        return _unblocked(node, x, scale, axis), _unblocked(node, x, zero, axis)
    if scale.type.numel == 1:
        return _as_shape(node, scale, (), "scale"), _as_shape(node, zero, (), "zero_point.scalar")
    if scale.type.rank != 1 or not 0 <= axis < x.type.rank or x.shape[axis] != scale.type.numel:
        node.fail(f"{scale.type.numel} scales do not fit axis {axis} of {x.type}")
    shape = (scale.type.numel, *[1] * (x.type.rank - axis - 1))
    return _as_shape(node, scale, shape, "scales"), _as_shape(node, zero, shape, "zero_points")


def _as_shape(node: OnnxNode, value: Value, shape: tuple[int, ...], suffix: str) -> Value:
    if value.shape == shape:
        return value
    if value.data is not None:
        return node.constant(value.data.reshape(shape), suffix)
    return node.apply(Reshape(shape), value, suffix=suffix).output


def _unblocked(node: OnnxNode, x: Value, value: Value, axis: int) -> Value:
    """Return one number for each element of x from one for each block along the axis."""
    data = node.data(value, "a scale of blocks")
    blocks = np.repeat(data, int(node.attr("block_size")), axis)
    return node.constant(blocks[tuple(map(slice, x.shape))], f"{value.name}.blocks")
