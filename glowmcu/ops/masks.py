"""Importers made of masks: Trilu, OneHot and EyeLike."""

from __future__ import annotations

import numpy as np
import onnx

from glowmcu.core import dtypes
from glowmcu.core.types import Array
from glowmcu.graph.graph import Value
from glowmcu.ops.base import onnx_op
from glowmcu.ops.elementwise import Elementwise
from glowmcu.ops.onnx_node import OnnxNode
from glowmcu.ops.reshape import normal_axis, reshaped
from glowmcu.ops.slice import part, sliced


@onnx_op("Trilu")
def import_trilu(node: OnnxNode) -> Value:
    """Upper or lower triangles; the diagonal must be constant."""
    x = node.value(0)
    if x.type.rank < 2:
        node.fail("a triangle needs at least two dimensions")
    found = node.const(1, "the diagonal")
    diagonal = 0 if found is None else int(found.reshape(-1)[0])
    rows, cols = x.shape[-2:]
    offset = np.arange(cols)[None, :] - np.arange(rows)[:, None]
    kept = offset >= diagonal if node.attr("upper", 1) else offset <= diagonal
    mask = node.constant(kept, "mask")
    zero = node.constant(np.zeros((), x.type.dtype.numpy), "zero")
    return node.apply(Elementwise("where"), mask, x, zero).output


@onnx_op("OneHot")
def import_one_hot(node: OnnxNode) -> Value:
    """A constant depth; indices and the two values may be computed at run time."""
    index, values = node.value(0), node.value(2)
    depth_data = node.const(1, "the depth")
    if depth_data is None:
        node.fail("there is no depth")
    depth = int(depth_data.reshape(-1)[0])
    axis = normal_axis(node, node.attr("axis", -1), index.type.rank + 1)
    at = reshaped(node, index, (*index.shape[:axis], 1, *index.shape[axis:]), suffix="index")
    steps = np.arange(depth).reshape(-1, *(1,) * (index.type.rank - axis))
    dtype = index.type.dtype.numpy

    def matches(numbers: Array, suffix: str) -> Value:
        row = node.constant(numbers.astype(dtype), suffix)
        return node.apply(Elementwise("equal"), at, row, suffix=f"{suffix}.hit").output

    hit = matches(steps, "classes")
    if index.type.dtype.kind != "uint":
        below = matches(steps - depth, "negative")
        hit = node.apply(Elementwise("or"), hit, below, suffix="hit").output
    off, on = (
        reshaped(node, sliced(node, values, part(values.type, 0, i, 1), name), (), f"{name}.value")
        for i, name in enumerate(("off", "on"))
    )
    return node.apply(Elementwise("where"), hit, on, off).output


@onnx_op("EyeLike")
def import_eye_like(node: OnnxNode) -> Value:
    """A constant: only the shape of the input matters."""
    x, number = node.value(0), node.attr("dtype")
    if x.type.rank != 2:
        node.fail(f"a tensor of {x.type.rank} dimensions is not a matrix")
    dtype = x.type.dtype if number is None else _dtype(node, number)
    rows, cols = x.shape
    eye = np.eye(rows, cols, node.attr("k", 0), np.float32)
    return node.constant(eye.astype(dtype.numpy), "eye")


def _dtype(node: OnnxNode, number: int) -> dtypes.DType:
    try:
        return dtypes.of(onnx.helper.tensor_dtype_to_np_dtype(number))
    except (KeyError, TypeError, ValueError):
        node.fail(f"the element type {number} is not supported")
