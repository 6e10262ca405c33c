"""Constant int8 weights lose their zero point, where need be in several parts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.types import Array, TensorType
from glowmcu.graph.graph import Node, Value, constant
from glowmcu.graph.rewrite import Rule
from glowmcu.ops.concat import Concat
from glowmcu.ops.conv import Conv2D
from glowmcu.ops.dense import Dense
from glowmcu.ops.quant import Dequantize
from glowmcu.passes.linear import LINEAR
from glowmcu.passes.match import Uses, made_by, make


def symmetric_weights(node: Node, uses: Uses) -> Value | None:
    """Constant int8 weights with a zero point lose it where what remains fits int8."""
    found = _without_zero_point(node)
    if found is None or found[0].min(initial=0) < -128 or found[0].max(initial=0) > 127:
        return None
    data, stored = found
    y, weights = node.output, _real_int8(node, stored, data)
    inputs = (node.inputs[0], weights, *node.inputs[2:])
    return make(node.op, *inputs, like=y, origin=node.origin, type_=y.type)


def weights_in_parts(node: Node, uses: Uses) -> Value | None:
    """Weights that exceed int8 without their zero point become a sum over a repeated input."""
    found = _without_zero_point(node)
    x = node.inputs[0]
    made = made_by(x, Dequantize)
    if found is None or x is None or made is None or not isinstance(node.op, (Conv2D, Dense)):
        return None
    if isinstance(node.op, Conv2D) and node.op.groups != 1:
        return None
    data, stored = found
    if not _one_scale(made.inputs[0]):
        return None
    parts, rest = [], data
    while rest.any():
        parts.append(np.clip(rest, -128, 127))
        rest = rest - parts[-1]
    all_parts = np.concatenate(parts, axis=-1)
    last = x.type.rank - 1
    shape = (*x.shape[:-1], len(parts) * x.shape[-1])
    repeated = make(
        Concat(last),
        *[x] * len(parts),
        like=x,
        origin=node.origin,
        type_=x.type.with_shape(shape),
        name=f"{x.name}.repeated",
    )
    y, weights = node.output, _real_int8(node, stored, all_parts)
    inputs = (repeated, weights, *node.inputs[2:])
    return make(node.op, *inputs, like=y, origin=node.origin, type_=y.type)


def _one_scale(value: Value | None) -> bool:
    return value is not None and value.type.quant is not None and value.type.quant.axis is None


def _without_zero_point(node: Node) -> tuple[Array, Value] | None:
    """Return a layer's weights less their zero point, where they have one."""
    weights = node.inputs[1] if isinstance(node.op, LINEAR) else None
    made = made_by(weights, Dequantize)
    stored = made.inputs[0] if made else None
    if stored is None or stored.data is None or stored.type.quant is None:
        return None
    quant = stored.type.quant
    if stored.type.dtype != dtypes.I8 or not any(quant.zero_point):
        return None
    _, zero = quant.arrays(stored.type.rank)
    return stored.data.astype(np.int32) - zero, stored


def _real_int8(node: Node, stored: Value, data: Array) -> Value:
    """Return the real numbers of int8 weights with the scales of others and no zero point."""
    weights, quant = node.inputs[1], stored.type.quant
    assert weights is not None and quant is not None
    symmetric = replace(quant, zero_point=(0,) * len(quant.zero_point))
    type_ = TensorType(dtypes.I8, data.shape, symmetric)
    moved = constant(stored.name, data.astype(np.int8), type_)
    return make(Dequantize(), moved, like=weights, origin=(), type_=type_.real())


WEIGHT_RULES: tuple[Rule, ...] = (symmetric_weights, weights_in_parts)
