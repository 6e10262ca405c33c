"""Softmax and its logarithm over the last axis."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.types import Array, TensorType
from glowmcu.graph.graph import Value
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder
from glowmcu.instr.instruction import Flag, In, Instruction, Out
from glowmcu.ops._program import Input, Step, Temp
from glowmcu.ops.base import Example, Op, f32, f64, i8, i16, onnx_op
from glowmcu.ops.elementwise import emit_map
from glowmcu.ops.onnx_node import OnnxNode
from glowmcu.ops.reduction import Reduction
from glowmcu.ops.reshape import Reshape
from glowmcu.ops.softmax_s8 import (
    emit_softmax_bytes,
    emit_softmax_halfwords,
    fits_bytes,
    fits_halfwords,
)
from glowmcu.ops.transpose import Transpose
from glowmcu.targets.kernel import Kernel


class Softmax(Op):
    """exp(x) / sum(exp(x)) along the last axis, or its logarithm."""

    floats = (dtypes.F32, dtypes.F64)

    log: bool = False

    def infer(self, x: TensorType) -> TensorType:
        if x.rank == 0:
            raise TypeError("Softmax needs an axis")
        return x.with_quant(None)

    def reference(self, x: Array) -> Array:
        shifted = x - x.max(axis=-1, keepdims=True)
        with np.errstate(divide="ignore"):
            total = np.exp(shifted).sum(axis=-1, keepdims=True)
            y: Array = shifted - np.log(total) if self.log else np.exp(shifted) / total
        return y

    def integer(self, inputs: Any, outputs: Any) -> bool:
        x, y = inputs[0], outputs[0]
        return (not self.log and fits_bytes(x, y)) or fits_halfwords(x, y)

    def lower(self, b: Builder, x: Buffer) -> Buffer:
        y = b.result()
        cols = x.type.shape[-1]
        rows = math.prod(x.type.shape[:-1])
        if x.type.dtype is dtypes.F64:
            _emit_double(b, y, x, log=self.log)
            return y
        if x.type.quant is None:
            b.emit(SoftmaxF32(y=y, x=x, log=self.log, rows=rows, cols=cols))
            return y
        if not self.log and fits_bytes(x.type, y.type):
            emit_softmax_bytes(b, y, x)
        else:
            emit_softmax_halfwords(b, y, x, log=self.log)
        return y

    examples = (
        Example((f32(1, 10),), tolerance=1e-5),
        Example((f32(2, 3, 7),), low=-90.0, high=90.0, tolerance=1e-5),
        Example((f32(2, 5),), {"log": True}, tolerance=1e-5),
        Example((f64(2, 3, 7),), low=-700.0, high=700.0, tolerance=1e-14),
        Example((f64(2, 5),), {"log": True}, tolerance=1e-14),
        Example(
            (i8(3, 10, scale=0.1),), output=i8(3, 10, scale=1 / 256, zero_point=-128), tolerance=1
        ),
        Example(
            (i8(2, 50, scale=0.02),), output=i8(2, 50, scale=0.0007, zero_point=-9), tolerance=1
        ),
        *(
            Example((x,), {"log": log}, output=y, low=-6.0, high=6.0, tolerance=1)
            for log, scale in ((False, 2.0**-15), (True, 4e-4))
            for x, y in (
                (i16(3, 10, scale=2e-4), i16(3, 10, scale=scale)),
                (i16(2, 300, scale=3e-4, zero_point=99), i16(2, 300, scale=scale, zero_point=9)),
                (i16(3, 10, scale=2e-4), i8(3, 10, zero_point=-128, scale=scale * 256)),
                (i8(3, 10), i16(3, 10, scale=scale)),
            )
        ),
        Example((i8(3, 10),), {"log": True}, output=i8(3, 10, zero_point=127), tolerance=1),
    )


def _emit_double(b: Builder, y: Buffer, x: Buffer, *, log: bool) -> None:
    """Emit the definition: there is no kernel for float64."""
    row = x.type.with_shape((*x.type.shape[:-1], 1))
    highest, total, powers = b.activation(row), b.activation(row), b.activation(x.type)
    axes = (x.type.rank - 1,)
    b.emit(Reduction(y=highest, x=x, kind="max", axes=axes))
    shifted = Step("sub", (Input(0), Input(1)))
    emit_map(b, powers, (x, highest), (shifted, Step("exp", (Temp(0),))))
    b.emit(Reduction(y=total, x=powers, kind="sum", axes=axes))
    if log:
        rest = (Step("log", (Input(2),)), Step("sub", (Temp(0), Temp(1))))
        emit_map(b, y, (x, highest, total), (shifted, *rest))
    else:
        emit_map(b, y, (powers, total), (Step("div", (Input(0), Input(1))),))


class SoftmaxF32(Instruction):
    """y[r] = exp(x[r] - max) / sum, or its logarithm: x[r] - max - log(sum)."""

    y: Out
    x: In
    log: Flag
    rows: int
    cols: int

    kernels = (
        Kernel("gm_softmax_f32", core=True, accepts=lambda i: "is no logarithm" if i.log else ""),
        Kernel("gm_log_softmax_f32", core=True),
    )
    may_share = (("y", "x"),)

    def reference(self, x: Array) -> Array:
        return Softmax(self.log).reference(x)


@onnx_op("Softmax", "LogSoftmax")
def import_softmax(node: OnnxNode) -> Value:
    """Any axis; before opset 13 over all axes from `axis` on."""
    x = node.value(0)
    op = Softmax(log=node.op_type == "LogSoftmax")
    axis = int(node.attr("axis", -1 if node.opset >= 13 else 1))
    axis += x.type.rank if axis < 0 else 0
    if node.opset < 13:
        return _flattened(node, op, x, axis)
    if axis == x.type.rank - 1:
        return node.apply(op, x).output
    perm = list(range(x.type.rank))
    perm[axis], perm[-1] = perm[-1], perm[axis]
    order = tuple(perm)
    moved = node.apply(Transpose(order), x, suffix="moved").output
    return node.apply(Transpose(order), node.apply(op, moved, suffix="rows").output).output


def _flattened(node: OnnxNode, op: Softmax, x: Value, axis: int) -> Value:
    if all(size == 1 for size in x.shape[axis:-1]) and x.type.rank > 0:
        return node.apply(op, x).output
    flat = (math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))
    rows = node.apply(Reshape(flat), x, suffix="flat").output
    return node.apply(Reshape(x.shape), node.apply(op, rows, suffix="rows").output).output
