"""The most that a number computed at run time can be, from how it is computed."""

from __future__ import annotations

from glowmcu.core import dtypes
from glowmcu.graph.graph import Value
from glowmcu.ops.cast import Cast
from glowmcu.ops.elementwise import Elementwise
from glowmcu.ops.reduce import Reduce
from glowmcu.ops.reshape import Reshape
from glowmcu.ops.slice import Slice

MANY = 1 << 20
"""More than this bounds nothing: room for so many results would be needed."""


def most(value: Value | None) -> int | None:
    """Return an upper bound of the elements of an integer tensor, None where none is known."""
    if value is None or not value.type.dtype.is_integer or not value.type.numel:
        return None
    if value.data is not None:
        return int(value.data.max())
    found = _by_operation(value)
    if value.type.dtype in (dtypes.U8, dtypes.I8, dtypes.U16, dtypes.I16):
        limit = int(value.type.dtype.high)
        return limit if found is None else min(found, limit)
    return found


def _by_operation(value: Value) -> int | None:
    node = value.producer
    if node is None:
        return None
    known = [most(v) for v in node.inputs]
    if isinstance(node.op, (Cast, Reshape, Slice)):
        return known[0]
    if isinstance(node.op, Reduce) and node.op.kind in ("argmax", "argmin"):
        (axis,), source = node.op.axes, node.inputs[0]
        return None if source is None else source.shape[axis] - 1
    if not isinstance(node.op, Elementwise):
        return None
    bounds = [k for k in known if k is not None]
    if node.op.fn == "min":
        return min(bounds, default=None)
    if node.op.fn == "clip":
        return most(node.inputs[-1])
    if node.op.fn == "where":
        return None if None in known[1:] else max(bounds[-2:])
    if node.op.fn in ("max", "identity"):
        return None if None in known else max(bounds)
    return None
