"""Cross-layer range equalization: channels of one tensor get ranges that one scale can serve."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from glowmcu.core.types import Array
from glowmcu.graph.graph import Graph, Node, Value, constant
from glowmcu.graph.rewrite import substitute
from glowmcu.ops.conv import Conv2D
from glowmcu.ops.dense import Dense
from glowmcu.ops.pool import Pool2D
from glowmcu.passes.match import made_by, make
from glowmcu.quantize.calibrate import Observed

_LAYERS = (Conv2D, Dense)
_MOST = 16.0


def equalize(graph: Graph, seen: Mapping[Value, Observed]) -> Graph:
    """Divide the channels between two layers by factors, and multiply the next weights by them.

    The real function stays the same (relu does not mind positive factors). The factors make the
    ranges of the channels alike as far as that does not spread the weights of the next layer.
    """
    return apply_factors(graph, find_factors(graph, seen))


def find_factors(graph: Graph, seen: Mapping[Value, Observed]) -> dict[str, Array]:
    """Return the factors of the channels of layers' outputs, by the names of the outputs."""
    factors = {}
    for layer, reader in _pairs(graph):
        observed = seen.get(layer.output)
        weights = reader.inputs[1]
        if observed is None or observed.channels is None or weights is None:
            continue
        assert weights.data is not None
        factors[layer.output.name] = _balance(observed.channels, _spread(reader, weights.data))
    return factors


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


def _balance(ranges: Array, weights: Array | None) -> Array:
    """Return factors that share the spread between activations and the weights that follow."""
    ranges = ranges.astype(np.float64)
    wanted = ranges if weights is None else np.sqrt(ranges / np.maximum(weights, 1e-12))
    alive = (ranges > 0) if weights is None else (ranges > 0) & (weights > 0)
    if not alive.any():
        return np.ones_like(ranges)
    middle = np.exp(np.log(wanted[alive]).mean())
    return np.where(alive, np.clip(wanted / middle, 1 / _MOST, _MOST), 1.0)


def _by_input(layer: Node, weights: Array, factor: Array) -> Array:
    """Shape factors of input channels to broadcast against the weights, whatever the groups."""
    groups = layer.op.groups if isinstance(layer.op, Conv2D) else 1
    values = factor.reshape(groups, 1, weights.shape[-1])
    rows = np.broadcast_to(values, (groups, weights.shape[0] // groups, weights.shape[-1]))
    return rows.reshape(weights.shape[0], *(1,) * (weights.ndim - 2), weights.shape[-1])
