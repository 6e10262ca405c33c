"""Slice: a regular part of a tensor, with steps; Split is several of them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from glowmcu.core.types import Array, TensorType
from glowmcu.graph.graph import Value
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder
from glowmcu.ops.base import Example, Op, f32, i8, onnx_op
from glowmcu.ops.onnx_node import OnnxNode
from glowmcu.ops.reshape import normal_axis
from glowmcu.ops.strided_copy import Move, dense_strides, emit_move


class Slice(Op):
    """y[i] = x[starts + i * steps] for i in shape; starts inside x, steps not 0."""

    starts: tuple[int, ...]
    steps: tuple[int, ...]
    shape: tuple[int, ...]

    raw = True

    def infer(self, x: TensorType) -> TensorType:
        for start, step, size, limit in zip(
            self.starts, self.steps, self.shape, x.shape, strict=True
        ):
            last = start + step * (size - 1)
            if size and not (0 <= start < limit and 0 <= last < limit):
                raise TypeError(f"elements {start} to {last} lie outside a dimension of {limit}")
        quant = x.quant
        if quant is not None and quant.axis is not None:
            kept = [
                self.starts[quant.axis] + i * self.steps[quant.axis]
                for i in range(self.shape[quant.axis])
            ]
            quant = replace(
                quant,
                scale=tuple(quant.scale[i] for i in kept),
                zero_point=tuple(quant.zero_point[i] for i in kept),
            )
        return replace(x, shape=self.shape, quant=quant)

    def reference(self, x: Array) -> Array:
        index = [
            start + step * np.arange(size)
            for start, step, size in zip(self.starts, self.steps, self.shape, strict=True)
        ]
        return x[np.ix_(*index)] if index else x.copy()

    def lower(self, b: Builder, x: Buffer) -> Buffer:
        y = b.result()
        strides = dense_strides(x.type.shape)
        offset = sum(a * s for a, s in zip(self.starts, strides, strict=True))
        stepped = tuple(a * s for a, s in zip(self.steps, strides, strict=True))
        move = Move(self.shape, stepped, dense_strides(self.shape), offset)
        if move.numel == 0:
            return b.view(x, y.type)
        if move.is_contiguous:
            return b.view(x, y.type, offset * x.type.dtype.nbytes)
        emit_move(b, y, x, move)
        return y

    examples = (
        Example((f32(6, 4),), {"starts": (2, 0), "steps": (1, 1), "shape": (3, 4)}),
        Example((f32(6, 4),), {"starts": (5, 1), "steps": (-2, 2), "shape": (3, 2)}),
        Example((f32(2, 3, 8),), {"starts": (0, 1, 2), "steps": (1, 1, 1), "shape": (2, 2, 5)}),
        Example(
            (i8(9, 5),), {"starts": (8, 0), "steps": (-3, 1), "shape": (3, 5)}, output=i8(3, 5)
        ),
    )


def part(x: TensorType, axis: int, start: int, size: int) -> Slice:
    """Return the slice [start, start + size) of one axis."""
    starts = tuple(start if i == axis else 0 for i in range(x.rank))
    shape = tuple(size if i == axis else s for i, s in enumerate(x.shape))
    return Slice(starts, (1,) * x.rank, shape)


def _range(size: int, start: int, end: int, step: int) -> tuple[int, int]:
    """Return (first index, count) of an ONNX slice of a dimension; ends are clamped."""
    start = start + size if start < 0 else start
    end = end + size if end < 0 else end
    low, high = (0, size) if step > 0 else (-1, size - 1)
    start = min(max(start, 0), high)
    end = min(max(end, low), high)
    return start, max(0, math.ceil((end - start) / step))


@onnx_op("Slice")
def import_slice(node: OnnxNode) -> Value:
    """Constant starts, ends, axes and steps (also negative), as inputs or attributes."""
    x = node.value(0)
    starts, ends = node.ints(1, "starts"), node.ints(2, "ends")
    if starts is None or ends is None:
        node.fail("starts or ends are missing")
    axes = node.ints(3, "axes") or tuple(range(len(starts)))
    steps = node.ints(4, "steps") or (1,) * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps):
        node.fail("starts, ends, axes and steps differ in length")
    axes = tuple(normal_axis(node, a, x.type.rank) for a in axes)
    if len(set(axes)) != len(axes):
        node.fail(f"the axes {axes} name one dimension twice")
    if 0 in steps:
        node.fail("a step is 0")
    first, step, shape = [0] * x.type.rank, [1] * x.type.rank, list(x.shape)
    for axis, start, end, by in zip(axes, starts, ends, steps, strict=True):
        # a step beyond the dimension takes one element, and must stay a small number
        by = max(-x.shape[axis] - 1, min(x.shape[axis] + 1, by))
        first[axis], shape[axis] = _range(x.shape[axis], start, end, by)
        step[axis] = by if shape[axis] > 1 else 1
    return sliced(node, x, Slice(tuple(first), tuple(step), tuple(shape)))


def sliced(node: OnnxNode, x: Value, op: Slice, suffix: str = "") -> Value:
    """Return a slice of x: x itself where it is all of it."""
    if op.shape == x.shape and all(s == 1 for s in op.steps):
        return x
    return node.apply(op, x, suffix=suffix).output


@onnx_op("Split")
def import_split(node: OnnxNode) -> tuple[Value, ...]:
    """Equal or given parts; with `num_outputs` the last part may be smaller."""
    x = node.value(0)
    axis = normal_axis(node, node.attr("axis", 0), x.type.rank)
    size, count = x.shape[axis], node.outputs or len(node.output_names)
    sizes = node.ints(1, "split")
    if sizes is None:
        uneven = node.attr("num_outputs") is not None
        each = math.ceil(size / count)
        if size % count and not uneven:
            node.fail(f"{size} elements of axis {axis} do not split into {count} equal parts")
        sizes = tuple(max(0, min(each, size - i * each)) for i in range(count))
    if sum(sizes) != size or len(sizes) != count or min(sizes) < 0:
        node.fail(f"parts of {sizes} elements do not make up the {size} of axis {axis}")
    outputs = []
    for i in range(len(node.output_names)):
        op = part(x.type, axis, sum(sizes[:i]), sizes[i])
        outputs.append(_output(node, x, op, i))
    return tuple(outputs)


def _output(node: OnnxNode, x: Value, op: Slice, index: int) -> Value:
    """Return output `index` of the node: a slice that bears this output's name."""
    name = node.output_names[index] or f"{node.label}.{index}"
    one = replace(node, output_names=(name,))
    return sliced(one, x, op)
