"""Cross-layer range equalization: channels of one tensor get ranges that one scale can serve."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from glowmcu.core.types import Array
from glowmcu.graph.evaluate import evaluate_all
from glowmcu.graph.graph import Graph, Node, Value, constant
from glowmcu.graph.rewrite import substitute
from glowmcu.ops.conv import Conv2D
from glowmcu.ops.dense import Dense
from glowmcu.ops.pool import Pool2D
from glowmcu.passes.match import made_by, make

_LAYERS = (Conv2D, Dense)
_MOST = 16.0
_STRENGTHS = tuple((a / 8, b / 2) for b in range(3) for a in range(9))
"""How strongly ranges are made alike, and how far the next weights count against it."""


@dataclass(frozen=True)
class Levels:
    """What the channels of a value are like on samples: largest magnitude, mean square."""

    largest: Array
    power: Array


def find_factors(
    graph: Graph, samples: Sequence[Mapping[str, Array]], levels: int = 255
) -> dict[str, Array]:
    """Return factors for the channels of layers' outputs, by the names of the outputs.

    Channels between two layers are divided by them and the next weights multiplied, which keeps
    the real function (relu does not mind positive factors). They make the ranges of the channels
    alike, in so far as the rounding of activations and of the next weights together, as expected
    from the samples, then makes a smaller error.

    levels  how many different numbers an activation can be
    """
    pairs = _pairs(graph)
    measured = _measure(graph, [layer.output for layer, _ in pairs], samples)
    factors = {}
    for layer, reader in pairs:
        seen = measured[layer.output]
        if np.isfinite(seen.power).all():
            found = _best(layer, reader, seen, levels)
            if np.ptp(found):
                factors[layer.output.name] = found
    return factors


def _measure(
    graph: Graph, values: Sequence[Value], samples: Sequence[Mapping[str, Array]]
) -> dict[Value, Levels]:
    largest = {v: np.zeros(v.shape[-1]) for v in values}
    power = {v: np.zeros(v.shape[-1]) for v in values}
    for sample in samples if values else ():
        arrays = evaluate_all(graph, sample)
        for value in values:
            rows = np.abs(arrays[value].reshape(-1, value.shape[-1]))
            largest[value] = np.maximum(largest[value], rows.max(axis=0, initial=0.0))
            power[value] += np.einsum("ij,ij->j", rows, rows) / (len(rows) * len(samples))
    return {v: Levels(largest[v], power[v]) for v in values}


def _best(layer: Node, reader: Node, seen: Levels, levels: int) -> Array:
    """Return the factors, of no to full strength, with the least expected error."""
    weights = _weights(reader)
    unit = (1 if layer.op.clamp == (0.0, math.inf) else 2) / levels
    spread = _spread(reader, weights)
    options = [_balance(seen.largest, spread, a, b) for a, b in _STRENGTHS]
    errors = [_expected_error(reader, weights, seen, unit, factor) for factor in options]
    best: Array = options[int(np.argmin(errors))]
    return best


def _weights(layer: Node) -> Array:
    weights = layer.inputs[1]
    assert weights is not None
    assert weights.data is not None
    return weights.data.astype(np.float64)


def _expected_error(
    reader: Node, weights: Array, seen: Levels, unit: float, factor: Array
) -> float:
    """Return what rounding makes of the reader's output: its input, and its weights per channel."""
    scaled = weights * _by_input(reader, weights, factor)
    step = unit * float((seen.largest / factor).max())
    units = np.abs(scaled).reshape(len(scaled), -1).max(axis=1) / 127
    power = np.broadcast_to(_by_input(reader, weights, seen.power / factor**2), weights.shape)
    of_weights = units**2 @ power.reshape(len(scaled), -1).sum(axis=1)
    return float(step**2 * np.square(scaled).sum() + of_weights)


def apply_factors(graph: Graph, factors: Mapping[str, Array]) -> Graph:
    """Return the graph with the channels of the named outputs divided by factors."""
    pairs = [(a, b) for a, b in _pairs(graph) if a.output.name in factors]
    before = {a: factors[a.output.name] for a, _ in pairs}
    after = {b: factors[a.output.name] for a, b in pairs}
    mapping = {}
    for node in dict.fromkeys(n for pair in pairs for n in pair):
        x, weights, *rest = node.inputs
        assert weights is not None and weights.data is not None
        data, bias = weights.data, rest[0] if rest else None
        if node in after:
            data = data * _by_input(node, data, after[node])
        if node in before:
            factor = before[node].astype(np.float32)
            data = data / factor.reshape(-1, *(1,) * (data.ndim - 1))
            if bias is not None and bias.data is not None:
                bias = constant(bias.name, (bias.data / factor).astype(np.float32))
        new = constant(weights.name, data.astype(np.float32))
        y = node.output
        mapping[y] = make(node.op, x, new, bias, like=y, origin=node.origin, type_=y.type)
    return substitute(graph, mapping)


def _pairs(graph: Graph) -> list[tuple[Node, Node]]:
    """Return layers with the only layer that reads them, pools of maxima or averages between."""
    uses = graph.uses()
    found = []
    for reader in graph.nodes():
        if not isinstance(reader.op, _LAYERS) or not _is_constant(reader):
            continue
        x = reader.inputs[0]
        while x is not None and uses[x] == 1 and (pool := made_by(x, Pool2D)):
            x = pool.inputs[0] if len(pool.outputs) == 1 else None
        layer = made_by(x, *_LAYERS)
        if x is None or layer is None or uses[x] != 1 or not _is_constant(layer):
            continue
        if layer.op.clamp in (None, (0.0, math.inf)) and x.name:
            found.append((layer, reader))
    return found


def _is_constant(layer: Node) -> bool:
    return all(v is None or v.data is not None for v in layer.inputs[1:])


def _depthwise(layer: Node) -> bool:
    weights = layer.inputs[1]
    return (
        isinstance(layer.op, Conv2D)
        and weights is not None
        and layer.op.groups == weights.shape[0]
        and weights.shape[-1] == 1
    )


def _spread(reader: Node, weights: Array) -> Array | None:
    """Return the largest weight of each input channel; None where every channel has its scale."""
    if _depthwise(reader):
        return None
    groups = reader.op.groups if isinstance(reader.op, Conv2D) else 1
    parts = np.abs(weights).reshape(groups, -1, weights.shape[-1])
    return np.asarray(parts.max(axis=1)).reshape(-1)


def _balance(ranges: Array, weights: Array | None, strength: float, share: float) -> Array:
    """Return factors that make ranges alike, less where the weights that follow are large.

    strength  0: none, 1: alike as far as the weights' share allows
    share     how far large weights count against it: 0 not at all, 1 as much as the ranges
    """
    other = np.ones_like(ranges) if weights is None else weights
    alive = (ranges > 0) & (other > 0)
    if not alive.any():
        return np.ones_like(ranges)
    wanted = np.zeros_like(ranges)
    wanted[alive] = strength * (np.log(ranges[alive]) - share * np.log(other[alive]))
    wanted[alive] -= wanted[alive].mean()
    factors: Array = np.exp(np.clip(wanted, -math.log(_MOST), math.log(_MOST)))
    return factors


def _by_input(layer: Node, weights: Array, factor: Array) -> Array:
    """Shape factors of input channels to broadcast against the weights, whatever the groups."""
    groups = layer.op.groups if isinstance(layer.op, Conv2D) else 1
    values = factor.reshape(groups, 1, weights.shape[-1])
    rows = np.broadcast_to(values, (groups, weights.shape[0] // groups, weights.shape[-1]))
    return rows.reshape(weights.shape[0], *(1,) * (weights.ndim - 2), weights.shape[-1])
