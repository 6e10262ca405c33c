"""ONNX pools: windows and whole planes of one, two or three spatial dimensions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from glowmcu.core import dtypes
from glowmcu.graph.graph import Value, apply
from glowmcu.ops._linear import require_real
from glowmcu.ops._window import Sliding, extent, sliding
from glowmcu.ops.base import onnx_op
from glowmcu.ops.elementwise import Elementwise
from glowmcu.ops.pool import MaxPoolIndices2D, Pool2D
from glowmcu.ops.reshape import Reshape
from glowmcu.ops.transpose import Transpose, to_nchw, to_nhwc


def _ceil_extra(size: int, kernel: int, s: Sliding, axis: int) -> int:
    """Return how far ONNX ceil_mode lets the last window reach beyond the padding.

    A window that would start in the padding at the end does not exist.
    """
    stride, begin, end = s.strides[axis], s.begins[axis], s.ends[axis]
    span = extent(kernel, s.dilations[axis])
    output = -(-(size + begin + end - span) // stride) + 1
    if (output - 1) * stride >= size + begin:
        output -= 1
    return max((output - 1) * stride + span - size - begin - end, 0)


def _read(node: Any, x: Value, kind: str, *, inclusive: bool = False) -> tuple[Pool2D, ...]:
    """Read the attributes of a window pool: the pool of each plane, then that over the depth."""
    spatial = x.type.rank - 2
    kernel = tuple(int(k) for k in node.attr("kernel_shape") or ())
    if spatial not in (1, 2, 3) or len(kernel) != spatial:
        node.fail(
            f"a pool over {spatial} spatial dimensions with kernel_shape {list(kernel)}",
            why="one, two and three are implemented",
        )
    window = sliding(node, x.shape[2:], kernel)
    extra = [0] * spatial
    if node.attr("ceil_mode", 0) and (node.attr("auto_pad") or "NOTSET") == "NOTSET":
        extra = [_ceil_extra(x.shape[2 + a], kernel[a], window, a) for a in range(spatial)]
    inclusive = bool(inclusive or node.attr("count_include_pad", 0))
    strides, dilations, pads = window.last_two()
    k0, k1 = (1, *kernel)[-2:]
    e0, e1 = (0, *extra)[-2:]
    plane = Pool2D(kind, (k0, k1), strides, pads, dilations, inclusive, (e0, e1))
    if spatial < 3:
        return (plane,)
    depth = Pool2D(
        kind,
        (kernel[0], 1),
        (window.strides[0], 1),
        (window.begins[0], 0, window.ends[0], 0),
        (window.dilations[0], 1),
        inclusive,
        (extra[0], 0),
    )
    return plane, depth


def _pooled(node: Any, x: Value, pools: tuple[Pool2D, ...], suffix: str = "") -> Value:
    """Apply pools to NC... x: planes are images, a single dimension is an image of one row."""
    rank = x.type.rank
    perm = (0, *range(2, rank), 1)
    image = to_nhwc(node, x)
    if rank == 4:
        return to_nchw(node, node.apply(pools[0], image, suffix=suffix, perm=perm).output, suffix)
    n, *spatial, c = image.shape
    if len(pools) == 2:
        (depth, h, w), (plane, along) = spatial, pools
        image = node.apply(Reshape((n * depth, h, w, c)), image, suffix="planes").output
        y = node.apply(plane, image, suffix="plane").output
        h, w = y.shape[1:3]
        y = node.apply(Reshape((n, depth, h * w, c)), y, suffix="columns").output
        y = node.apply(along, y, suffix="depth").output
        shape: tuple[int, ...] = (n, y.shape[1], h, w, c)
    else:
        image = node.apply(Reshape((n, 1, math.prod(spatial), c)), image, suffix="x").output
        y = node.apply(pools[0], image, suffix="y").output
        shape = (n, y.shape[2], c) if rank == 3 else (n, *(1 for _ in spatial), c)
    return to_nchw(node, node.apply(Reshape(shape), y, suffix=suffix, perm=perm).output, suffix)


def _with_indices(node: Any, x: Value, pools: tuple[Pool2D, ...]) -> tuple[Value, ...]:
    """Apply MaxPoolIndices2D to NCHW (or NCL) x; an image of one row has the same places."""
    require_real(node, x)
    if x.type.quant is not None or len(pools) > 1:
        node.fail("the output Indices of quantized values or of three spatial dimensions")
    n, c = x.shape[:2]
    image = node.apply(Reshape((n, c, *(1, *x.shape[2:])[-2:])), x, suffix="x").output
    both = MaxPoolIndices2D(pools[0], bool(node.attr("storage_order", 0)))
    found = node.apply(both, to_nhwc(node, image), suffix="nhwc", outputs=2).outputs
    results = []
    for index, value in enumerate(found):
        name = node.output_names[index] or f"{node.label}.{index}"
        moved = apply(Transpose((0, 3, 1, 2)), value, name=f"{name}.nchw", origin=(node.label,))
        shape = (n, c, *value.shape[1:3][-(x.type.rank - 2) :])
        reshape = Reshape(shape)
        results.append(apply(reshape, moved.output, name=name, origin=(node.label,)).output)
    return tuple(results)


@onnx_op("MaxPool")
def import_max_pool(node: Any) -> Value | tuple[Value, ...]:
    """One to three spatial dimensions, every attribute, float and bytes; Indices up to two."""
    x = node.value(0)
    pools = _read(node, x, "max")
    node.attr("storage_order")
    if len(node.output_names) > 1 and node.output_names[1]:
        return _with_indices(node, x, pools)
    if x.type.dtype not in (dtypes.I8, dtypes.U8):
        require_real(node, x)
    return _pooled(node, x, pools)


@onnx_op("AveragePool")
def import_average_pool(node: Any) -> Value:
    """One to three spatial dimensions, every attribute."""
    x = node.value(0)
    require_real(node, x)
    return _pooled(node, x, _read(node, x, "average"))


@onnx_op("GlobalMaxPool", "GlobalAveragePool")
def import_global_pool(node: Any) -> Value:
    """Any number of spatial dimensions."""
    kind = "max" if node.op_type == "GlobalMaxPool" else "average"
    return _global(node, node.value(0), kind)


def _global(node: Any, x: Value, kind: str, suffix: str = "") -> Value:
    if x.type.rank < 3:
        node.fail(f"a global pool needs spatial dimensions, the input has rank {x.type.rank}")
    require_real(node, x)
    spatial = x.shape[2:]
    kernel = (spatial[0], spatial[1]) if len(spatial) == 2 else (1, math.prod(spatial))
    return _pooled(node, x, (Pool2D(kind, kernel),), suffix)


@onnx_op("LpPool", "GlobalLpPool")
def import_lp_pool(node: Any) -> Value:
    """Any p: the p-th root of a sum of powers, as an average times the number of taps."""
    x, p = node.value(0), float(node.attr("p", 2))
    require_real(node, x)
    dtype = x.type.dtype.numpy
    power = node.constant(np.asarray(p, dtype), "p")
    root = node.constant(np.asarray(1.0 / p, dtype), "root")
    magnitude = node.apply(Elementwise("abs"), x, suffix="abs").output
    raised = node.apply(Elementwise("pow"), magnitude, power, suffix="pow").output
    if node.op_type == "GlobalLpPool":
        mean = _global(node, raised, "average", "mean")
        taps_ = math.prod(x.shape[2:])
    else:
        mean = _pooled(node, raised, _read(node, x, "average", inclusive=True), "mean")
        taps_ = math.prod(int(k) for k in node.attr("kernel_shape"))
    count = node.constant(np.asarray(taps_, dtype), "count")
    total = node.apply(Elementwise("mul"), mean, count, suffix="sum").output
    return node.apply(Elementwise("pow"), total, root).output  # type: ignore[no-any-return]
