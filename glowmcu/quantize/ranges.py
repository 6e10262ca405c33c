"""Ranges to represent, chosen from histograms: everything, or less of it with less error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from glowmcu.core.types import Array
from glowmcu.options import Observer
from glowmcu.quantize.histogram import Histogram

_LEVELS = 255
_PERCENT = 99.99
_SHRINKS = np.linspace(1.0, 0.3, 36)


@dataclass(frozen=True)
class Range:
    """The real numbers from low to high."""

    low: float
    high: float

    def union(self, other: Range) -> Range:
        """Return the smallest range that holds both."""
        return Range(min(self.low, other.low), max(self.high, other.high))


def minmax(seen: Histogram) -> Range:
    """Return the smallest and the largest element."""
    return Range(seen.low, seen.high)


def percentile(seen: Histogram) -> Range:
    """Return the range that leaves out one in 10,000 elements at either end."""
    below = np.cumsum(seen.counts) / seen.total
    edges = (np.arange(len(below) + 1) + seen.first) * seen.width
    low = edges[int(np.searchsorted(below, 1 - _PERCENT / 100, side="right"))]
    high = edges[int(np.searchsorted(below, _PERCENT / 100)) + 1]
    return Range(max(float(low), seen.low), min(float(high), seen.high))


def mse(seen: Histogram) -> Range:
    """Return the range of 256 levels with the least mean squared error, each end by itself."""
    centers, weights = seen.centers(), seen.counts.astype(np.float64)
    zero = np.abs(centers) < seen.width
    low, high = min(seen.low, 0.0), max(seen.high, 0.0)
    for _ in range(2):
        errors = [_squared_error(centers, weights, zero, low, high * s) for s in _SHRINKS]
        high = high * float(_SHRINKS[int(np.argmin(errors))])
        errors = [_squared_error(centers, weights, zero, low * s, high) for s in _SHRINKS]
        low = low * float(_SHRINKS[int(np.argmin(errors))])
    return Range(low, high)


def _squared_error(centers: Array, weights: Array, zero: Array, low: float, high: float) -> float:
    """Return the squared error of the numbers with 256 levels from low to high; zero has none."""
    step = (high - low) / _LEVELS
    if step <= 0.0:
        return float(weights @ (centers * centers))
    beyond = centers - np.clip(centers, low, high)
    rounding = step * step / 12
    return float(weights @ (np.square(beyond) + rounding * (beyond == 0) * ~zero))


def entropy(seen: Histogram) -> Range:
    """Return the range whose 256 levels keep most information (least KL divergence).

    Numbers near zero do not count: a level represents zero exactly, and relu makes many.
    """
    counts = seen.counts.astype(np.float64)
    bins = len(counts)
    if 0 <= -seen.first < bins:
        counts[-seen.first] = 0.0
    if bins <= _LEVELS:
        return minmax(seen)
    sums = np.concatenate([[0.0], np.cumsum(counts)])
    best, chosen = np.inf, (0, bins)
    one_sided = seen.low >= 0.0
    for size in range(_LEVELS, bins + 1, 16):
        starts = np.array([0]) if one_sided else np.arange(bins - size + 1)
        start = int(starts[np.argmax(sums[starts + size] - sums[starts])])
        found = _divergence(counts, start, start + size, sums)
        if found < best:
            best, chosen = found, (start, start + size)
    edges = [(seen.first + i) * seen.width for i in chosen]
    return Range(max(edges[0], seen.low), min(edges[1], seen.high))


def _divergence(counts: Array, start: int, stop: int, sums: Array) -> float:
    """Return the KL divergence from the clipped counts to their form in 255 levels."""
    window = counts[start:stop]
    clipped = window.copy()
    clipped[0] += sums[start]
    clipped[-1] += sums[-1] - sums[stop]
    level = np.arange(len(window)) * _LEVELS // len(window)
    filled = window > 0
    mass = np.bincount(level, window, minlength=_LEVELS)
    places = np.bincount(level, filled, minlength=_LEVELS)
    spread = np.where(filled, (mass / np.maximum(places, 1))[level], 0.0)
    p, q = clipped / clipped.sum(), spread / max(float(spread.sum()), 1e-30)
    used = p > 0
    return float((p[used] * np.log(p[used] / np.maximum(q[used], 1e-6 / len(window)))).sum())


CHOOSERS: dict[Observer, Callable[[Histogram], Range]] = {
    "minmax": minmax,
    "percentile": percentile,
    "entropy": entropy,
    "mse": mse,
}
