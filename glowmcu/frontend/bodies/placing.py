"""Col2Im, MaxUnpool, TensorScatter: elements put at computed places of a larger tensor."""

from __future__ import annotations

import itertools
import math

import numpy as np

from glowmcu.frontend.bodies.body import Body, body
from glowmcu.ops.onnx_node import OnnxNode


@body("Col2Im")
def col2im(b: Body, node: OnnxNode) -> str:
    """Any number of dimensions; the image and block shapes are constants."""
    image, block = node.const(1, "the image shape"), node.const(2, "the block shape")
    if image is None or block is None:
        node.fail("the image or block shape is missing")
    sizes, kernel = [int(v) for v in image], [int(v) for v in block]
    dims, x = len(sizes), node.value(0)
    dilations = node.attr("dilations") or (1,) * dims
    strides = node.attr("strides") or (1,) * dims
    pads = node.attr("pads") or (0,) * (2 * dims)
    padded = [s + pads[d] + pads[d + dims] for d, s in enumerate(sizes)]
    counts = [
        (padded[d] - dilations[d] * (kernel[d] - 1) - 1) // strides[d] + 1 for d in range(dims)
    ]
    taps = np.asarray(list(itertools.product(*map(range, kernel)))) * dilations
    starts = np.asarray(list(itertools.product(*map(range, counts)))) * strides
    places = taps[:, None, :] + starts[None, :, :]
    flat = np.ravel_multi_index(tuple(places.reshape(-1, dims).T), padded).astype(np.int64)
    channels = x.shape[1] // math.prod(kernel)
    planes = x.shape[0] * channels
    columns = b.transpose(b.reshape(b.input(0), planes, flat.size), 1, 0)
    zeros = np.zeros((math.prod(padded), planes), x.type.dtype.numpy)
    found = b("ScatterND", zeros, flat.reshape(-1, 1), columns, reduction="add")
    y = b.reshape(b.transpose(found, 1, 0), x.shape[0], channels, *padded)
    for d, size in enumerate(sizes):
        y = b.part(y, d + 2, pads[d], pads[d] + size)
    return y


@body("MaxUnpool")
def max_unpool(b: Body, node: OnnxNode) -> str:
    """Indices computed at run time, a constant output shape."""
    x, kernel = node.value(0), node.attr("kernel_shape")
    dims = len(kernel)
    strides, pads = node.attr("strides") or (1,) * dims, node.attr("pads") or (0,) * (2 * dims)
    given = node.const(2, "the output shape")
    spatial = [
        (x.shape[d + 2] - 1) * strides[d] - pads[d] - pads[d + dims] + kernel[d]
        for d in range(dims)
    ]
    shape = [*x.shape[:2], *spatial]
    zeros = np.zeros(math.prod(shape), x.type.dtype.numpy)
    index = b.reshape(b.input(1), x.type.numel)
    found = b("ScatterElements", zeros, index, b.reshape(b.input(0), x.type.numel), axis=0)
    y = b.reshape(found, *shape)
    if given is not None:
        more = [int(g) - s for g, s in zip(given, shape, strict=True)]
        y = b("Pad", y, np.asarray([0] * len(shape) + more, np.int64))
    return y


@body("TensorScatter")
def tensor_scatter(b: Body, node: OnnxNode) -> str:
    """Linear and circular; the places to write at are computed at run time."""
    past, update = node.value(0), node.value(1)
    axis = int(node.attr("axis", -2)) % past.type.rank
    count = update.shape[axis]
    steps = np.arange(count, dtype=np.int64)
    if node.optional(2) is None:
        at = b("Add", np.zeros((past.shape[0], 1), np.int64), steps)
    else:
        at = b("Add", b.reshape(b.input(2), past.shape[0], 1), steps)
    if node.attr("mode", "linear") == "circular":
        at = b("Mod", at, np.asarray(past.shape[axis], np.int64))
    shape = [1] * past.type.rank
    shape[0], shape[axis] = past.shape[0], count
    index = b("Expand", b.reshape(at, *shape), np.asarray(update.shape, np.int64))
    return b("ScatterElements", b.input(0), index, b.input(1), axis=axis)
