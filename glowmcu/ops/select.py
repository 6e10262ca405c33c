"""Orders and places that depend on the data: sorted elements, nonzero ones, different rows."""

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
from glowmcu.ops.base import INNER, Example, Op, f32, onnx_op
from glowmcu.ops.onnx_node import OnnxNode
from glowmcu.targets.kernel import Kernel

_I64 = dtypes.I64


class SortOrder(Op):
    """The indices along `axis` of the `count` largest (or smallest) elements, in order.

    Of equal elements the one with the smaller index comes first. NaN is the largest number.
    """

    floats = (dtypes.F32, dtypes.F64)

    axis: int
    count: int
    largest: bool = True

    def infer(self, x: TensorType) -> TensorType:
        if x.quant is None and x.dtype.is_float and x.dtype.bits < 32:
            raise TypeError(f"elements of type {x.dtype} are not sorted")
        shape = (*x.shape[: self.axis], self.count, *x.shape[self.axis + 1 :])
        return TensorType(_I64, shape)

    def reference(self, x: Array) -> Array:
        return _order(x, self.axis, self.count, self.largest)

    def integer(self, inputs: Any, outputs: Any) -> bool:
        return True

    def lower(self, b: Builder, x: Buffer) -> Buffer:
        y, shape = b.result(), x.type.shape
        if y.type.numel:
            b.emit(
                SortedPlaces(
                    y=y,
                    x=x,
                    outer=math.prod(shape[: self.axis]),
                    size=shape[self.axis],
                    inner=math.prod(shape[self.axis + 1 :]),
                    count=self.count,
                    largest=self.largest,
                )
            )
        return y

    examples = (
        Example((f32(3, 9),), {"axis": 1, "count": 4}),
        Example((TensorType(dtypes.I32, (7, 2)),), {"axis": 0, "count": 7, "largest": False}),
    )


def _order(x: Array, axis: int, count: int, largest: bool) -> Array:
    if not largest:
        found = np.argsort(x, axis=axis, kind="stable")
    else:
        turned = np.flip(x, axis)
        found = np.flip(x.shape[axis] - 1 - np.argsort(turned, axis=axis, kind="stable"), axis)
    return np.take(found, np.arange(count), axis).astype(np.int64)


def _sort_view(i: SortedPlaces) -> Mapping[str, Any]:
    sizes = {n: getattr(i, n) for n in ("outer", "size", "inner", "count")}
    kind = {"type": i.x.type.dtype.c, "real": i.x.type.dtype.is_float}
    return {**kind, "largest": i.largest, "sign": ">" if i.largest else "<", **sizes}


class SortedPlaces(Instruction):
    """y[a][j][c] = index of the j-th element of x[a][:][c] in order."""

    y: Out
    x: In
    outer: int
    size: int
    inner: int
    count: int
    largest: bool

    kernels = (Kernel("gm_sorted_places", template="sorted_places.c.j2", view=_sort_view),)

    def reference(self, x: Array) -> Array:
        return _order(x.reshape(self.outer, self.size, self.inner), 1, self.count, self.largest)


class NonzeroPlaces(Op):
    """The indices of true elements of x [n], zeros behind them; and how many they are."""

    def infer(self, x: TensorType) -> tuple[TensorType, TensorType]:
        if x.dtype is not dtypes.BOOL or x.rank != 1:
            raise TypeError(f"places are found in a row of bool, not in {x}")
        return TensorType(_I64, x.shape), TensorType(dtypes.I32, ())

    def reference(self, x: Array) -> tuple[Array, Array]:
        return _places(x)

    def lower(self, b: Builder, x: Buffer) -> tuple[Buffer, Buffer]:
        y, extent = b.result(0), b.result(1)
        b.emit(FindNonzero(y=y, extent=extent, x=x, size=x.type.numel))
        return y, extent

    examples = (Example((TensorType(dtypes.BOOL, (9,)),), low=0, high=2),)


def _places(x: Array) -> tuple[Array, Array]:
    found = np.flatnonzero(x)
    places = np.zeros(x.size, np.int64)
    places[: found.size] = found
    return places, np.asarray(found.size, np.int32)


class FindNonzero(Instruction):
    """y = the places of nonzero bytes of x in order, then zeros; extent = their number."""

    y: Out
    extent: Out
    x: In
    size: int

    kernels = (Kernel("gm_find_nonzero", core=True),)

    def reference(self, x: Array) -> tuple[Array, Array]:
        return _places(x)


class UniqueRows(Op):
    """The different rows of x [n, m]: where each is first, the group of each row, their sizes.

    The groups are in lexicographic order, or (unless `sorted`) in the order of their first rows.
    The fourth result is the number of groups. NaN equals NaN and comes last.
    """

    floats = (dtypes.F32, dtypes.F64)

    sorted: bool = True

    def infer(self, x: TensorType) -> tuple[TensorType, ...]:
        row = TensorType(_I64, x.shape[:1])
        if x.rank != 2 or (x.dtype.is_float and x.dtype.bits < 32):
            raise TypeError(f"rows of {x} are not compared")
        return row, row, row, TensorType(dtypes.I32, ())

    def reference(self, x: Array) -> tuple[Array, ...]:
        return _groups(x, self.sorted)

    def lower(self, b: Builder, x: Buffer) -> tuple[Buffer, ...]:
        first, group, count, extent = (b.result(i) for i in range(4))
        b.emit(
            GroupRows(
                first=first,
                group=group,
                count=count,
                extent=extent,
                x=x,
                rows=x.type.shape[0],
                cols=x.type.shape[1],
                ordered=self.sorted,
            )
        )
        return first, group, count, extent

    examples = (
        Example((TensorType(dtypes.I32, (9, 1)),), low=0, high=4),
        Example((TensorType(dtypes.I32, (9, 2)),), {"sorted": False}, low=0, high=2),
    )


def _groups(x: Array, ordered: bool) -> tuple[Array, ...]:
    rows = x.shape[0]
    results = [np.zeros(rows, np.int64) for _ in range(3)]
    if not x.size:
        return (*results, np.asarray(0, np.int32))
    order = np.lexsort(x.T[::-1])
    rising = x[order]
    same = (rising[1:] == rising[:-1]) | ((rising[1:] != rising[1:]) & (rising[:-1] != rising[:-1]))
    starts = np.flatnonzero([True, *~same.all(axis=1)])
    first, count = order[starts], np.diff([*starts, rows])
    group = np.empty(rows, np.int64)
    group[order] = np.repeat(np.arange(starts.size), count)
    if not ordered:
        order = np.argsort(first)
        first, count, group = first[order], count[order], np.argsort(order)[group]
    for array, found in zip(results, (first, group, count), strict=True):
        array[: found.size] = found
    return (*results, np.asarray(first.size, np.int32))


def _group_view(i: GroupRows) -> Mapping[str, Any]:
    kind = {"type": i.x.type.dtype.c, "real": i.x.type.dtype.is_float}
    return {**kind, "rows": i.rows, "cols": i.cols, "ordered": i.ordered}


class GroupRows(Instruction):
    """Groups of equal rows of x: the first row and the size of each, the group of every row.

    extent   how many groups there are
    ordered  they are in lexicographic order, else in that of their first rows
    """

    first: Out
    group: Out
    count: Out
    extent: Out
    x: In
    rows: int
    cols: int
    ordered: bool

    kernels = (Kernel("gm_group_rows", template="group_rows.c.j2", view=_group_view),)

    def reference(self, x: Array) -> tuple[Array, ...]:
        return _groups(x.reshape(self.rows, self.cols), self.ordered)


@onnx_op("SortOrder", domain=INNER)
def import_sort_order(node: OnnxNode) -> Value:
    """What TopK is made of."""
    op = SortOrder(node.attr("axis"), node.attr("count"), bool(node.attr("largest")))
    return node.apply(op, node.value(0)).output


@onnx_op("NonzeroPlaces", domain=INNER)
def import_nonzero_places(node: OnnxNode) -> tuple[Value, ...]:
    """What NonZero and Compress are made of."""
    return node.apply(NonzeroPlaces(), node.value(0), outputs=2).outputs


@onnx_op("UniqueRows", domain=INNER)
def import_unique_rows(node: OnnxNode) -> tuple[Value, ...]:
    """What Unique is made of."""
    return node.apply(UniqueRows(bool(node.attr("sorted"))), node.value(0), outputs=4).outputs
