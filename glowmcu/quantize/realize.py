"""Realization: insert Quantize and Dequantize so that the graph passes fuse them into integers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from difflib import get_close_matches
from fnmatch import fnmatchcase

from glowmcu.core import dtypes
from glowmcu.core.types import Quant, TensorType, quantize
from glowmcu.errors import OptionError
from glowmcu.graph.graph import Graph, Node, Value, apply, constant
from glowmcu.ops.elementwise import Elementwise
from glowmcu.ops.quant import Dequantize, Quantize, StayReal
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
from glowmcu.quantize.fit import Fitter
from glowmcu.quantize.ranges import Range
from glowmcu.quantize.settings import Settings

Quants = Mapping[Value, Quant]


def realize(
    graph: Graph, quants: Quants, settings: Settings, fitter: Fitter | None = None
) -> Graph:
    """Return the graph with a Quantize/Dequantize pair at every value that is stored as int8.

    The fitter, where there is one, makes the integer weights and mends the biases.
    """
    kept = kept_nodes(graph, settings.keep_float)
    stored = stored_values(graph, quants, kept)
    outside = set()
    if settings.io == "int8":
        outside = {v for v in (*graph.inputs, *graph.outputs) if v in quants}
        outside -= _real_states(graph, stored, settings)
    stored |= outside
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
        if value in outside:
            type_ = TensorType(dtypes.I8, value.shape, quants[value])
            new = replace(value, type=type_)
            integers[value], real[value] = new, _dequantized(new, value)
            if fitter is not None:
                arrays = [quantize(a, quants[value], dtypes.I8) for a in fitter.run(value)]
                fitter.provide(new, arrays)
        elif value in stored:
            store(value, value)
        inputs.append(new)
    for node in graph.nodes():
        operands = [None if v is None else real.get(v, v) for v in node.inputs]
        in_integers = node not in kept and any(v in stored for v in node.outputs)
        if in_integers and has_integer_arithmetic(node, quants):
            operands = _with_integers(node, operands, quants, settings, fitter)
        copy = replace(node, inputs=tuple(operands))
        for old, new in zip(node.outputs, copy.outputs, strict=True):
            if node in kept:
                new = apply(
                    StayReal(), new, name=old.name, origin=_origin(old), perm=old.perm
                ).output
            real[old] = new
            if old in stored:
                store(old, new)
    outputs = tuple(integers[v] if v in outside else real.get(v, v) for v in graph.outputs)
    return replace(graph, inputs=tuple(inputs), outputs=outputs)


def _real_states(graph: Graph, stored: Collection[Value], settings: Settings) -> set[Value]:
    """Return both ends of the states that a float operator makes or takes: they keep all bits."""
    inputs = {v.name: v for v in graph.inputs}
    outputs = dict(zip(graph.output_names, graph.outputs, strict=True))
    pairs = [{inputs[state], outputs[source]} for state, source in settings.states]
    return {v for pair in pairs if not pair <= set(stored) for v in pair}


def _origin(value: Value) -> tuple[str, ...]:
    return () if value.producer is None else value.producer.origin


def _dequantized(stored: Value, like: Value) -> Value:
    return apply(
        Dequantize(), stored, name=f"{like.name}.real", origin=_origin(like), types=(like.type,)
    ).output


def _with_integers(
    node: Node,
    operands: list[Value | None],
    quants: Quants,
    settings: Settings,
    fitter: Fitter | None,
) -> list[Value | None]:
    """Return the operands with constants stored as int8, those of layers fitted to samples."""
    x, new_x = node.inputs[0], operands[0]
    if fitter is not None and isinstance(node.op, LINEAR) and x in quants and new_x is not None:
        assert x is not None
        fitted = fitter.fit(node, new_x, quants[x])
        if fitted is not None:
            weights, bias = fitted
            like = node.inputs[1]
            assert like is not None
            return [new_x, _dequantized(weights, like), bias]
    constants = integer_constants(node, quants, settings)
    return [
        old if new is value or new is None or value is None else _dequantized(new, value)
        for value, old, new in zip(node.inputs, operands, constants, strict=True)
    ]


def integer_constants(node: Node, quants: Quants, settings: Settings) -> tuple[Value | None, ...]:
    """Return the node's inputs with weights and constant tensors as int8.

    The bias stays real (it becomes int32 when the layer does), and so do single numbers.
    """
    inputs = list(node.inputs)
    if isinstance(node.op, LINEAR):
        inputs[1] = _integer_weights(node, quants, settings)
    elif isinstance(node.op, Elementwise):
        for i, value in enumerate(inputs):
            if value is None or value.data is None or not is_real(value) or value.data.size < 2:
                continue
            span = Range(float(value.data.min()), float(value.data.max()))
            own = activation_quant(span, settings.schema)
            shared = quants.get(node.output, own) if chooses(node) else own
            inputs[i] = _stored(value, shared)
    return tuple(inputs)


def _integer_weights(node: Node, quants: Quants, settings: Settings) -> Value | None:
    x, weights, *rest = node.inputs
    if weights is None or weights.data is None or x is None or x not in quants:
        return weights
    bias = rest[0].data if rest and rest[0] is not None else None
    floor = bias_floor(bias, quants[x], weights.shape[CHANNEL_AXIS])
    axis = CHANNEL_AXIS if settings.per_channel else None
    return _stored(weights, weight_quant(weights.data, axis, floor, settings.schema))


def _stored(value: Value, quant: Quant) -> Value:
    assert value.data is not None
    type_ = TensorType(dtypes.I8, value.shape, quant)
    return constant(value.name, quantize(value.data, quant, dtypes.I8), type_)


def has_integer_arithmetic(node: Node, quants: Quants) -> bool:
    """Tell whether the node's card computes it in integers, given these quantizations."""
    if not all(v in quants for v in node.outputs) or (moves_data(node) and not only_moves(node)):
        return False
    inputs = integer_constants(node, quants, Settings())
    for value in inputs:
        if value is not None and is_real(value) and value.data is None and value not in quants:
            return False
    types = tuple(None if v is None else _int8(v, quants) for v in inputs)
    return bool(node.op.integer(types, tuple(_int8(v, quants) for v in node.outputs)))


def _int8(value: Value, quants: Quants) -> TensorType:
    quant = quants.get(value)
    return value.type if quant is None else TensorType(dtypes.I8, value.shape, quant)


def kept_nodes(graph: Graph, patterns: tuple[str, ...]) -> set[Node]:
    """Return the nodes to leave in float, by name of the ONNX node or of what it makes."""
    found: set[Node] = set()
    for pattern in patterns:
        nodes = {
            node
            for node in graph.nodes()
            if any(fnmatchcase(name, pattern) for name in (*node.origin, *node.names))
        }
        if not nodes:
            names = [name for node in graph.nodes() for name in (*node.origin, *node.names)]
            near = get_close_matches(pattern, names, 3) or names[:3]
            raise OptionError(
                f"there is no layer '{pattern}' to keep in float",
                hint=f"layers have names like {', '.join(near)}",
            )
        found |= nodes
    return found


def stored_values(graph: Graph, quants: Quants, kept: Collection[Node] = frozenset()) -> set[Value]:
    """Return the values to store as int8: those that integer arithmetic writes or reads.

    Data movement goes with what surrounds it; what lies between float operators stays float.
    """
    nodes = graph.nodes()
    whole = {
        n: has_integer_arithmetic(n, quants)
        for n in nodes
        if not (only_moves(n) or n.op.raw or n in kept)
    }
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
