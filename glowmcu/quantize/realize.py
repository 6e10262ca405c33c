"""Realization: insert Quantize and Dequantize so that the graph passes fuse them into integers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from glowmcu.core import dtypes
from glowmcu.core.types import Quant, TensorType, quantize
from glowmcu.graph.graph import Graph, Node, Value, apply, constant
from glowmcu.ops.elementwise import Elementwise
from glowmcu.ops.quant import Dequantize, Quantize
from glowmcu.passes.linear import CHANNEL_AXIS, LINEAR
from glowmcu.passes.qdq import moves_data
from glowmcu.quantize.assign import (
    activation_quant,
    bias_floor,
    chooses,
    only_moves,
    weight_quant,
)
from glowmcu.quantize.calibrate import is_real
from glowmcu.quantize.observers import Range

Quants = Mapping[Value, Quant]


def realize(graph: Graph, quants: Quants, io: Literal["int8", "float"]) -> Graph:
    """Return the graph with a Quantize/Dequantize pair at every value that is stored as int8."""
    stored = stored_values(graph, quants)
    if io == "int8":
        stored |= {v for v in (*graph.inputs, *graph.outputs) if v in quants}
    integers: dict[Value, Value] = {}
    real: dict[Value, Value] = {}

    def store(old: Value, new: Value) -> None:
        quant = quants[old]
        op = Quantize(dtypes.I8, quant)
        node = apply(op, new, name=old.name, origin=_origin(old), perm=old.perm)
        integers[old] = node.output
        real[old] = _dequantized(node.output, old)

    inputs = []
    for value in graph.inputs:
        new = value
        if value in stored and io == "int8":
            type_ = TensorType(dtypes.I8, value.shape, quants[value])
            new = replace(value, type=type_)
            integers[value], real[value] = new, _dequantized(new, value)
        elif value in stored:
            store(value, value)
        inputs.append(new)
    for node in graph.nodes():
        operands = [None if v is None else real.get(v, v) for v in _operands(node, quants, stored)]
        copy = replace(node, inputs=tuple(operands))
        for old, new in zip(node.outputs, copy.outputs, strict=True):
            real[old] = new
            if old in stored:
                store(old, new)
    found = integers if io == "int8" else real
    outputs = tuple(found.get(v, real.get(v, v)) for v in graph.outputs)
    return replace(graph, inputs=tuple(inputs), outputs=outputs)


def _origin(value: Value) -> tuple[str, ...]:
    return () if value.producer is None else value.producer.origin


def _dequantized(stored: Value, like: Value) -> Value:
    return apply(
        Dequantize(), stored, name=f"{like.name}.real", origin=_origin(like), types=(like.type,)
    ).output


def _operands(node: Node, quants: Quants, stored: set[Value]) -> tuple[Value | None, ...]:
    """Return the node's inputs, its constants stored as int8 where its arithmetic will be."""
    if not any(v in stored for v in node.outputs) or not has_integer_arithmetic(node, quants):
        return node.inputs
    return tuple(
        value if new is value or new is None or value is None else _dequantized(new, value)
        for value, new in zip(node.inputs, integer_constants(node, quants), strict=True)
    )


def integer_constants(node: Node, quants: Quants) -> tuple[Value | None, ...]:
    """Return the node's inputs with weights and constant tensors as int8.

    The bias stays real (it becomes int32 when the layer does), and so do single numbers.
    """
    inputs = list(node.inputs)
    if isinstance(node.op, LINEAR):
        inputs[1] = _integer_weights(node, quants)
    elif isinstance(node.op, Elementwise):
        for i, value in enumerate(inputs):
            if value is None or value.data is None or not is_real(value) or value.data.size < 2:
                continue
            span = Range(float(value.data.min()), float(value.data.max()))
            own = activation_quant(span)
            shared = quants.get(node.output, own) if chooses(node) else own
            inputs[i] = _stored(value, shared)
    return tuple(inputs)


def _integer_weights(node: Node, quants: Quants) -> Value | None:
    x, weights, *rest = node.inputs
    if weights is None or weights.data is None or x is None or x not in quants:
        return weights
    bias = rest[0].data if rest and rest[0] is not None else None
    floor = bias_floor(bias, quants[x], weights.shape[CHANNEL_AXIS])
    return _stored(weights, weight_quant(weights.data, CHANNEL_AXIS, floor))


def _stored(value: Value, quant: Quant) -> Value:
    assert value.data is not None
    type_ = TensorType(dtypes.I8, value.shape, quant)
    return constant(value.name, quantize(value.data, quant, dtypes.I8), type_)


def has_integer_arithmetic(node: Node, quants: Quants) -> bool:
    """Tell whether the node's card computes it in integers, given these quantizations."""
    if not all(v in quants for v in node.outputs) or (moves_data(node) and not only_moves(node)):
        return False
    inputs = integer_constants(node, quants)
    for value in inputs:
        if value is not None and is_real(value) and value.data is None and value not in quants:
            return False
    types = tuple(None if v is None else _int8(v, quants) for v in inputs)
    return bool(node.op.integer(types, tuple(_int8(v, quants) for v in node.outputs)))


def _int8(value: Value, quants: Quants) -> TensorType:
    quant = quants.get(value)
    return value.type if quant is None else TensorType(dtypes.I8, value.shape, quant)


def stored_values(graph: Graph, quants: Quants) -> set[Value]:
    """Return the values to store as int8: those that integer arithmetic writes or reads.

    Data movement goes with what surrounds it; what lies between float operators stays float.
    """
    nodes = graph.nodes()
    whole = {n: has_integer_arithmetic(n, quants) for n in nodes if not (only_moves(n) or n.op.raw)}
    moving = [n for n in nodes if n not in whole and all(v in quants for v in n.outputs)]
    stored = {v for n, ok in whole.items() if ok for v in _around(n, quants)}
    for order in (moving, moving[::-1]):
        for node in order:
            around = _around(node, quants)
            if not stored.isdisjoint(around):
                stored.update(around)
    return stored


def _around(node: Node, quants: Quants) -> list[Value]:
    return [v for v in (*node.inputs, *node.outputs) if v is not None and v in quants]
