"""TopK, NonZero, Compress, Unique: results whose size may depend on the data (see extent.py)."""

from __future__ import annotations

import math

import numpy as np

from glowmcu.core import dtypes
from glowmcu.frontend.bodies.body import Body, body
from glowmcu.ops.onnx_node import OnnxNode


@body("TopK")
def top_k(b: Body, node: OnnxNode) -> tuple[str, ...]:
    """Largest or smallest, always sorted; a k computed at run time gives as many as asked for."""
    x = node.value(0)
    axis = int(node.attr("axis", -1)) % x.type.rank
    node.attr("sorted")
    largest = int(node.attr("largest", 1))
    k = node.attr("k") if node.opset < 10 else node.value(1).data
    count = x.shape[axis] if k is None else int(np.asarray(k).reshape(-1)[0])
    if not 0 <= count <= x.shape[axis]:
        node.fail(f"{count} of {x.shape[axis]} elements")
    sorted_ = b.real(0) if x.type.dtype in (dtypes.F16, dtypes.BF16) else b.input(0)
    places = b.inner("SortOrder", sorted_, axis=axis, count=count, largest=largest)
    if k is None:
        extent = b.cast(b.reshape(b.input(1)), dtypes.I32)
        extent = b("Min", extent, np.asarray(count, np.int32))
        places = b.inner("Bounded", places, extent, axis=axis)
    return b("GatherElements", b.input(0), places, axis=axis), places


@body("NonZero")
def non_zero(b: Body, node: OnnxNode) -> str:
    """The coordinates of all elements that are not zero."""
    x = node.value(0)
    flat = b.reshape(b.cast(b.input(0), dtypes.BOOL), x.type.numel)
    places, extent = b.inner_many("NonzeroPlaces", flat, outputs=2)
    places = b.inner("Bounded", places, extent, axis=0)
    rows = []
    for axis, size in enumerate(x.shape):
        stride = math.prod(x.shape[axis + 1 :])
        row = b("Div", places, np.asarray(stride, np.int64)) if stride > 1 else places
        row = b("Mod", row, np.asarray(size, np.int64)) if axis else row
        rows.append(b.reshape(row, 1, x.type.numel))
    return b("Concat", *rows, axis=0)


@body("Compress")
def compress(b: Body, node: OnnxNode) -> str:
    """Conditions computed at run time."""
    x, condition = node.value(0), node.value(1)
    axis = node.attr("axis")
    if axis is None:
        name, axis, size = b.reshape(b.input(0), x.type.numel), 0, x.type.numel
    else:
        name, axis = b.input(0), int(axis) % x.type.rank
        size = x.shape[axis]
    count = min(size, condition.type.numel)
    flat = b.part(b.reshape(b.input(1), condition.type.numel), 0, 0, count)
    places, extent = b.inner_many("NonzeroPlaces", flat, outputs=2)
    return b("Gather", name, b.inner("Bounded", places, extent, axis=0), axis=axis)


@body("Unique")
def unique(b: Body, node: OnnxNode) -> tuple[str, ...]:
    """Elements, or slices along an axis; sorted or in the order of their first appearance."""
    x, axis = node.value(0), node.attr("axis")
    if axis is None:
        name = rows = b.reshape(b.input(0), x.type.numel)
        axis, count = 0, x.type.numel
    else:
        name, axis = b.input(0), int(axis) % x.type.rank
        count = x.shape[axis]
        rows = b.transpose(name, axis, *(d for d in range(x.type.rank) if d != axis))
    if x.type.dtype in (dtypes.F16, dtypes.BF16):
        rows = b.cast(rows, dtypes.F32)
    rows = b.reshape(rows, count, x.type.numel // max(count, 1))
    ordered = int(node.attr("sorted", 1))
    found = b.inner_many("UniqueRows", rows, outputs=4, sorted=ordered)
    first, sizes = (b.inner("Bounded", found[i], found[3], axis=0) for i in (0, 2))
    return b("Gather", name, first, axis=axis), first, found[1], sizes


@body("NonMaxSuppression")
def non_max_suppression(b: Body, node: OnnxNode) -> str:
    """Constant limits; as many boxes as are selected, up to the limit for every class."""
    boxes = node.value(0)
    limit = node.const(2, "the number of boxes")
    count = 0 if limit is None else max(0, int(limit.reshape(-1)[0]))
    overlap, least = node.const(3, "the IoU threshold"), node.const(4, "the score threshold")
    count = min(count, boxes.shape[1])
    selected, extent = b.inner_many(
        "Suppress",
        b.real(0),
        b.real(1),
        outputs=2,
        count=count,
        overlap=0.0 if overlap is None else float(overlap.reshape(-1)[0]),
        least=-math.inf if least is None else float(least.reshape(-1)[0]),
        centred=int(node.attr("center_point_box", 0)),
    )
    return b.inner("Bounded", selected, extent, axis=0)
