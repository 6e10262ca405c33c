"""What rules ask of a node's neighbourhood, and how they make the nodes that replace it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from glowmcu.core.types import Array, TensorType, dequantize
from glowmcu.graph.graph import Node, Value, apply
from glowmcu.ops.elementwise import Elementwise
from glowmcu.ops.quant import Dequantize

Uses = Mapping[Value, int]


def made_by(value: Value | None, *kinds: type) -> Node | None:
    """Return the node that makes `value` if its operator is one of `kinds`."""
    node = None if value is None else value.producer
    return node if node is not None and isinstance(node.op, kinds) else None


def elementwise(node: Node | None, *names: str) -> bool:
    """Tell whether a node is one of the named elementwise functions and does no more than that."""
    if node is None or not isinstance(node.op, Elementwise):
        return False
    return node.op.fn in names and node.op.clamp is None


def single(value: Value, uses: Uses) -> bool:
    """Tell whether a value is read exactly once, so that changing it changes nothing else."""
    return uses.get(value, 0) == 1


def real_data(value: Value | None) -> Array | None:
    """Return the real numbers of a constant or of a dequantized constant, None otherwise."""
    if value is None:
        return None
    node = made_by(value, Dequantize)
    source = node.inputs[0] if node else value
    if source is None or source.data is None:
        return None
    return dequantize(source.data, source.type.quant) if source.type.quant else source.data


def scalar(value: Value | None) -> float | None:
    """Return the number that all elements of a constant equal, None where there is none."""
    data = real_data(value)
    if data is None or data.size == 0 or data.dtype.kind not in "fiub":
        return None
    flat = data.reshape(-1)
    return float(flat[0]) if flat.size == 1 or bool(np.all(flat == flat[0])) else None


def bounds(node: Node | None) -> tuple[float, float] | None:
    """Return the constant range to which a relu or clip limits its input, None for other nodes."""
    if node is None or not isinstance(node.op, Elementwise) or node.op.fn not in ("relu", "clip"):
        return None
    limits = [0.0, math.inf] if node.op.fn == "relu" else [-math.inf, math.inf]
    for i, value in enumerate(node.inputs[1:]):
        if value is None:
            continue
        limit = scalar(value) if value.type.numel == 1 else None
        if limit is None or math.isnan(limit):
            return None
        limits[i] = limit
    found = (limits[0], limits[1])
    return found if node.op.clamp is None else clipped(found, node.op.clamp)


def clipped(first: tuple[float, float] | None, then: tuple[float, float]) -> tuple[float, float]:
    """Return the range of a clip to `first` followed by a clip to `then`."""
    if first is None:
        return then
    low, high = (min(max(value, then[0]), then[1]) for value in first)
    return low, high


def make(
    op: Any,
    *inputs: Value | None,
    like: Value,
    origin: tuple[str, ...],
    type_: TensorType | None = None,
    perm: tuple[int, ...] | None = None,
    name: str = "",
) -> Value:
    """Make a node whose output stands for the tensor `like`, transposed by `perm` if given."""
    node = apply(
        op,
        *inputs,
        name=name or like.name,
        origin=origin,
        types=(type_,) if type_ else (),
        perm=compose(like.perm, perm),
    )
    return node.output


def merged_origin(*nodes: Node | None) -> tuple[str, ...]:
    """Return the ONNX nodes that a fused node stands for, each once."""
    return tuple(dict.fromkeys(name for node in nodes if node for name in node.origin))


def compose(
    first: tuple[int, ...] | None, second: tuple[int, ...] | None
) -> tuple[int, ...] | None:
    """Return the permutation that transposes by `first`, then by `second`; None is no change."""
    if first is None or second is None:
        both = first or second
    elif len(first) != len(second):
        return None
    else:
        both = tuple(first[i] for i in second)
    return None if both is None or both == tuple(range(len(both))) else both


def stored_constant(value: Value) -> Value | None:
    """Return the constant integers behind a Dequantize, None where there are none."""
    node = made_by(value, Dequantize)
    source = node.inputs[0] if node else None
    return source if source is not None and source.is_constant else None
