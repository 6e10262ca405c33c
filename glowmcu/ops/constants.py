"""Importers of operators whose results are constants, because all shapes are known."""

from __future__ import annotations

import math

import numpy as np

from glowmcu.core.types import Array
from glowmcu.graph.graph import Value
from glowmcu.ops.base import onnx_op
from glowmcu.ops.onnx_node import OnnxNode

_LARGEST = (1 << 31) - 1


@onnx_op("Constant")
def import_constant(node: OnnxNode) -> Value:
    """Tensors, numbers and lists of numbers; strings and sparse tensors are refused."""
    if (value := node.attr("value")) is not None:
        return node.constant(value, "value")
    for name, dtype in (
        ("value_float", np.float32),
        ("value_floats", np.float32),
        ("value_int", np.int64),
        ("value_ints", np.int64),
    ):
        if (value := node.attr(name)) is not None:
            return node.constant(np.asarray(value, dtype), "value")
    node.fail(f"the constant has no supported value ({', '.join(node.attributes) or 'none'})")


@onnx_op("ConstantOfShape")
def import_constant_of_shape(node: OnnxNode) -> Value:
    """The shape must be a constant."""
    shape = tuple(int(d) for d in _required(node, 0, "shape").reshape(-1))
    value = node.attr("value", np.zeros(1, np.float32))
    if value.size != 1:
        node.fail(f"the value has {value.size} elements instead of one")
    if min(shape, default=0) < 0 or math.prod(shape) * value.itemsize > _LARGEST:
        node.fail(f"a constant of shape {list(shape)} cannot be made")
    # A view of one element: the frontend checks the size before it asks for memory.
    return node.constant(np.broadcast_to(value.reshape(()), shape), "filled")


@onnx_op("Shape")
def import_shape(node: OnnxNode) -> Value:
    """The shape of any value is known; start and end since opset 15."""
    shape = node.value(0).shape
    part = shape[slice(node.attr("start", 0), node.attr("end"))]
    return node.constant(np.asarray(part, np.int64), "shape")


@onnx_op("Size")
def import_size(node: OnnxNode) -> Value:
    """The number of elements of any value is known."""
    return node.constant(np.asarray(node.value(0).type.numel, np.int64), "size")


@onnx_op("Range")
def import_range(node: OnnxNode) -> Value:
    """Start, limit and delta must be constants."""
    start, limit, delta = (
        _required(node, i, what).reshape(()) for i, what in enumerate(("start", "limit", "delta"))
    )
    if delta == 0 or not np.isfinite([float(v) for v in (start, limit, delta)]).all():
        node.fail(f"a range from {start} to {limit} in steps of {delta} does not end")
    count = max(0, math.ceil((limit.item() - start.item()) / delta.item()))
    if count * start.itemsize > _LARGEST >> 3:
        node.fail(f"a range of {count} elements cannot be made")
    values = start + np.arange(count).astype(start.dtype) * delta
    return node.constant(values.astype(start.dtype), "range")


def _required(node: OnnxNode, index: int, what: str) -> Array:
    node.value(index)
    data = node.const(index, what)
    assert data is not None
    return data
