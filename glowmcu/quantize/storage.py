"""Storage: which values are kept as int8 or int16, from the precision of the nodes around them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from glowmcu.core import dtypes
from glowmcu.core.dtypes import DType
from glowmcu.core.types import Quant, TensorType, quantize
from glowmcu.graph.graph import Graph, Node, Value, body_of, constant
from glowmcu.ops.elementwise import Elementwise
from glowmcu.passes.linear import CHANNEL_AXIS, LINEAR
from glowmcu.passes.qdq import moves_data
from glowmcu.quantize.assign import (
    activation_quant,
    bias_floor,
    chooses,
    only_moves,
    shared_sources,
    weight_quant,
)
from glowmcu.quantize.calibrate import is_real
from glowmcu.quantize.precision import Plan
from glowmcu.quantize.ranges import Range
from glowmcu.quantize.settings import Settings

Formats = Mapping[DType, Mapping[Value, Quant]]
"""The quantization of every value that has one, were it stored as int8 and as int16."""

WIDTHS: dict[str, DType] = {"int8": dtypes.I8, "int16": dtypes.I16}


@dataclass(frozen=True)
class Storage:
    """How a network's values are stored.

    computed  the width of the activations of every node that is to compute in integers
    stored    the width of every value that is stored as integers
    """

    formats: Formats
    settings: Settings
    computed: dict[Node, DType] = field(default_factory=dict)
    stored: dict[Value, DType] = field(default_factory=dict)

    @property
    def values(self) -> Mapping[Value, Quant]:
        """The values that can be stored as integers; of one width, as all have the same."""
        return self.formats[dtypes.I8]

    def type_of(self, value: Value, dtype: DType) -> TensorType:
        """Return the type of a value stored as integers of that width."""
        quant = self.formats[dtype].get(value)
        return value.type if quant is None else TensorType(dtype, value.shape, quant)

    def constants(self, node: Node, dtype: DType) -> tuple[Value | None, ...]:
        """Return the node's inputs with its weights as int8, other constants of that width.

        The bias stays real (it becomes int32 when the layer does), and so do single numbers.
        """
        inputs = list(node.inputs)
        if isinstance(node.op, LINEAR):
            inputs[1] = self._weights(node, dtype)
        elif isinstance(node.op, Elementwise):
            for i, value in enumerate(inputs):
                if value is None or value.data is None or not is_real(value):
                    continue
                if value.data.size < 2:
                    continue
                span = Range(float(value.data.min()), float(value.data.max()))
                own = activation_quant(span, self.settings.schema, dtype)
                shared = self.formats[dtype].get(node.output, own) if chooses(node) else own
                inputs[i] = _stored(value, dtype, shared)
        return tuple(inputs)

    def _weights(self, node: Node, dtype: DType) -> Value | None:
        x, weights, *rest = node.inputs
        if weights is None or weights.data is None or x is None or x not in self.values:
            return weights
        bias = rest[0].data if rest and rest[0] is not None else None
        quant = self.formats[dtype][x]
        floor = bias_floor(bias, quant, weights.shape[CHANNEL_AXIS], dtype)
        axis = CHANNEL_AXIS if self.settings.per_channel else None
        own = weight_quant(weights.data, axis, floor, self.settings.schema)
        return _stored(weights, dtypes.I8, own)

    def has_arithmetic(self, node: Node, dtype: DType) -> bool:
        """Tell whether the node's card computes it in integers, activations of that width."""
        if not all(v in self.values for v in node.outputs):
            return False
        if moves_data(node) and not only_moves(node):
            return False
        inputs = self.constants(node, dtype)
        for value in inputs:
            if value is None or not is_real(value) or value.data is not None:
                continue
            if value not in self.values:
                return False
        types = tuple(None if v is None else self.type_of(v, dtype) for v in inputs)
        return bool(node.op.integer(types, tuple(self.type_of(v, dtype) for v in node.outputs)))


def _stored(value: Value, dtype: DType, quant: Quant) -> Value:
    assert value.data is not None
    type_ = TensorType(dtype, value.shape, quant)
    return constant(value.name, quantize(value.data, quant, dtype), type_)


def is_movement(node: Node) -> bool:
    """Tell whether a node's result goes with its input: stored if that is, and as wide."""
    return only_moves(node) or (node.op.raw and body_of(node) is None)


def store(graph: Graph, formats: Formats, settings: Settings, plan: Plan) -> Storage:
    """Find the values to store: those that integer arithmetic writes or reads.

    A node's results are as wide as its precision says; what integers do not make is as wide as
    the widest reader wants it. Data movement goes with what surrounds it; what lies between float
    operators stays float. What has integer arithmetic for int8 alone is stored as int16 all the
    same where that is asked for, and computed in float in between.
    """
    storage = Storage(formats, settings)
    nodes = [n for n in graph.nodes() if plan[n] != "float"]
    wanted: dict[Value, DType] = {}
    for node in nodes:
        width = WIDTHS[plan[node]]
        if is_movement(node) or not any(
            storage.has_arithmetic(node, d) for d in dict.fromkeys((width, dtypes.I8))
        ):
            continue
        storage.computed[node] = width
        storage.stored.update(dict.fromkeys(node.outputs, width))
        for value in _real_inputs(node, storage):
            wanted[value] = _wider(width, wanted.get(value))
    made = {v for n in nodes if is_movement(n) for v in n.outputs}
    for value, width in wanted.items():
        if value not in made:
            storage.stored.setdefault(value, width)
    moving = [n for n in nodes if is_movement(n) and all(v in storage.values for v in n.outputs)]
    for order in (moving, moving[::-1], moving):
        for node in order:
            _settle(node, storage, wanted)
    return storage


def _settle(node: Node, storage: Storage, wanted: Mapping[Value, DType]) -> None:
    """Store the result of data movement if its sources are, its sources if the result is wanted."""
    stored, y = storage.stored, node.outputs[0]
    sources = [v for v in shared_sources(node) if v in storage.values]
    known = [stored[v] for v in sources if v in stored]
    known = known or [d for d in (stored.get(y), wanted.get(y)) if d is not None]
    if not known:
        return
    width = max(known, key=lambda d: d.bits)
    for value in sources:
        stored.setdefault(value, width)
    stored.update(dict.fromkeys(node.outputs, width))


def _real_inputs(node: Node, storage: Storage) -> list[Value]:
    return [v for v in node.inputs if v is not None and v in storage.values]


def _wider(width: DType, other: DType | None) -> DType:
    return width if other is None or width.bits > other.bits else other
