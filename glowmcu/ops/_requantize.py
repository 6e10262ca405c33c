"""Shared by concat, pad and resize: bring a tensor to the quantization of the result."""

from __future__ import annotations

from glowmcu.core.types import Quant, TensorType, dequantize, quantize
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder
from glowmcu.ops.lut import emit_lut, every_value, has_table


def is_requantizable(x: TensorType, y: TensorType) -> bool:
    """Tell whether `requantized` can bring elements of type x to type y."""
    if x.dtype == y.dtype and x.quant == y.quant:
        return True
    return has_table(x, y) and _per_tensor(x.quant) and _per_tensor(y.quant)


def _per_tensor(quant: Quant | None) -> bool:
    return quant is not None and quant.axis is None


def requantized(b: Builder, x: Buffer, y: TensorType) -> Buffer:
    """Return x with the element type and quantization of y: x itself where it has them."""
    if x.type.dtype == y.dtype and x.type.quant == y.quant:
        return x
    assert x.type.quant is not None
    assert y.quant is not None
    table = quantize(dequantize(every_value(x.type.dtype), x.type.quant), y.quant, y.dtype)
    moved = b.activation(y.with_shape(x.type.shape), f"{x.name}.requantized")
    emit_lut(b, moved, x, table)
    return moved
