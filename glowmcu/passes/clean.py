"""Cleaning: nodes that change nothing, nodes that compute what another one computes already."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from glowmcu.core import dtypes
from glowmcu.core.passes import record
from glowmcu.graph.graph import Graph, Node, Value
from glowmcu.graph.rewrite import Rule, rewrite, substitute
from glowmcu.ops.broadcast import Broadcast
from glowmcu.ops.cast import Cast
from glowmcu.ops.concat import Concat
from glowmcu.ops.gather import Gather, GatherElements, GatherND
from glowmcu.ops.pad import Pad
from glowmcu.ops.pool import Pool2D
from glowmcu.ops.quant import AsQuant
from glowmcu.ops.reduce import Reduce
from glowmcu.ops.reshape import Reshape
from glowmcu.ops.slice import Slice
from glowmcu.ops.transpose import Transpose, moves_nothing
from glowmcu.passes.match import (
    bounds,
    compose,
    elementwise,
    made_by,
    make,
    merged_origin,
    scalar,
    single,
)

Uses = Mapping[Value, int]


def remove_identities(graph: Graph) -> Graph:
    """Remove nodes that change nothing; merge chains of reshapes, transposes and clips."""
    return rewrite(graph, IDENTITY_RULES)


def transposes_to_views(graph: Graph) -> Graph:
    """Turn transposes that move no byte into reshapes; remove what has become idle since."""
    return rewrite(graph, (transpose_moves_nothing, *IDENTITY_RULES))


def same_type(node: Node, uses: Uses) -> Value | None:
    """A reshape, slice, broadcast, pad, cast … whose result is its input as it is."""
    if len(node.inputs) < 1 or len(node.outputs) != 1 or node.inputs[0] is None:
        return None
    x, op = node.inputs[0], node.op
    if x.type != node.types[0]:
        return None
    kinds = (Reshape, Broadcast, Cast, AsQuant)
    nothing = (
        isinstance(op, kinds)
        or (isinstance(op, Transpose) and op.perm == tuple(range(x.type.rank)))
        or (isinstance(op, Slice) and all(step == 1 for step in op.steps))
        or (isinstance(op, Pad) and not any(op.pads))
        or (isinstance(op, Concat) and len(node.inputs) == 1)
        or (isinstance(op, Pool2D) and op.kernel == (1, 1) and not any(op.pads))
        or (isinstance(op, Reduce) and _reduces_nothing(op, x))
    )
    return x if nothing else None


def _reduces_nothing(op: Reduce, x: Value) -> bool:
    plain = op.kind in ("sum", "mean", "max", "min", "prod")
    return plain and op.keepdims and all(x.shape[axis] == 1 for axis in op.axes)


def neutral_operand(node: Node, uses: Uses) -> Value | None:
    """x + 0, x - 0, x * 1, x / 1, x ** 1 and the identity function are x."""
    if elementwise(node, "identity"):
        x = node.inputs[0]
        return x if x is not None and x.type == node.types[0] else None
    neutral = {"add": 0.0, "sub": 0.0, "mul": 1.0, "div": 1.0, "pow": 1.0}
    if not elementwise(node, *neutral) or len(node.inputs) != 2:
        return None
    pairs = [node.inputs]
    if node.op.fn in ("add", "mul"):
        pairs.append(node.inputs[::-1])
    for x, other in pairs:
        if x is None or x.is_constant or x.type != node.types[0]:
            continue
        if scalar(other) == neutral[node.op.fn]:
            return x
    return None


def clip_of_nothing(node: Node, uses: Uses) -> Value | None:
    """A clip whose range is everything that its input can hold or was clipped to before."""
    limits = bounds(node)
    x = node.inputs[0]
    if limits is None or x is None or x.type != node.types[0]:
        return None
    low, high = _held(x)
    return x if limits[0] <= low and high <= limits[1] else None


def _held(x: Value) -> tuple[float, float]:
    """Return a range that holds every element of x, from its type or from the clip that made it."""
    quant, dtype = x.type.quant, x.type.dtype
    if quant is not None:
        if quant.axis is not None:
            return -math.inf, math.inf
        scale, zero = quant.scale[0], quant.zero_point[0]
        return scale * (dtype.low - zero), scale * (dtype.high - zero)
    low, high = -math.inf, math.inf
    if dtype.is_integer:
        low, high = float(dtype.low), float(dtype.high)
    clamp = None if x.producer is None else getattr(x.producer.op, "clamp", None)
    for limits in (bounds(x.producer), clamp):
        if limits is not None:
            low, high = max(low, limits[0]), min(high, limits[1])
    return low, high


def index_as_it_is(node: Node, uses: Uses) -> Value | None:
    """Indices need not be widened to be read."""
    if not isinstance(node.op, (Gather, GatherElements, GatherND)):
        return None
    x, index = node.inputs
    cast = made_by(index, Cast)
    narrow = None if cast is None else cast.inputs[0]
    if narrow is None or index is None or narrow.type.dtype is not dtypes.I32:
        return None
    if index.type.dtype is not dtypes.I64:
        return None
    return make(node.op, x, narrow, like=node.output, origin=node.origin, type_=node.types[0])


def reshape_of_reshape(node: Node, uses: Uses) -> Value | None:
    """Of two reshapes in a row only the last one counts."""
    first = made_by(node.inputs[0], Reshape) if isinstance(node.op, Reshape) else None
    if first is None:
        return None
    y = node.output
    return make(node.op, first.inputs[0], like=y, origin=node.origin, type_=y.type)


def concat_of_concat(node: Node, uses: Uses) -> Value | None:
    """A concatenation that only another one along the same axis reads is part of that one."""
    if not isinstance(node.op, Concat):
        return None
    inputs: list[Value | None] = []
    for value in node.inputs:
        inner = made_by(value, Concat)
        whole = value is not None and single(value, uses)
        if inner is not None and whole and inner.op == node.op and _plain(inner):
            inputs += inner.inputs
        else:
            inputs.append(value)
    if len(inputs) == len(node.inputs):
        return None
    y = node.output
    return make(node.op, *inputs, like=y, origin=node.origin, type_=y.type)


def _plain(concat: Node) -> bool:
    """Tell whether a concatenation copies its inputs as they are."""
    quant = concat.types[0].quant
    return all(v is not None and v.type.quant == quant for v in concat.inputs)


def transpose_of_transpose(node: Node, uses: Uses) -> Value | None:
    """Two transposes in a row are one, or none where the second undoes the first."""
    first = made_by(node.inputs[0], Transpose) if isinstance(node.op, Transpose) else None
    if first is None or first.inputs[0] is None:
        return None
    perm = compose(first.op.perm, node.op.perm)
    if perm is None:
        return first.inputs[0]
    y = node.output
    origin = merged_origin(first, node)
    return make(Transpose(perm), first.inputs[0], like=y, origin=origin, type_=y.type)


def transpose_moves_nothing(node: Node, uses: Uses) -> Value | None:
    """A transpose that only moves axes of one element is a reshape."""
    if not isinstance(node.op, Transpose) or node.inputs[0] is None:
        return None
    x, y = node.inputs[0], node.output
    if not moves_nothing(x.shape, node.op.perm) or (x.type.quant and x.type.quant.axis is not None):
        return None
    return make(Reshape(y.shape), x, like=y, origin=node.origin, type_=y.type)


IDENTITY_RULES: tuple[Rule, ...] = (
    same_type,
    neutral_operand,
    clip_of_nothing,
    index_as_it_is,
    reshape_of_reshape,
    concat_of_concat,
    transpose_of_transpose,
)


def merge_duplicates(graph: Graph) -> Graph:
    """Compute and store only once what several nodes or constants have in common."""
    merged: dict[Value, Value] = {}
    known: dict[Any, Any] = {}

    def kept(value: Value | None) -> Value | None:
        if value is None:
            return None
        if value.data is not None and value not in merged:
            key = (value.type, value.data.tobytes())
            merged[value] = known.setdefault(key, value)
        return merged.get(value, value)

    for node in graph.nodes():
        inputs = tuple(kept(v) for v in node.inputs)
        first = known.setdefault((node.op, inputs, node.types), node)
        if first is not node:
            merged.update(zip(node.outputs, first.outputs, strict=True))
            record("same_computation")
    changed = {old: new for old, new in merged.items() if old is not new}
    return substitute(graph, changed) if changed else graph
