"""Where accuracy is lost: the signal-to-noise ratio of every integer layer against float."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glowmcu.core.types import Array, dequantize, quantize
from glowmcu.graph.evaluate import evaluate_all
from glowmcu.graph.graph import Graph, Value
from glowmcu.quantize.calibrate import Sample, is_activation


@dataclass(frozen=True)
class LayerError:
    """The error of one value of the quantized network.

    sqnr  power of the real signal over that of the error, in decibels; infinite where exact
    """

    name: str
    op: str
    stored: str
    low: float
    high: float
    sqnr: float


def layer_errors(real: Graph, quantized: Graph, samples: Sequence[Sample]) -> list[LayerError]:
    """Compare the values of both networks that have one name, in the order of execution.

    The error of a layer includes what it inherits from the layers before it.
    """
    names = {v.name: v for v in real.values() if is_activation(v)}
    signal: dict[Value, float] = {}
    noise: dict[Value, float] = {}
    for sample in samples:
        expected = evaluate_all(real, sample)
        got = evaluate_all(quantized, stored_sample(quantized, sample))
        for value, array in got.items():
            other = names.get(value.name)
            if value.is_constant or other is None or other.shape != value.shape:
                continue
            if other.perm != value.perm:
                continue
            want = expected[other].astype(np.float64)
            back = dequantize(array, value.type.quant) if value.type.quant else array
            signal[value] = signal.get(value, 0.0) + float(np.square(want).sum())
            noise[value] = noise.get(value, 0.0) + float(np.square(want - back).sum())
    return [_error(value, signal[value], noise[value]) for value in signal]


def stored_sample(graph: Graph, sample: Sample) -> dict[str, Array]:
    """Return a sample as the network takes it: stored integers where its inputs are quantized."""
    return {
        v.name: quantize(sample[v.name], v.type.quant, v.type.dtype)
        if v.type.quant
        else sample[v.name]
        for v in graph.inputs
    }


def _error(value: Value, signal: float, noise: float) -> LayerError:
    ratio = (
        math.inf if noise == 0 else -math.inf if signal == 0 else 10 * math.log10(signal / noise)
    )
    type_ = value.type
    low = high = math.nan
    if type_.quant is not None:
        ends = np.array([type_.dtype.low, type_.dtype.high])
        low, high = (float(e) for e in dequantize(ends, type_.quant))
    node = value.producer
    kind = "input" if node is None else getattr(node.op, "fn", type(node.op).__name__)
    return LayerError(value.name, kind, str(type_.dtype), low, high, ratio)
