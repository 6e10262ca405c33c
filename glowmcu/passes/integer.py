"""Integer arithmetic: Quantize(f(Dequantize(a), …)) becomes f on the stored integers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.types import Quant, TensorType
from glowmcu.graph.graph import Graph, Node, Value, constant
from glowmcu.graph.rewrite import rewrite
from glowmcu.ops.elementwise import Elementwise
from glowmcu.ops.quant import Dequantize, Quantize, StayReal
from glowmcu.passes.linear import CHANNEL_AXIS, LINEAR, operations
from glowmcu.passes.match import Uses, made_by, make, real_data, single
from glowmcu.passes.qdq import saturates


def fuse_integer(graph: Graph) -> Graph:
    """Turn operators between Dequantize and Quantize into integer ones, where a card has them."""
    return rewrite(graph, (enclosed_operator, different_quantization, idle_clamp))


def enclosed_operator(node: Node, uses: Uses) -> Value | None:
    """Quantize(f(Dequantize(a), constants)) is f on quantized types, if its card can do that."""
    if not isinstance(node.op, Quantize) or node.inputs[0] is None:
        return None
    real, y = node.inputs[0], node.output
    layer = real.producer
    if layer is None or len(layer.outputs) != 1 or not single(real, uses):
        return None
    if isinstance(layer.op, (Quantize, Dequantize)) or layer.op.raw:
        return None
    inputs = _stored_inputs(layer)
    if inputs is None or not any(v is not None and v.type.quant for v in inputs):
        return None
    types = tuple(None if v is None else v.type for v in inputs)
    if not layer.op.integer(types, (y.type,)):
        return None
    return make(layer.op, *inputs, like=y, origin=layer.origin, type_=y.type)


def _stored_inputs(layer: Node) -> list[Value | None] | None:
    """Return the integers behind the layer's inputs, None where one is computed in float."""
    inputs: list[Value | None] = []
    for value in layer.inputs:
        made = made_by(value, Dequantize)
        if made is not None:
            inputs.append(made.inputs[0])
        elif value is None or value.data is not None or not value.type.dtype.is_float:
            inputs.append(value)
        else:
            return None
    if isinstance(layer.op, LINEAR):
        return _with_integer_bias(layer, inputs)
    return inputs


def _with_integer_bias(layer: Node, inputs: list[Value | None]) -> list[Value | None] | None:
    """Quantize a float bias to int32 in units of the accumulator; None for float weights."""
    x, weights, *rest = inputs
    if x is None or weights is None or x.type.quant is None or weights.type.quant is None:
        return None
    if weights.data is None or weights.type.quant.axis not in (None, CHANNEL_AXIS):
        return None
    if any(weights.type.quant.zero_point) or x.type.quant.axis is not None:
        return None
    bias = rest[0] if rest else None
    if bias is None:
        return inputs
    if bias.data is None:
        return None
    if bias.type.quant is None:
        bias = _integer_bias(bias, x.type.quant, weights.type.quant)
    return [x, weights, bias]


def _integer_bias(bias: Value, x: Quant, weights: Quant) -> Value:
    data = real_data(bias)
    assert data is not None
    scale = np.asarray(x.scale, np.float64) * np.asarray(weights.scale, np.float64)
    unit = np.broadcast_to(scale.astype(np.float32), data.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        stored = np.rint(data.astype(np.float64) / unit.astype(np.float64))
    if not np.all(np.abs(stored) < 2.0**31):
        return bias
    quant = Quant(tuple(float(s) for s in unit), (0,) * data.size, 0)
    return constant(bias.name, stored.astype(np.int32), TensorType(dtypes.I32, data.shape, quant))


def different_quantization(node: Node, uses: Uses) -> Value | None:
    """Quantize(Dequantize(x)) with another scale or zero point is the identity function."""
    made = made_by(node.inputs[0], Dequantize) if isinstance(node.op, Quantize) else None
    stored = made.inputs[0] if made else None
    if stored is None or stored.type == node.types[0]:
        return stored
    op, y = Elementwise("identity"), node.output
    if not op.integer((stored.type,), (y.type,)):
        return None
    return make(op, stored, like=y, origin=node.origin, type_=y.type)


def idle_clamp(node: Node, uses: Uses) -> Value | None:
    """A clamp that saturation does as well is dropped."""
    clamp = getattr(node.op, "clamp", None)
    if clamp is None or len(node.outputs) != 1:
        return None
    y = node.output
    if y.type.quant is None or y.type.quant.axis is not None or not saturates(clamp, y.type):
        return None
    return make(
        replace(node.op, clamp=None), *node.inputs, like=y, origin=node.origin, type_=y.type
    )


def islands(graph: Graph) -> list[str]:
    """Describe, a sentence each, the parts of a quantized network that compute in float."""
    nodes = graph.nodes()
    if not any(isinstance(n.op, (Quantize, Dequantize)) for n in nodes):
        return []
    return [_sentence(group) for group in _float_groups(nodes)]


def _float_groups(nodes: tuple[Node, ...]) -> list[list[Node]]:
    """Return the connected groups of nodes that make float values, in order."""
    group_of: dict[Node, list[Node]] = {}
    for node in nodes:
        if isinstance(node.op, Dequantize) or not node.types[0].dtype.is_float:
            continue
        sources = [v.producer for v in node.inputs if v is not None and v.producer in group_of]
        merged: list[Node] = []
        for group in {id(group_of[s]): group_of[s] for s in sources if s is not None}.values():
            merged += group
        merged.append(node)
        group_of.update((member, merged) for member in merged)
    unique = {id(group): group for group in group_of.values()}
    return list(unique.values())


def _sentence(group: list[Node]) -> str:
    why = "no integer arithmetic for these types"
    if any(isinstance(node.op, StayReal) for node in group):
        group = [node for node in group if not isinstance(node.op, StayReal)] or group
        why = "kept so"
    names = list(dict.fromkeys(_operator(node) for node in group))
    shown = ", ".join(names[:4]) + (", …" if len(names) > 4 else "")
    where = f"'{group[0].name}'" + (f" to '{group[-1].name}'" if len(group) > 1 else "")
    count = "1 operator computes" if len(group) == 1 else f"{len(group)} operators compute"
    cost = sum(operations(node) for node in group)
    return f"{count} in float at {where} ({shown}), {cost:,} operations: {why}."


def _operator(node: Node) -> str:
    return node.op.fn if isinstance(node.op, Elementwise) else type(node.op).__name__


__all__ = ["fuse_integer", "islands"]
