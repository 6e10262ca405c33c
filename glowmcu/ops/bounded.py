"""Bounded: a tensor of which only a part that is known at run time is meant; BitCast."""

from __future__ import annotations

import numpy as np
import onnx

from glowmcu.core import dtypes
from glowmcu.core.dtypes import DType
from glowmcu.core.types import Array, TensorType
from glowmcu.graph.graph import Value
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder
from glowmcu.ops.base import INNER, Example, Op, f32, onnx_op
from glowmcu.ops.onnx_node import OnnxNode


class Bounded(Op):
    """x, of which only the first `extent` indices of dimension `axis` are meant.

    The shape of x is the capacity. The frontend follows bounded dimensions to the outputs, where
    it adds the actual shape (frontend/extent.py).
    """

    axis: int

    raw = True

    def infer(self, x: TensorType, extent: TensorType) -> TensorType:
        if extent != TensorType(dtypes.I32, ()):
            raise TypeError(f"an extent is a number of type i32, not {extent}")
        return x

    def reference(self, x: Array, extent: Array) -> Array:
        return x

    def lower(self, b: Builder, x: Buffer, extent: Buffer) -> Buffer:
        return b.view(x, b.result().type)

    examples = (Example((f32(4, 3), TensorType(dtypes.I32, ())), attributes={"axis": 0}),)


@onnx_op("Bounded", domain=INNER)
def import_bounded(node: OnnxNode) -> Value:
    """What operators with data-dependent shapes are made of."""
    return node.apply(Bounded(node.attr("axis", 0)), node.value(0), node.value(1)).output


class BitCast(Op):
    """The same bits as elements of another type of the same size."""

    dtype: DType

    raw = True

    def infer(self, x: TensorType) -> TensorType:
        if x.dtype.bits != self.dtype.bits or x.dtype.bits < 8:
            raise TypeError(f"the bits of {x.dtype} are no {self.dtype}")
        return TensorType(self.dtype, x.shape)

    def reference(self, x: Array) -> Array:
        return np.ascontiguousarray(x).view(self.dtype.numpy).reshape(x.shape)

    def lower(self, b: Builder, x: Buffer) -> Buffer:
        return b.view(x, b.result().type)

    examples = (Example((f32(3, 5),), {"dtype": dtypes.I32}),)


@onnx_op("BitCast")
def import_bit_cast(node: OnnxNode) -> Value:
    """Between types of one size."""
    number = int(node.attr("to"))
    try:
        dtype = dtypes.of(onnx.helper.tensor_dtype_to_np_dtype(number))
    except (TypeError, KeyError, ValueError):
        node.fail(f"elements of type number {number}")
    return node.apply(BitCast(dtype), node.value(0)).output
