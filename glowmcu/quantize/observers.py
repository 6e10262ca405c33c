"""Observers: each watches the arrays of one value and ends with the range to represent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from glowmcu.core.types import Array


@dataclass(frozen=True)
class Range:
    """The real numbers from low to high."""

    low: float
    high: float

    def union(self, other: Range) -> Range:
        """Return the smallest range that holds both."""
        return Range(min(self.low, other.low), max(self.high, other.high))


class Observer(Protocol):
    """Watches the arrays that one value takes, sample after sample."""

    def observe(self, array: Array) -> None:
        """Take note of one array; it is not empty and its elements are finite."""

    def range(self) -> Range:
        """Return the range to represent, from what was seen."""


@dataclass
class MinMax:
    """The whole range of everything seen."""

    low: float = np.inf
    high: float = -np.inf

    def observe(self, array: Array) -> None:
        """Widen the range."""
        self.low = min(self.low, float(array.min()))
        self.high = max(self.high, float(array.max()))

    def range(self) -> Range:
        """Return the smallest and the largest element seen."""
        return Range(self.low, self.high)


@dataclass
class Percentile:
    """The range that holds `percent` of a sample's elements, averaged over the samples."""

    percent: float = 99.99
    lows: list[float] = field(default_factory=list)
    highs: list[float] = field(default_factory=list)

    def observe(self, array: Array) -> None:
        """Note the two quantiles of one sample."""
        low, high = np.percentile(array, [100.0 - self.percent, self.percent])
        self.lows.append(float(low))
        self.highs.append(float(high))

    def range(self) -> Range:
        """Return the mean quantiles."""
        return Range(float(np.mean(self.lows)), float(np.mean(self.highs)))


OBSERVERS: dict[str, Callable[[], Observer]] = {"minmax": MinMax, "percentile": Percentile}
