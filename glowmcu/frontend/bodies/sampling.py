"""GridSample, RoiAlign, DeformConv: coordinates, then samples of x at them."""

from __future__ import annotations

import math

import numpy as np

from glowmcu.frontend.bodies.body import Body, body
from glowmcu.ops.onnx_node import OnnxNode

_MODES = {"bilinear": "linear", "bicubic": "cubic"}


@body("GridSample")
def grid_sample(b: Body, node: OnnxNode) -> str:
    """Lines, images and volumes; every mode and padding."""
    x, grid = node.value(0), node.value(1)
    mode = node.attr("mode", "linear")
    corners = int(node.attr("align_corners", 0))
    dims = x.type.rank - 2
    sizes = np.asarray(x.shape[2:], np.float32)
    last = b("Gather", b.real(1), np.arange(dims)[::-1].astype(np.int64), axis=-1)
    factor = (sizes - 1) / 2 if corners else sizes / 2
    at = b("Add", b("Mul", last, factor), (sizes - 1) / 2)
    points = math.prod(grid.shape[1:-1])
    y = b.inner(
        "Sample",
        b.real(0),
        b.reshape(at, grid.shape[0], points, dims),
        mode=_MODES.get(mode, mode),
        padding=node.attr("padding_mode", "zeros"),
        corners=corners,
    )
    return b.like(b.reshape(y, *x.shape[:2], *grid.shape[1:-1]), 0)


@body("DeformConv")
def deform_conv(b: Body, node: OnnxNode) -> str:
    """Images; groups, offset groups, mask and bias."""
    x, w, offset = (node.value(i) for i in range(3))
    if x.type.rank != 4:
        node.fail(f"a deformable convolution of a tensor of {x.type.rank} dimensions, not 4")
    (n, channels, _, _), (out, _, kh, kw) = x.shape, w.shape
    node.attr("kernel_shape")
    strides, dilations = node.attr("strides", (1, 1)), node.attr("dilations", (1, 1))
    pads = node.attr("pads", (0, 0, 0, 0))
    groups, offsets = node.attr("group", 1), node.attr("offset_group", 1)
    oh, ow = offset.shape[2:]
    taps = kh * kw
    base = np.zeros((1, 1, taps, 2, oh, ow), np.float32)
    ky, kx = np.divmod(np.arange(taps), kw)
    rows = np.arange(oh) * strides[0] - pads[0]
    cols = np.arange(ow) * strides[1] - pads[1]
    base[0, 0, :, 0] = (ky * dilations[0])[:, None, None] + rows[None, :, None]
    base[0, 0, :, 1] = (kx * dilations[1])[:, None, None] + cols[None, None, :]
    at = b("Add", b.reshape(b.real(2), n, offsets, taps, 2, oh, ow), base)
    at = b.reshape(b.transpose(at, 0, 1, 2, 4, 5, 3), n * offsets, taps * oh * ow, 2)
    planes = b.reshape(b.real(0), n * offsets, channels // offsets, *x.shape[2:])
    found = b.inner("Sample", planes, at, mode="linear", padding="zeros", corners=0)
    if node.optional(4) is not None:
        mask = b.reshape(b.real(4), n * offsets, 1, taps * oh * ow)
        found = b("Mul", found, mask)
    columns = b.reshape(found, n, groups, channels // groups * taps, oh * ow)
    weights = b.reshape(b.real(1), 1, groups, out // groups, -1)
    y = b.reshape(b("MatMul", weights, columns), n, out, oh, ow)
    if node.optional(3) is not None:
        y = b("Add", y, b.reshape(b.real(3), 1, out, 1, 1))
    return b.like(y, 0)


@body("RoiAlign")
def roi_align(b: Body, node: OnnxNode) -> str:
    """A fixed sampling_ratio; averages or maxima."""
    x, rois = node.value(0), node.value(1)
    ratio, scale = int(node.attr("sampling_ratio", 0)), float(node.attr("spatial_scale", 1.0))
    oh, ow = int(node.attr("output_height", 1)), int(node.attr("output_width", 1))
    if ratio <= 0:
        node.fail(
            "sampling_ratio 0",
            why="the number of samples would depend on the sizes of the regions at run time",
            hint="export it with sampling_ratio 1 or more",
        )
    default = "output_half_pixel" if node.opset < 16 else "half_pixel"
    half = node.attr("coordinate_transformation_mode", default) == "half_pixel"
    n, (height, width) = rois.shape[0], x.shape[2:]
    scaled = b("Sub", b("Mul", b.real(1), scale), 0.5 if half else 0.0)
    x1, y1, x2, y2 = (b.part(scaled, 1, i, i + 1) for i in range(4))
    places = []
    for low, high, count, size in ((y1, y2, oh, height), (x1, x2, ow, width)):
        length = b("Sub", high, low)
        length = length if half else b("Max", length, 1.0)
        steps = ((np.arange(count * ratio) + 0.5) / (count * ratio)).astype(np.float32)
        place = b("Add", low, b("Mul", length, steps.reshape(1, -1)))
        outside = b("Or", b("Less", place, -1.0), b("Greater", place, float(size)))
        inside = b("Clip", place, 0.0, float(size - 1))
        places.append(b("Where", outside, -9.0, inside))
    rows, cols = oh * ratio, ow * ratio
    shape = np.asarray([n, rows, cols, 1], np.int64)
    ys = b("Expand", b.reshape(places[0], n, rows, 1, 1), shape)
    xs = b("Expand", b.reshape(places[1], n, 1, cols, 1), shape)
    at = b.reshape(b("Concat", ys, xs, axis=3), n, rows * cols, 2)
    images = b("Gather", b.real(0), b.input(2), axis=0)
    if node.attr("mode", "avg") == "max":
        found = _corners(b, images, at, x.shape)
    else:
        found = b.inner("Sample", images, at, mode="linear", padding="zeros", corners=0)
    cells = b.reshape(found, n, x.shape[1], oh, ratio, ow, ratio)
    kind = "ReduceMax" if node.attr("mode", "avg") == "max" else "ReduceMean"
    return b.like(b(kind, cells, np.asarray([3, 5], np.int64), keepdims=0), 0)


def _corners(b: Body, images: str, at: str, shape: tuple[int, ...]) -> str:
    """The largest of the four weighted neighbours of each sample, which is what ONNX takes."""
    low = b("Floor", at)
    rest = b("Sub", at, low)
    parts = []
    last = np.asarray([shape[2] - 1, shape[3] - 1], np.float32)
    for dy, dx in ((0, 0), (0, 1), (1, 0), (1, 1)):
        corner = np.asarray([dy, dx], np.float32)
        place = b("Add", low, corner)
        place = b("Where", b("Less", at, 0.0), at, b("Min", place, last))
        weight = b("Abs", b("Sub", rest, 1 - corner))
        weight = b("Mul", b.part(weight, 2, 0, 1), b.part(weight, 2, 1, 2))
        value = b.inner("Sample", images, place, mode="nearest", padding="zeros", corners=0)
        parts.append(b("Mul", value, b.transpose(weight, 0, 2, 1)))
    return b("Max", *parts)
