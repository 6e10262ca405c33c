"""Reshape: the same elements in the same order under another shape; it costs nothing."""

from __future__ import annotations

import math
from dataclasses import replace

from glowmcu.core.types import Array, Quant, TensorType
from glowmcu.graph.graph import Value
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder
from glowmcu.ops.base import Example, Op, f32, i8, onnx_op
from glowmcu.ops.onnx_node import OnnxNode


class Reshape(Op):
    """The elements of x, row-major, as a tensor of `shape`."""

    shape: tuple[int, ...]

    raw = True
    same_bytes = True

    def infer(self, x: TensorType) -> TensorType:
        if math.prod(self.shape) != x.numel:
            raise TypeError(f"{x.numel} elements do not fill the shape {self.shape}")
        return replace(x, shape=self.shape, quant=_reshaped(x.quant, x.shape, self.shape))

    def reference(self, x: Array) -> Array:
        return x.reshape(self.shape)

    def lower(self, b: Builder, x: Buffer) -> Buffer:
        return b.view(x, b.result().type)

    examples = (
        Example((f32(2, 3, 4),), {"shape": (6, 4)}),
        Example((i8(2, 6),), {"shape": (12,)}, output=i8(12)),
    )


def _reshaped(quant: Quant | None, old: tuple[int, ...], new: tuple[int, ...]) -> Quant | None:
    """Return the quantization with its axis where that axis is now; TypeError where it is gone."""
    if quant is None or quant.axis is None:
        return quant
    before = math.prod(old[: quant.axis])
    for axis, size in enumerate(new):
        if size == old[quant.axis] and math.prod(new[:axis]) == before:
            return replace(quant, axis=axis)
    raise TypeError(f"a shape {new} mixes the channels that axis {quant.axis} of {old} tells apart")


def normal_axis(node: OnnxNode, axis: int, rank: int) -> int:
    """Return an axis counted from the front; fail at the node where there is none."""
    if not -rank <= axis < max(rank, 1):
        node.fail(f"axis {axis} does not exist in a tensor of {rank} dimensions")
    return axis + rank if axis < 0 else axis


def reshaped(node: OnnxNode, x: Value, shape: tuple[int, ...], suffix: str = "") -> Value:
    """Return x under another shape: x itself where the shape is the same already."""
    if shape == x.shape:
        return x
    return node.apply(Reshape(shape), x, suffix=suffix).output


@onnx_op("Reshape")
def import_reshape(node: OnnxNode) -> Value:
    """Shapes with 0 (copied, or with `allowzero` zero) and -1; the shape must be constant."""
    x = node.value(0)
    target = node.ints(1, "shape")
    if target is None:
        node.fail("there is no shape")
    shape = list(target)
    if not node.attr("allowzero", 0):
        for i, size in enumerate(shape):
            if size == 0:
                if i >= x.type.rank:
                    node.fail(f"the 0 at {i} of the shape {target} has no dimension to copy")
                shape[i] = x.shape[i]
    if shape.count(-1) > 1:
        node.fail(f"the shape {target} has more than one -1")
    if -1 in shape:
        known = math.prod(s for s in shape if s != -1)
        if not known:
            node.fail(f"the -1 of the shape {target} stands for no one size beside a 0")
        shape[shape.index(-1)] = x.type.numel // known
    if math.prod(shape) != x.type.numel or min(shape, default=0) < 0:
        node.fail(f"{x.type.numel} elements do not fill the shape {target}")
    return reshaped(node, x, tuple(shape))


@onnx_op("Flatten")
def import_flatten(node: OnnxNode) -> Value:
    """Every axis, also negative ones."""
    x = node.value(0)
    axis, rank = node.attr("axis", 1), x.type.rank
    if not -rank <= axis <= rank:
        node.fail(f"axis {axis} does not exist in a tensor of {rank} dimensions")
    axis = axis + rank if axis < 0 else axis
    return reshaped(node, x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


@onnx_op("Squeeze")
def import_squeeze(node: OnnxNode) -> Value:
    """Axes as attribute or input, negative ones, or none: all dimensions of size 1."""
    x = node.value(0)
    found = node.ints(1, "axes")
    if found is None:
        return reshaped(node, x, tuple(s for s in x.shape if s != 1))
    axes = {normal_axis(node, a, x.type.rank) for a in found}
    for axis in sorted(axes):
        if x.shape[axis] != 1:
            node.fail(f"axis {axis} of size {x.shape[axis]} cannot be removed")
    return reshaped(node, x, tuple(s for i, s in enumerate(x.shape) if i not in axes))


@onnx_op("Unsqueeze")
def import_unsqueeze(node: OnnxNode) -> Value:
    """Axes as attribute or input, also negative ones."""
    x = node.value(0)
    found = node.ints(1, "axes")
    if found is None:
        node.fail("there are no axes")
    rank = x.type.rank + len(found)
    axes = {normal_axis(node, a, rank) for a in found}
    if len(axes) != len(found):
        node.fail(f"the axes {found} name one dimension twice")
    rest = iter(x.shape)
    return reshaped(node, x, tuple(1 if i in axes else next(rest) for i in range(rank)))


@onnx_op("Identity")
def import_identity(node: OnnxNode) -> Value:
    """The tensor itself."""
    return node.value(0)
