"""Broadcast: dimensions of size 1 repeated; Expand and Tile are made of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from glowmcu.core.types import Array, TensorType
from glowmcu.graph.graph import Value
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder
from glowmcu.ops.base import Example, Op, f32, i8, onnx_op
from glowmcu.ops.onnx_node import OnnxNode
from glowmcu.ops.reshape import reshaped
from glowmcu.ops.strided_copy import Move, dense_strides, emit_move


class Broadcast(Op):
    """x with its dimensions of size 1 repeated to `shape`; missing ones are added in front."""

    shape: tuple[int, ...]

    raw = True

    def infer(self, x: TensorType) -> TensorType:
        if np.broadcast_shapes(x.shape, self.shape) != self.shape:
            raise TypeError(f"{x.shape} does not broadcast to {self.shape}")
        quant = x.quant
        if quant is not None and quant.axis is not None:
            axis = quant.axis + len(self.shape) - x.rank
            if self.shape[axis] != len(quant.scale):
                raise TypeError(f"dimension {axis} has one scale and cannot be repeated")
            quant = replace(quant, axis=axis)
        return replace(x, shape=self.shape, quant=quant)

    def reference(self, x: Array) -> Array:
        return np.ascontiguousarray(np.broadcast_to(x, self.shape)).reshape(self.shape)

    def lower(self, b: Builder, x: Buffer) -> Buffer:
        y = b.result()
        if y.type.numel in (x.type.numel, 0):
            return b.view(x, y.type)
        added = len(self.shape) - x.type.rank
        strides = [0] * added + [
            0 if size == 1 else stride
            for size, stride in zip(x.type.shape, dense_strides(x.type.shape), strict=True)
        ]
        emit_move(b, y, x, Move(self.shape, tuple(strides), dense_strides(self.shape)))
        return y

    examples = (
        Example((f32(3, 1),), {"shape": (2, 3, 4)}),
        Example((f32(5),), {"shape": (3, 5)}),
        Example((i8(2, 1, 3),), {"shape": (2, 4, 3)}, output=i8(2, 4, 3)),
    )


def broadcasted(node: OnnxNode, x: Value, shape: tuple[int, ...], suffix: str = "") -> Value:
    """Return x broadcast to a shape: x itself where it has that shape."""
    if shape == x.shape:
        return x
    return node.apply(Broadcast(shape), x, suffix=suffix).output


@onnx_op("Expand")
def import_expand(node: OnnxNode) -> Value:
    """A constant shape, broadcast both ways."""
    x = node.value(0)
    shape = node.ints(1, "shape")
    if shape is None:
        node.fail("there is no shape")
    try:
        target = np.broadcast_shapes(x.shape, shape)
    except ValueError:
        node.fail(f"{x.shape} does not broadcast to {shape}")
    return broadcasted(node, x, tuple(target))


def _repeats(node: OnnxNode, rank: int) -> tuple[int, ...]:
    """Return how often each dimension repeats; opset 1 gives one count and one axis."""
    if node.opset >= 6:
        found = node.ints(1, "repeats")
    else:
        count, axis = node.ints(1, "tiles"), node.ints(2, "axis")
        if count is None or axis is None:
            node.fail("tiles or axis is missing")
        found = tuple(count[0] if i == axis[0] else 1 for i in range(rank))
    if found is None or len(found) != rank or min(found, default=0) < 0:
        node.fail(f"the repeats {found} do not go with {rank} dimensions")
    return tuple(found)


@onnx_op("Tile")
def import_tile(node: OnnxNode) -> Value:
    """Constant repeats."""
    x: Value = node.value(0)
    repeats = _repeats(node, x.type.rank)
    inner: list[int] = []
    outer: list[int] = []
    for size, count in zip(x.shape, repeats, strict=True):
        inner += [1, size] if count != 1 else [size]
        outer += [count, size] if count != 1 else [size]
    shape = tuple(s * c for s, c in zip(x.shape, repeats, strict=True))
    if shape == x.shape:
        return x
    split = reshaped(node, x, tuple(inner), suffix="split")
    repeated = broadcasted(node, split, tuple(outer), suffix="repeated")
    return reshaped(node, repeated, shape)
