"""ConvTranspose over three dimensions: a convolution of x with zeros between its elements."""

from __future__ import annotations

import numpy as np

from glowmcu.frontend.bodies.body import Body, body
from glowmcu.ops.onnx_node import OnnxNode


@body("ConvTranspose")
def conv_transpose(b: Body, node: OnnxNode) -> str:
    """Any number of dimensions; explicit pads."""
    x, w = node.value(0), node.value(1)
    dims = x.type.rank - 2
    if node.attr("auto_pad", "NOTSET") != "NOTSET" or node.attr("output_shape") is not None:
        node.fail(f"auto_pad or output_shape over {dims} spatial dimensions")
    strides, dilations = node.attr("strides") or (1,) * dims, node.attr("dilations") or (1,) * dims
    pads, extra = node.attr("pads") or (0,) * 2 * dims, node.attr("output_padding") or (0,) * dims
    groups, kernel = int(node.attr("group", 1)), w.shape[2:]
    node.attr("kernel_shape")
    name = b.input(0)
    for d in range(dims):
        if strides[d] > 1:
            name = _spread(b, name, x.shape, d, strides)
    reach = [dilations[d] * (kernel[d] - 1) for d in range(dims)]
    begins = [reach[d] - pads[d] for d in range(dims)]
    ends = [reach[d] - pads[d + dims] + extra[d] for d in range(dims)]
    name = b("Pad", name, np.asarray([0, 0, *begins, 0, 0, *ends], np.int64))
    (inputs, outputs), flip = w.shape[:2], np.asarray([-1] * dims, np.int64)
    axes = np.arange(2, dims + 2, dtype=np.int64)
    far = np.asarray([-(1 << 31)] * dims, np.int64)
    turned = b("Slice", b.input(1), flip, far, axes, flip)
    split = b.reshape(turned, groups, inputs // groups, outputs, *kernel)
    moved = b.transpose(split, 0, 2, 1, *range(3, dims + 3))
    weights = b.reshape(moved, groups * outputs, inputs // groups, *kernel)
    bias = [] if node.optional(2) is None else [b.input(2)]
    return b("Conv", name, weights, *bias, group=groups, dilations=list(dilations))


def _spread(b: Body, name: str, shape: tuple[int, ...], axis: int, strides: tuple[int, ...]) -> str:
    """Put zeros between the elements of one spatial dimension; those before it have them."""
    sizes = [(n - 1) * strides[d] + 1 if d < axis else n for d, n in enumerate(shape[2:])]
    place, size = axis + 3, sizes[axis]
    outer = [*shape[:2], *sizes[: axis + 1], 1, *sizes[axis + 1 :]]
    more = [0] * len(outer)
    more[place] = strides[axis] - 1
    padded = b("Pad", b.reshape(name, *outer), np.asarray([0] * len(outer) + more, np.int64))
    whole = [*shape[:2], *sizes[:axis], size * strides[axis], *sizes[axis + 1 :]]
    return b.part(b.reshape(padded, *whole), axis + 2, 0, (size - 1) * strides[axis] + 1)
