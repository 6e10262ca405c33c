"""CumSum, CumProd: running sums along one axis, forward or backward, or running products."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.types import Array, TensorType
from glowmcu.graph.graph import Value
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder
from glowmcu.instr.instruction import In, Instruction, Out
from glowmcu.ops.base import Example, Op, f32, onnx_op
from glowmcu.ops.onnx_node import OnnxNode
from glowmcu.ops.reshape import normal_axis
from glowmcu.targets.kernel import Kernel


class CumSum(Op):
    """y[i] = sum of x[j] over j <= i along `axis` (reverse: j >= i; exclusive: without i).

    product  the product instead of the sum
    """

    floats = (dtypes.F32, dtypes.F64)

    axis: int
    exclusive: bool = False
    reverse: bool = False
    product: bool = False

    def infer(self, x: TensorType) -> TensorType:
        return x.real()

    def reference(self, x: Array) -> Array:
        shape = (math.prod(x.shape[: self.axis]), x.shape[self.axis], -1)
        flat = x.reshape(shape) if x.size else x
        found = running_sum(flat, self.exclusive, self.reverse, self.product)
        return found.reshape(x.shape) if x.size else x

    def lower(self, b: Builder, x: Buffer) -> Buffer:
        y, shape = b.result(), x.type.shape
        if y.type.numel == 0:
            return b.view(x, y.type)
        b.emit(
            RunningSum(
                y=y,
                x=x,
                outer=math.prod(shape[: self.axis]),
                size=shape[self.axis],
                inner=math.prod(shape[self.axis + 1 :]),
                exclusive=self.exclusive,
                reverse=self.reverse,
                product=self.product,
            )
        )
        return y

    examples = (
        Example((f32(2, 5, 3),), {"axis": 1}, tolerance=1e-6),
        Example((f32(7),), {"axis": 0, "exclusive": True, "reverse": True}, tolerance=1e-6),
        Example((f32(3, 4),), {"axis": 1, "product": True, "exclusive": True}, tolerance=1e-6),
        Example((TensorType(dtypes.I32, (3, 4)),), {"axis": 1, "reverse": True}),
        Example((TensorType(dtypes.I64, (3, 4)),), {"axis": 0, "exclusive": True}),
    )


def running_sum(x: Array, exclusive: bool, reverse: bool, product: bool = False) -> Array:
    """Return running sums of x [outer, size, inner] along its middle, added one after the other."""
    order = slice(None, None, -1) if reverse else slice(None)
    combined = (np.cumprod if product else np.cumsum)(x[:, order], axis=1, dtype=x.dtype)
    sums: Array = np.asarray(combined)
    if exclusive:
        first = np.full_like(sums[:, :1], 1 if product else 0)
        sums = np.concatenate([first, sums[:, :-1]], axis=1)
    return np.ascontiguousarray(sums[:, order])


def _view(i: RunningSum) -> Mapping[str, Any]:
    dtype = i.y.type.dtype
    unsigned = f"uint{max(32, dtype.bits)}_t"  # wraps around without undefined behaviour
    return {
        "type": dtype.c,
        "sum": unsigned if dtype.is_integer else dtype.c,
        "outer": i.outer,
        "size": i.size,
        "inner": i.inner,
        "exclusive": i.exclusive,
        "reverse": i.reverse,
        "start": 1 if i.product else 0,
        "sign": "*" if i.product else "+",
    }


class RunningSum(Instruction):
    """y[a][i][c] = sum of x[a][j][c] over the elements up to i, in the order of the sums."""

    y: Out
    x: In
    outer: int
    size: int
    inner: int
    exclusive: bool
    reverse: bool
    product: bool = False

    kernels = (Kernel("gm_running_sum", template="cumsum.c.j2", view=_view),)
    may_share = (("y", "x"),)

    def reference(self, x: Array) -> Array:
        flat = x.reshape(self.outer, self.size, self.inner)
        return running_sum(flat, self.exclusive, self.reverse, self.product)


@onnx_op("CumSum", "CumProd")
def import_cum_sum(node: OnnxNode) -> Value:
    """A constant axis, exclusive and reverse."""
    x = node.value(0)
    found = node.const(1, "the axis")
    if found is None:
        node.fail("there is no axis")
    if x.type.dtype in (dtypes.F16, dtypes.BF16, dtypes.BOOL):
        node.fail(f"sums of {x.type.dtype} are not supported", hint="cast to float32 before")
    axis = normal_axis(node, int(found.reshape(-1)[0]), x.type.rank)
    exclusive, reverse = bool(node.attr("exclusive", 0)), bool(node.attr("reverse", 0))
    op = CumSum(axis, exclusive, reverse, node.op_type == "CumProd")
    return node.apply(op, x).output
