"""Fitting layers: integer weights and biases that give, on samples, what the real ones gave."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.types import Array, Quant, TensorType
from glowmcu.graph.evaluate import evaluate_node
from glowmcu.graph.graph import Graph, Node, Value, constant
from glowmcu.ops._window import taps
from glowmcu.ops.conv import Conv2D
from glowmcu.ops.dense import Dense
from glowmcu.passes.linear import CHANNEL_AXIS
from glowmcu.quantize.assign import bias_floor, symmetric_scales
from glowmcu.quantize.calibrate import Sample, is_activation
from glowmcu.quantize.settings import Settings

_ROWS = 16384
_MOST_SAMPLES = 256
_MEMORY = 1 << 28
_LARGEST_INNER = 2048
_DAMPING = 0.01
_SHRINKS = np.linspace(1.0, 0.5, 11)


@dataclass
class Fitter:
    """Fits the layers of one network, in order; every layer sees what the ones before made of it.

    The network's samples run through the float network and through the part that is quantized
    already; `arrays` keeps both, so the number of samples is bounded by memory.
    """

    graph: Graph
    samples: Sequence[Sample]
    settings: Settings
    arrays: dict[Value, list[Array]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        numbers = sum(v.type.numel for v in self.graph.values() if is_activation(v))
        most = max(4, min(_MOST_SAMPLES, _MEMORY // (12 * numbers + 1)))
        step = math.ceil(len(self.samples) / most)
        self.samples = self.samples[::step]
        for value in self.graph.inputs:
            self.arrays[value] = [np.asarray(sample[value.name]) for sample in self.samples]

    def provide(self, value: Value, arrays: list[Array]) -> None:
        """Say what a value is on each sample."""
        self.arrays[value] = arrays

    def run(self, value: Value) -> list[Array]:
        """Return the arrays of a value on each sample, from those of the values before it."""
        waiting = [value]
        while waiting:
            node = waiting[-1].producer
            if waiting[-1] in self.arrays or node is None:
                waiting.pop()
                continue
            needed = [v for v in node.inputs if v is not None and v.data is None]
            missing = [v for v in needed if v not in self.arrays]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            self._run_node(node)
        return self.arrays[value]

    def _run_node(self, node: Node) -> None:
        results: list[list[Array]] = [[] for _ in node.outputs]
        for number in range(len(self.samples)):
            inputs = [
                None if v is None else v.data if v.data is not None else self.arrays[v][number]
                for v in node.inputs
            ]
            for result, array in zip(results, evaluate_node(node, inputs), strict=True):
                result.append(array)
        self.arrays.update(zip(node.outputs, results, strict=True))

    def fit(self, node: Node, x: Value, type_: TensorType) -> tuple[Value, Value | None] | None:
        """Return int8 weights and a real bias for a layer that will read x instead of its input.

        `type_` is that of the integers behind x. None where the layer is not of a kind, or of a
        size, that is fitted.
        """
        source, weights, *rest = node.inputs
        if source is None or weights is None or weights.data is None or not self.samples:
            return None
        groups = _groups(node)
        if groups is None or math.prod(weights.shape[1:]) > _LARGEST_INNER:
            return None
        before = _windows(node, self.run(source), groups)
        after = _windows(node, self.run(x), groups)
        if not (np.isfinite(before).all() and np.isfinite(after).all()):
            return None
        bias = rest[0].data if rest and rest[0] is not None else None
        real = weights.data.reshape(groups, weights.shape[0] // groups, -1).astype(np.float64)
        moments = after.transpose(0, 2, 1) @ after / after.shape[1]
        assert type_.quant is not None
        floor = bias_floor(bias, type_.quant, weights.shape[CHANNEL_AXIS], type_.dtype)
        found = self._scales(real, moments, floor)
        scale = _broadcast(found, real.shape)
        if "weight-rounding" in self.settings.tools:
            stored = round_by_output(real / scale, moments)
        else:
            stored = np.clip(np.rint(real / scale), -127, 127)
        small = TensorType(dtypes.I8, weights.shape, found)
        integers = constant(weights.name, stored.reshape(weights.shape).astype(np.int8), small)
        old = rest[0] if rest else None
        if "bias-correction" not in self.settings.tools:
            return integers, old
        wanted = (real @ before.mean(axis=1)[:, :, None]).reshape(-1)
        got = ((stored * scale) @ after.mean(axis=1)[:, :, None]).reshape(-1)
        new = (0.0 if bias is None else bias) + wanted - got
        name = old.name if old is not None else f"{node.names[0]}.bias"
        return integers, constant(name, new.astype(np.float32))

    def _scales(self, real: Array, moments: Array, floor: Array) -> Quant:
        """Return the weights' scales: the largest weight's, or those with least output error."""
        largest = np.abs(real).max(axis=2) / 127
        schema = self.settings.schema
        if not self.settings.per_channel:
            return symmetric_scales(largest.max(), None, floor, schema)
        best, chosen = np.full(largest.shape, np.inf), largest
        shrinks = _SHRINKS if "weight-clipping" in self.settings.tools else _SHRINKS[:1]
        for shrink in shrinks:
            flat = symmetric_scales((largest * shrink).reshape(-1), 0, floor, schema)
            scale = _broadcast(flat, real.shape)
            lost = np.clip(np.rint(real / scale), -127, 127) * scale - real
            error = ((lost @ moments) * lost).sum(axis=2)
            better = error < best
            best, chosen = np.where(better, error, best), np.where(better, scale[:, :, 0], chosen)
        return symmetric_scales(chosen.reshape(-1), 0, floor, schema)


def _broadcast(quant: Quant, shape: tuple[int, ...]) -> Array:
    """Return the scales of output channels for weights [groups, channels, inner]."""
    scale = np.asarray(quant.scale, np.float64)
    return np.broadcast_to(
        scale, shape[:1] + shape[1:2] if scale.size == 1 else scale.shape
    ).reshape(shape[0], shape[1], 1)


def _groups(node: Node) -> int | None:
    if isinstance(node.op, Dense):
        return 1
    return node.op.groups if isinstance(node.op, Conv2D) else None


def _windows(node: Node, arrays: list[Array], groups: int) -> Array:
    """Return what meets the layer's weights, at some places: [groups, places, inner]."""
    count = math.ceil(_ROWS / len(arrays))
    op, weights = node.op, node.inputs[1]
    assert weights is not None
    rng = np.random.default_rng(0)
    if isinstance(op, Dense):
        rows = [a.reshape(-1, a.shape[-1]) for a in arrays]
        return np.concatenate([r[_some(rng, len(r), count)] for r in rows])[None].astype(np.float64)
    assert isinstance(op, Conv2D)
    found = []
    for array in arrays:
        window = op.window(node.inputs[0].type, weights.type)  # type: ignore[union-attr]
        places = _some(rng, array.shape[0] * math.prod(window.output), count)
        index = np.unravel_index(places, (array.shape[0], *window.output))
        seen = np.stack([values[index] for _, _, values in taps(array, window, 0.0)], axis=1)
        found.append(seen.reshape(len(places), seen.shape[1], groups, -1).transpose(2, 0, 1, 3))
    joined = np.concatenate(found, axis=1)
    return joined.reshape(groups, joined.shape[1], -1).astype(np.float64)


def _some(rng: np.random.Generator, available: int, count: int) -> Array:
    return np.arange(available) if available <= count else rng.choice(available, count, False)


def round_by_output(units: Array, moments: Array) -> Array:
    """Round weights one input after another; those that follow make up for the error so far.

    units    weights [groups, channels, inner] in units of their scale
    moments  second moments of the inputs [groups, inner, inner]
    Rounding the input with index k by e leaves an output error that is least when weight j > k
    changes by e * U[k, j] / U[k, k], U the upper Cholesky factor of the inverse moments.
    """
    inner = moments.shape[-1]
    power = np.trace(moments, axis1=1, axis2=2)[:, None] / inner
    damped = moments + (np.maximum(power * _DAMPING, 1e-12))[:, :, None] * np.eye(inner)
    lower = np.linalg.cholesky(np.linalg.inv(damped))
    upper = lower.transpose(0, 2, 1)
    left, stored = units.copy(), np.zeros_like(units)
    for k in range(inner):
        stored[:, :, k] = np.clip(np.rint(left[:, :, k]), -127, 127)
        error = (left[:, :, k] - stored[:, :, k]) / upper[:, k, k][:, None]
        left[:, :, k:] -= error[:, :, None] * upper[:, k, k:][:, None, :]
    return stored
