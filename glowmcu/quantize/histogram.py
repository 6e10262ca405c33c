"""Histograms whose bins grow with the data and do not depend on the order in which they come."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from glowmcu.core.types import Array

BINS = 2048
_FINEST = 2.0**-20
_SMALLEST = 2.0**-120


@dataclass
class Histogram:
    """How often numbers fell into each bin [(first + i) * width, (first + i + 1) * width).

    The width is a power of two and doubles until at most BINS bins hold everything seen, so that
    counts are exact and the same data give the same bins in any order.
    """

    low: float = math.inf
    high: float = -math.inf
    width: float = 0.0
    first: int = 0
    counts: Array = field(default_factory=lambda: np.zeros(0, np.int64))

    def observe(self, array: Array) -> None:
        """Count the elements of one array; it is not empty and its elements are finite."""
        low, high = float(array.min()), float(array.max())
        self.low, self.high = min(self.low, low), max(self.high, high)
        self._make_room()
        index = np.floor(array.reshape(-1) / np.float64(self.width)).astype(np.int64) - self.first
        self.counts += np.bincount(index, minlength=len(self.counts))

    def centers(self) -> Array:
        """Return the number in the middle of each bin, none outside what was seen."""
        middle = (np.arange(len(self.counts)) + 0.5 + self.first) * self.width
        return np.asarray(np.clip(middle, self.low, self.high))

    @property
    def total(self) -> int:
        """How many numbers were seen."""
        return int(self.counts.sum())

    def union(self, other: Histogram) -> Histogram:
        """Return the histogram of what both have seen."""
        result = Histogram(min(self.low, other.low), max(self.high, other.high))
        result.width = max(self.width, other.width)
        result._make_room()
        for part in (self, other):
            index = np.floor((np.arange(len(part.counts)) + part.first) * part.width / result.width)
            np.add.at(result.counts, index.astype(np.int64) - result.first, part.counts)
        return result

    def _make_room(self) -> None:
        width = self.width
        if not width:
            reach = max(abs(self.low), abs(self.high), _SMALLEST)
            width = 2.0 ** math.floor(math.log2(reach)) * _FINEST
        while math.floor(self.high / width) - math.floor(self.low / width) >= BINS:
            width *= 2
        first = math.floor(self.low / width)
        counts = np.zeros(math.floor(self.high / width) - first + 1, np.int64)
        if len(self.counts):
            ratio = min(round(width / self.width), 1 << 62)
            index = (np.arange(len(self.counts)) + self.first) // ratio - first
            np.add.at(counts, index, self.counts)
        self.width, self.first, self.counts = width, first, counts
