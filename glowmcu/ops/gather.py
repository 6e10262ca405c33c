"""Gather: elements at the places that a tensor of indices names."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.types import Array, Quant, TensorType
from glowmcu.graph.graph import Value
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder
from glowmcu.ops.base import Example, Op, f32, i8, onnx_op
from glowmcu.ops.indexed_copy import IndexedCopy, Terms, index_constant
from glowmcu.ops.onnx_node import OnnxNode
from glowmcu.ops.reshape import normal_axis, reshaped
from glowmcu.ops.slice import Slice, sliced
from glowmcu.ops.strided_copy import Ints, dense_strides
from glowmcu.ops.transpose import Transpose


def in_range(index: Array, size: int) -> Array:
    """Return indices as the C code takes them: negative ones wrap, wrong ones are clamped."""
    found = index.astype(np.int64)
    return np.clip(np.where(found < 0, found + size, found), 0, max(size - 1, 0))


def _integer_index(index: TensorType) -> None:
    if index.dtype not in (dtypes.I32, dtypes.I64):
        raise TypeError(f"indices are i32 or i64, not {index.dtype}")


def _without_axis(quant: Quant | None) -> Quant | None:
    if quant is not None and quant.axis is not None:
        raise TypeError("elements of a tensor quantized per channel cannot be gathered")
    return quant


def emit_gather(
    b: Builder, x: Buffer, index: Buffer, shape: Ints, strides: tuple[Ints, Ints], terms: Terms
) -> Buffer:
    """Emit y[i] = x[...] for i in shape (as IndexedCopy; strides: of x, of the indices)."""
    y = b.result()
    if y.type.numel == 0:
        return b.view(x, y.type)
    known = index.data is not None
    if index.data is not None:
        index = index_constant(b, index.data.reshape(-1, len(terms)), terms)
    b.emit(
        IndexedCopy(
            y=y,
            x=x,
            index=index,
            shape=shape,
            x_strides=strides[0],
            y_strides=dense_strides(shape),
            index_strides=strides[1],
            terms=terms,
            known=known,
        )
    )
    return y


class Gather(Op):
    """y[a..., j..., c...] = x[a..., index[j...], c...], the index on dimension `axis`."""

    axis: int

    raw = True

    def infer(self, x: TensorType, index: TensorType) -> TensorType:
        _integer_index(index)
        shape = (*x.shape[: self.axis], *index.shape, *x.shape[self.axis + 1 :])
        return replace(x, shape=shape, quant=_without_axis(x.quant))

    def reference(self, x: Array, index: Array) -> Array:
        return np.take(x, in_range(index, x.shape[self.axis]), self.axis)

    def lower(self, b: Builder, x: Buffer, index: Buffer) -> Buffer:
        before, size, after = self._split(x.type.shape)
        count = index.type.rank
        strides = dense_strides(x.type.shape)
        x_strides = (*strides[: self.axis], *(0,) * count, *strides[self.axis + 1 :])
        i_strides = (*(0,) * len(before), *dense_strides(index.type.shape), *(0,) * len(after))
        terms = ((size, strides[self.axis]),)
        shape = (*before, *index.type.shape, *after)
        return emit_gather(b, x, index, shape, (x_strides, i_strides), terms)

    def _split(self, shape: Ints) -> tuple[Ints, int, Ints]:
        return shape[: self.axis], shape[self.axis], shape[self.axis + 1 :]

    examples = (
        Example((f32(5, 3), TensorType(dtypes.I64, (4,))), {"axis": 0}, low=-6, high=8),
        Example((f32(2, 5, 3), TensorType(dtypes.I32, (2, 2))), {"axis": 1}, low=-6, high=8),
        Example((f32(2, 4), TensorType(dtypes.I64, (3,))), {"axis": 1}, constants=(1,)),
        Example((i8(6, 4), TensorType(dtypes.I64, ())), {"axis": 0}, output=i8(4)),
    )


class GatherElements(Op):
    """y[a, j, c] = x[a, index[a, j, c], c], the index on dimension `axis`."""

    axis: int

    raw = True

    def infer(self, x: TensorType, index: TensorType) -> TensorType:
        _integer_index(index)
        return replace(x, shape=index.shape, quant=_without_axis(x.quant))

    def reference(self, x: Array, index: Array) -> Array:
        part = x[
            tuple(slice(n) if d != self.axis else slice(None) for d, n in enumerate(index.shape))
        ]
        return np.take_along_axis(part, in_range(index, x.shape[self.axis]), self.axis)

    def lower(self, b: Builder, x: Buffer, index: Buffer) -> Buffer:
        strides = dense_strides(x.type.shape)
        x_strides = (*strides[: self.axis], 0, *strides[self.axis + 1 :])
        i_strides = dense_strides(index.type.shape)
        terms = ((x.type.shape[self.axis], strides[self.axis]),)
        return emit_gather(b, x, index, index.type.shape, (x_strides, i_strides), terms)

    examples = (
        Example((f32(3, 4), TensorType(dtypes.I64, (2, 4))), {"axis": 0}, low=-6, high=8),
        Example((f32(3, 4), TensorType(dtypes.I32, (2, 3))), {"axis": 1}, constants=(1,)),
    )


class GatherND(Op):
    """y[p..., c...] = x[p[:batch_dims]..., index[p..., 0], ..., index[p..., k - 1], c...]."""

    batch_dims: int = 0

    raw = True

    def infer(self, x: TensorType, index: TensorType) -> TensorType:
        _integer_index(index)
        rest = x.shape[self.batch_dims + index.shape[-1] :]
        return replace(x, shape=(*index.shape[:-1], *rest), quant=_without_axis(x.quant))

    def reference(self, x: Array, index: Array) -> Array:
        batch, depth = self.batch_dims, index.shape[-1]
        found = [in_range(index[..., i], x.shape[batch + i]) for i in range(depth)]
        places = np.indices(index.shape[:-1])[:batch]
        return np.ascontiguousarray(x[(*places, *found)])

    def lower(self, b: Builder, x: Buffer, index: Buffer) -> Buffer:
        batch, depth = self.batch_dims, index.type.shape[-1]
        strides = dense_strides(x.type.shape)
        free = index.type.rank - 1 - batch
        rest = x.type.shape[batch + depth :]
        x_strides = (*strides[:batch], *(0,) * free, *strides[batch + depth :])
        i_strides = (*dense_strides(index.type.shape)[:-1], *(0,) * len(rest))
        terms = tuple((x.type.shape[batch + i], strides[batch + i]) for i in range(depth))
        shape = (*index.type.shape[:-1], *rest)
        return emit_gather(b, x, index, shape, (x_strides, i_strides), terms)

    examples = (
        Example((f32(3, 4, 2), TensorType(dtypes.I64, (5, 2))), low=-5, high=6),
        Example(
            (f32(2, 3, 4), TensorType(dtypes.I64, (2, 3, 1))), {"batch_dims": 1}, low=-4, high=6
        ),
    )


def _as_slice(x: TensorType, axis: int, index: Array) -> Slice | None:
    """Return the slice that constant indices stand for, None where they have no constant step."""
    found = in_range(index, x.shape[axis]).reshape(-1)
    steps = np.diff(found)
    if found.size == 0 or (steps.size and (steps[0] == 0 or np.any(steps != steps[0]))):
        return None
    starts = tuple(int(found[0]) if i == axis else 0 for i in range(x.rank))
    step = tuple(int(steps[0]) if i == axis and steps.size else 1 for i in range(x.rank))
    shape = tuple(found.size if i == axis else s for i, s in enumerate(x.shape))
    return Slice(starts, step, shape)


def _checked_index(node: OnnxNode, axes: tuple[int, ...]) -> Value:
    """Return the indices; constant ones must lie inside the dimensions `axes` of input 0."""
    x, index = node.value(0), node.value(1)
    if index.data is not None and x.type.numel:
        limits = np.asarray([x.shape[a] for a in axes], np.int64)
        data = index.data.reshape(-1, len(axes))
        if np.any(data < -limits) or np.any(data >= limits):
            node.fail(f"an index lies outside the dimensions {tuple(int(n) for n in limits)}")
    return index


@onnx_op("Gather")
def import_gather(node: OnnxNode) -> Value:
    """Constant or run-time indices; negative ones wrap, run-time ones out of range are clamped."""
    x = node.value(0)
    axis = normal_axis(node, node.attr("axis", 0), x.type.rank)
    index = _checked_index(node, (axis,))
    if index.data is not None:
        op = _as_slice(x.type, axis, index.data)
        if op is not None:
            shape = (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])
            part = sliced(node, x, op, suffix="" if op.shape == shape else "part")
            return reshaped(node, part, shape)
    return node.apply(Gather(axis), x, index).output


@onnx_op("GatherElements")
def import_gather_elements(node: OnnxNode) -> Value:
    """Constant or run-time indices."""
    x = node.value(0)
    axis = normal_axis(node, node.attr("axis", 0), x.type.rank)
    index = _checked_index(node, (axis,))
    return node.apply(GatherElements(axis), x, index).output


@onnx_op("GatherND")
def import_gather_nd(node: OnnxNode) -> Value:
    """Constant or run-time indices, batch_dims."""
    x, batch = node.value(0), node.attr("batch_dims", 0)
    depth = node.value(1).shape[-1]
    if batch + depth > x.type.rank:
        node.fail(f"{depth} indices after {batch} batch dimensions do not fit {x.shape}")
    index = _checked_index(node, tuple(range(batch, batch + depth)))
    return node.apply(GatherND(batch), x, index).output


@onnx_op("ReverseSequence")
def import_reverse_sequence(node: OnnxNode) -> Value:
    """Constant lengths."""
    x = node.value(0)
    batch, time = node.attr("batch_axis", 1), node.attr("time_axis", 0)
    lengths = node.const(1, "the lengths of the sequences")
    if {batch, time} != {0, 1} or x.type.rank < 2 or lengths is None:
        node.fail("batch_axis and time_axis must be 0 and 1, and lengths given")
    steps = np.arange(x.shape[time])[None, :]
    ends = lengths.reshape(-1, 1).astype(np.int64)
    places = np.where(steps < ends, ends - 1 - steps, steps)[..., None]  # [batch, time, 1]
    index = node.constant(places, "places")
    if batch == 0:
        return node.apply(GatherND(1), x, index).output
    perm = (1, 0, *range(2, x.type.rank))
    turned = node.apply(Transpose(perm), x, suffix="by_batch").output
    found = node.apply(GatherND(1), turned, index, suffix="reversed").output
    return node.apply(Transpose(perm), found).output
