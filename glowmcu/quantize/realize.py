"""Realization: insert Quantize and Dequantize so that the graph passes fuse them into integers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from glowmcu.core import dtypes
from glowmcu.core.dtypes import DType
from glowmcu.core.types import TensorType, quantize
from glowmcu.graph.graph import Graph, Node, Value, apply
from glowmcu.ops.quant import Dequantize, Quantize, StayReal
from glowmcu.passes.linear import LINEAR
from glowmcu.quantize.fit import Fitter
from glowmcu.quantize.precision import Plan
from glowmcu.quantize.settings import Settings
from glowmcu.quantize.storage import Formats, Storage, is_movement, store


def realize(
    graph: Graph,
    formats: Formats,
    settings: Settings,
    plan: Plan,
    fitter: Fitter | None = None,
) -> Graph:
    """Return the graph with a Quantize/Dequantize pair at every value that is stored as integers.

    The fitter, where there is one, makes the integer weights and mends the biases.
    """
    storage = store(graph, formats, settings, plan)
    outside = set()
    if settings.io == "int8":
        outside = {v for v in (*graph.inputs, *graph.outputs) if v in storage.values}
        outside -= _real_states(graph, storage)
    for value in outside:
        storage.stored.setdefault(value, settings.edges)
    network = _Network(storage, fitter)
    inputs = tuple(network.input(value, value in outside) for value in graph.inputs)
    for node in graph.nodes():
        network.add(node, kept=plan[node] == "float")
    outputs = tuple(
        network.integers[v] if v in outside else network.real.get(v, v) for v in graph.outputs
    )
    return replace(graph, inputs=inputs, outputs=outputs)


def _real_states(graph: Graph, storage: Storage) -> set[Value]:
    """Return both ends of the states that a float operator makes or takes: they keep all bits."""
    inputs = {v.name: v for v in graph.inputs}
    outputs = dict(zip(graph.output_names, graph.outputs, strict=True))
    pairs = [{inputs[state], outputs[source]} for state, source in storage.settings.states]
    return {v for pair in pairs if not pair <= set(storage.stored) for v in pair}


@dataclass
class _Network:
    """The quantized network while it grows, node by node.

    integers, real  what a value of the float network is stored as, and the real numbers of that
    """

    storage: Storage
    fitter: Fitter | None
    integers: dict[Value, Value] = field(default_factory=dict)
    real: dict[Value, Value] = field(default_factory=dict)
    converted: dict[tuple[Value, DType], Value] = field(default_factory=dict)

    def input(self, value: Value, outside: bool) -> Value:
        """Take over an input of the network; stored `outside` too, it is an integer itself."""
        dtype = self.storage.stored.get(value)
        if dtype is None:
            return value
        if not outside:
            self._store(value, value, dtype)
            return value
        type_ = self.storage.type_of(value, dtype)
        assert type_.quant is not None
        new = replace(value, type=type_)
        self.integers[value], self.real[value] = new, _dequantized(new, value)
        if self.fitter is not None:
            arrays = [quantize(a, type_.quant, dtype) for a in self.fitter.run(value)]
            self.fitter.provide(new, arrays)
        return new

    def add(self, node: Node, kept: bool) -> None:
        """Add a node of the float network; one that is kept is never turned into integers."""
        width = self.storage.computed.get(node)
        operands = [self._read(v, self._reads(node, width, kept)) for v in node.inputs]
        if width is not None:
            operands = self._with_integers(node, operands, width)
        copy = replace(node, inputs=tuple(operands))
        for old, new in zip(node.outputs, copy.outputs, strict=True):
            if kept:
                new = apply(
                    StayReal(), new, name=old.name, origin=_origin(old), perm=old.perm
                ).output
            self.real[old] = new
            dtype = self.storage.stored.get(old)
            if dtype is not None:
                self._store(old, new, dtype)

    def _reads(self, node: Node, width: DType | None, kept: bool) -> DType | None:
        """Return the width in which a node reads what is stored, None: as it is."""
        if width is not None:
            return width if self.storage.has_arithmetic(node, width) else None
        moves = is_movement(node) and not kept
        return self.storage.stored.get(node.outputs[0]) if moves else None

    def _store(self, old: Value, new: Value, dtype: DType) -> None:
        self.integers[old] = _quantized(old, new, self.storage, dtype, old.name)
        self.real[old] = _dequantized(self.integers[old], old)

    def _read(self, value: Value | None, width: DType | None) -> Value | None:
        """Return the real numbers of a value as a node of that width reads them."""
        if value is None:
            return None
        real, dtype = self.real.get(value, value), self.storage.stored.get(value)
        if width is None or dtype in (None, width):
            return real
        if (value, width) not in self.converted:
            name = f"{value.name}.{width}"
            other = _quantized(value, real, self.storage, width, name)
            self.converted[value, width] = _dequantized(other, other)
        return self.converted[value, width]

    def _with_integers(
        self, node: Node, operands: list[Value | None], width: DType
    ) -> list[Value | None]:
        """Return the operands with constants stored as integers, those of layers fitted."""
        x, new_x = node.inputs[0], operands[0]
        if self.fitter is not None and isinstance(node.op, LINEAR) and x in self.storage.values:
            assert x is not None
            assert new_x is not None
            fitted = self.fitter.fit(node, new_x, self.storage.type_of(x, width))
            if fitted is not None:
                weights, bias = fitted
                like = node.inputs[1]
                assert like is not None
                return [new_x, _dequantized(weights, like), bias]
        constants = self.storage.constants(node, width)
        return [
            old if new is value or new is None or value is None else _dequantized(new, value)
            for value, old, new in zip(node.inputs, operands, constants, strict=True)
        ]


def _quantized(old: Value, new: Value, storage: Storage, dtype: DType, name: str) -> Value:
    op = Quantize(dtype, storage.formats[dtype][old])
    return apply(op, new, name=name, origin=_origin(old), perm=old.perm).output


def _origin(value: Value) -> tuple[str, ...]:
    return () if value.producer is None else value.producer.origin


def _dequantized(stored: Value, like: Value) -> Value:
    type_ = TensorType(dtypes.F32, like.shape)
    return apply(
        Dequantize(), stored, name=f"{like.name}.real", origin=_origin(like), types=(type_,)
    ).output
