"""Concat: tensors side by side along one axis."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from glowmcu.core.types import Array, TensorType
from glowmcu.graph.graph import Value
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder
from glowmcu.ops._requantize import is_requantizable, requantized
from glowmcu.ops.base import Example, Op, f32, i8, onnx_op
from glowmcu.ops.copy import Copy
from glowmcu.ops.interleave import Interleave
from glowmcu.ops.onnx_node import OnnxNode
from glowmcu.ops.reshape import normal_axis
from glowmcu.ops.strided_copy import part_of


class Concat(Op):
    """All inputs one after the other along `axis`."""

    axis: int

    def infer(self, *xs: TensorType) -> TensorType:
        first = xs[0]
        for x in xs:
            other = (*x.shape[: self.axis], first.shape[self.axis], *x.shape[self.axis + 1 :])
            if other != first.shape or x.dtype != first.dtype:
                raise TypeError(f"{x} does not go beside {first} along axis {self.axis}")
        shape = list(first.shape)
        shape[self.axis] = sum(x.shape[self.axis] for x in xs)
        return first.with_shape(tuple(shape)).with_quant(None)

    def reference(self, *xs: Array) -> Array:
        return np.concatenate(xs, self.axis)

    def integer(self, inputs: Any, outputs: Any) -> bool:
        return all(is_requantizable(x, outputs[0]) for x in inputs)

    def lower(self, b: Builder, *xs: Buffer) -> Buffer:
        y = b.result()
        parts = [requantized(b, x, y.type) for x in xs if x.type.numel]
        outer = math.prod(y.type.shape[: self.axis])
        if outer > 1 and len(parts) > 1:
            runs = tuple(x.type.numel // outer for x in parts)
            b.emit(Interleave(y=y, xs=tuple(parts), outer=outer, runs=runs))
            return y
        at = 0
        for x in parts:
            b.emit(Copy(y=part_of(b, y, at, x.type.numel), x=x, bytes=x.nbytes))
            at += x.type.numel
        return y

    examples = (
        Example((f32(2, 3), f32(4, 3)), {"axis": 0}),
        Example((f32(2, 3, 2), f32(2, 1, 2), f32(2, 4, 2)), {"axis": 1}),
        Example((i8(1, 3, 4), i8(1, 3, 2)), {"axis": 2}, output=i8(1, 3, 6), tolerance=0),
        Example(
            (i8(1, 3), i8(1, 4, scale=0.02, zero_point=7)),
            {"axis": 1},
            output=i8(1, 7),
            tolerance=1,
        ),
    )


@onnx_op("Concat")
def import_concat(node: OnnxNode) -> Value:
    """Any number of tensors along any axis; empty ones are left out."""
    xs: tuple[Value, ...] = tuple(node.value(i) for i in range(len(node.inputs)))
    rank = xs[0].type.rank
    axis = normal_axis(node, node.attr("axis", 1), rank)
    for x in xs:
        same = x.type.rank == rank and all(
            i == axis or a == c for i, (a, c) in enumerate(zip(x.shape, xs[0].shape, strict=True))
        )
        if not same:
            node.fail(f"the shape {x.shape} does not go beside {xs[0].shape} along axis {axis}")
    filled = tuple(x for x in xs if x.type.numel) or xs[:1]
    if len(filled) == 1:
        return filled[0]
    return node.apply(Concat(axis), *filled).output
