"""Sensitivity: how much of the error at the outputs each rounding makes, measured on samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.types import Array, dequantize, quantize
from glowmcu.graph.evaluate import evaluate_all, evaluate_node
from glowmcu.graph.graph import Graph, Node, Value
from glowmcu.passes.linear import LINEAR
from glowmcu.quantize.calibrate import Sample
from glowmcu.quantize.storage import Storage, is_movement

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Sensitivity:
    """What each rounding alone does to the outputs of the float network: error over signal.

    activations  of every value that is rounded to int8
    weights      of every layer whose weights are
    around       the nodes that read or write a value, through movement of data
    """

    activations: Mapping[Value, float]
    weights: Mapping[Node, float]
    around: Mapping[Value, frozenset[Node]]


def measure_sensitivity(
    graph: Graph, storage: Storage, samples: Sequence[Sample], progress: Progress
) -> Sensitivity:
    """Round one value or one layer's weights at a time, and look at what becomes of the outputs."""
    around = _around(graph, storage)
    layers = [n for n in storage.computed if isinstance(n.op, LINEAR)]
    small = {n: storage.constants(n, dtypes.I8)[1] for n in layers}
    activations, weights = dict.fromkeys(around, 0.0), dict.fromkeys(layers, 0.0)
    nodes = graph.nodes()
    for number, sample in enumerate(samples):
        real = evaluate_all(graph, sample)
        power = _power([real[v] for v in graph.outputs])
        for value in around:
            quant = storage.formats[dtypes.I8][value]
            rounded = dequantize(quantize(real[value], quant, dtypes.I8), quant)
            activations[value] += _error(graph, nodes, real, {value: rounded}, power) / len(samples)
        for node in layers:
            found = small[node]
            if found is None or found.data is None or found.type.quant is None:
                continue
            inputs = [None if v is None else _array(v, real) for v in node.inputs]
            inputs[1] = dequantize(found.data, found.type.quant)
            changed = dict(zip(node.outputs, evaluate_node(node, inputs), strict=True))
            weights[node] += _error(graph, nodes, real, changed, power) / len(samples)
        progress(number + 1, len(samples))
    return Sensitivity(activations, weights, around)


def _array(value: Value, real: Mapping[Value, Array]) -> Array:
    return value.data if value.data is not None else real[value]


def _power(outputs: Sequence[Array]) -> list[float]:
    return [float(np.square(a, dtype=np.float64).sum()) + 1e-30 for a in outputs]


def _error(
    graph: Graph,
    nodes: Sequence[Node],
    real: Mapping[Value, Array],
    changed: dict[Value, Array],
    power: Sequence[float],
) -> float:
    """Return the error of the outputs over their power when some values are others."""
    for node in nodes:
        if any(v in changed for v in node.outputs):
            continue
        if not any(v in changed for v in node.inputs if v is not None):
            continue
        inputs = [
            None if v is None else changed[v] if v in changed else _array(v, real)
            for v in node.inputs
        ]
        changed.update(zip(node.outputs, evaluate_node(node, inputs), strict=True))
    lost = 0.0
    for value, whole in zip(graph.outputs, power, strict=True):
        if value in changed:
            with np.errstate(invalid="ignore"):
                apart = changed[value].astype(np.float64) - real[value]
            lost += float(np.square(np.nan_to_num(apart)).sum()) / whole
    return lost


def _around(graph: Graph, storage: Storage) -> dict[Value, frozenset[Node]]:
    """Return the nodes to raise so that a value is not rounded to int8 any more.

    Values that movement makes go with those that it moves.
    """
    sources: dict[Value, tuple[Value, ...]] = {}
    found: dict[Value, set[Node]] = {}
    for value in graph.inputs:
        if value in storage.stored:
            sources[value] = (value,)
            found[value] = set()
    for node in graph.nodes():
        moved = {s for v in node.inputs if v is not None for s in sources.get(v, ())}
        if node in storage.computed:
            for source in moved:
                found[source].add(node)
        for value in node.outputs:
            if value not in storage.stored:
                continue
            if is_movement(node):
                sources[value] = tuple(moved)
                continue
            sources[value] = (value,)
            found[value] = {node} if node in storage.computed else set()
    return {v: frozenset(nodes) for v, nodes in found.items()}
