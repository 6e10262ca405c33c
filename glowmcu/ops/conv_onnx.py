"""ONNX Conv over one, two or three spatial dimensions."""

from __future__ import annotations

from typing import Any

from glowmcu.core import dtypes
from glowmcu.core.dtypes import DType
from glowmcu.graph.graph import Value
from glowmcu.ops._linear import require_real
from glowmcu.ops._window import Sliding, extent, kernel_of, output_size, sliding
from glowmcu.ops.base import onnx_op
from glowmcu.ops.concat import Concat
from glowmcu.ops.conv import Conv2D
from glowmcu.ops.pad import Pad
from glowmcu.ops.reshape import Reshape
from glowmcu.ops.slice import Slice
from glowmcu.ops.transpose import Transpose, to_nchw, to_nhwc


@onnx_op("Conv")
def import_conv(node: Any) -> Value:
    """One to three spatial dimensions, every attribute; weights may be computed at run time."""
    x, w, b = node.value(0), node.value(1), node.optional(2)
    require_real(node, x, w, b, also=(dtypes.F64,))
    return convolution(node, x, w, b)


def convolution(
    node: Any, x: Value, w: Value, b: Value | None, dtype: DType | None = None
) -> Value:
    """Apply a convolution with the attributes of an ONNX node; dtype as in Conv2D."""
    kernel = kernel_of(node, w, "a convolution", 3)
    spatial = len(kernel)
    window = sliding(node, x.shape[2:], kernel)
    strides, dilations, pads = window.last_two()
    op = Conv2D(strides, pads, dilations, int(node.attr("group", 1)), dtype=dtype)
    perm = (0, *range(2, spatial + 2), 1)
    weights = node.apply(Transpose(perm), w, suffix="w").output
    image = to_nhwc(node, x)
    if spatial == 2:
        return to_nchw(node, node.apply(op, image, weights, b, perm=perm).output)
    if spatial == 3:
        image, weights = _depth_as_channels(node, image, weights, op.groups, window)
        depth = image.shape[0] // x.shape[0]
    else:
        (n, length, c), (o, k, i) = image.shape, weights.shape
        image = node.apply(Reshape((n, 1, length, c)), image, suffix="x").output
        weights = node.apply(Reshape((o, 1, k, i)), weights, suffix="w2d").output
    y = node.apply(op, image, weights, b, suffix="y").output
    size = (depth, *y.shape[1:3]) if spatial == 3 else y.shape[2:3]
    shape = (x.shape[0], *size, y.shape[3])
    return to_nchw(node, node.apply(Reshape(shape), y, perm=perm).output)


def _depth_as_channels(
    node: Any, x: Value, w: Value, groups: int, window: Sliding
) -> tuple[Value, Value]:
    """Return the image and weights of the same convolution in two dimensions.

    x is NDHWC, w is ODHWI. What the window sees along the depth lies side by side as channels, and
    the positions along the depth are images of the batch.
    """
    taps, stride, dilation = w.shape[1], window.strides[0], window.dilations[0]
    before, after = window.begins[0], window.ends[0]
    n, depth, h, wide, c = x.shape
    out = output_size(depth, taps, stride, dilation, before + after)
    last = (out - 1) * stride + extent(taps, dilation) - before - depth
    if before or last > 0:
        pads = (0, before, 0, 0, 0, 0, max(last, 0), 0, 0, 0)
        x = node.apply(Pad(pads), x, suffix="padded").output
    slices = [
        node.apply(
            Slice((0, k * dilation, 0, 0, 0), (1, stride, 1, 1, 1), (n, out, h, wide, c)),
            x,
            suffix=f"depth{k}",
        ).output
        for k in range(taps)
    ]
    image = slices[0] if taps == 1 else node.apply(Concat(4), *slices, suffix="depths").output
    if groups > 1:
        split = Reshape((n, out, h, wide, taps, groups, c // groups))
        image = node.apply(split, image, suffix="groups").output
        moved = Transpose((0, 1, 2, 3, 5, 4, 6))
        image = node.apply(moved, image, suffix="by_group").output
    image = node.apply(Reshape((n * out, h, wide, taps * c)), image, suffix="image").output
    o, _, kh, kw, i = w.shape
    w = node.apply(Transpose((0, 2, 3, 1, 4)), w, suffix="w_depth").output
    return image, node.apply(Reshape((o, kh, kw, taps * i)), w, suffix="w2d").output
