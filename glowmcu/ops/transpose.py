"""Transpose: the same elements with the dimensions in another order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.types import Array, Quant, TensorType
from glowmcu.graph.graph import Value, apply
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder
from glowmcu.ops.base import Example, Op, f32, i8, onnx_op
from glowmcu.ops.onnx_node import OnnxNode
from glowmcu.ops.strided_copy import Move, dense_strides, emit_move


class Transpose(Op):
    """Dimension i of the result is dimension perm[i] of x."""

    perm: tuple[int, ...]

    raw = True

    def infer(self, x: TensorType) -> TensorType:
        if sorted(self.perm) != list(range(x.rank)):
            raise TypeError(f"perm {self.perm} does not order the {x.rank} dimensions of x")
        shape = tuple(x.shape[p] for p in self.perm)
        return replace(x, shape=shape, quant=_permuted(x.quant, self.perm))

    def reference(self, x: Array) -> Array:
        return np.ascontiguousarray(np.transpose(x, self.perm))

    def lower(self, b: Builder, x: Buffer) -> Buffer:
        y = b.result()
        if moves_nothing(x.type.shape, self.perm):
            return b.view(x, y.type)
        strides = dense_strides(x.type.shape)
        moved = tuple(strides[p] for p in self.perm)
        emit_move(b, y, x, Move(y.type.shape, moved, dense_strides(y.type.shape)))
        return y

    examples = (
        *(
            Example((TensorType(t, (3, 5)),), {"perm": (1, 0)}, low=-9, high=9)
            for t in (dtypes.I4, dtypes.U2, dtypes.E2M1)
        ),
        Example((f32(2, 3),), {"perm": (1, 0)}),
        Example((f32(2, 3, 4, 5),), {"perm": (0, 2, 3, 1)}),
        Example((f32(2, 3, 4, 5),), {"perm": (3, 1, 0, 2)}),
        Example((f32(1, 7, 1, 3),), {"perm": (2, 1, 0, 3)}),
        Example((i8(5, 9),), {"perm": (1, 0)}, output=i8(9, 5)),
    )


def _permuted(quant: Quant | None, perm: tuple[int, ...]) -> Quant | None:
    if quant is None or quant.axis is None:
        return quant
    return replace(quant, axis=perm.index(quant.axis))


def moves_nothing(shape: tuple[int, ...], perm: tuple[int, ...]) -> bool:
    """Tell whether a transpose leaves all bytes in place: it moves dimensions of size 1 only."""
    kept = [p for p in perm if shape[p] != 1]
    return kept == sorted(kept) or 0 in shape


def to_nhwc(node: OnnxNode, x: Value) -> Value:
    """Return x [N, C, ...] as [N, ..., C]; the value still goes by the name of x, with its perm."""
    perm = (0, *range(2, x.type.rank), 1)
    return apply(Transpose(perm), x, name=x.name, origin=(node.label,), perm=perm).output


def to_nchw(node: OnnxNode, y: Value, suffix: str = "") -> Value:
    """Return y [N, ..., C] as [N, C, ...]: the ONNX node's output, or with a suffix part of it."""
    perm = (0, y.type.rank - 1, *range(1, y.type.rank - 1))
    return node.apply(Transpose(perm), y, suffix=suffix).output


@onnx_op("Transpose")
def import_transpose(node: OnnxNode) -> Value:
    """Every permutation; without one the dimensions are reversed."""
    x = node.value(0)
    perm = node.attr("perm")
    rank = x.type.rank
    order = tuple(reversed(range(rank))) if perm is None else tuple(int(p) for p in perm)
    if sorted(order) != list(range(rank)):
        node.fail(f"perm {order} does not order the {rank} dimensions of the input")
    return node.apply(Transpose(order), x).output
