"""Histograms that grow, and the ranges chosen from them."""

from __future__ import annotations

import numpy as np
import pytest

from glowmcu.core.types import Array
from glowmcu.quantize.histogram import BINS, Histogram
from glowmcu.quantize.ranges import CHOOSERS, entropy, minmax, mse, percentile


def histogram(*arrays: Array) -> Histogram:
    result = Histogram()
    for array in arrays:
        result.observe(array.astype(np.float32))
    return result


def same(a: Histogram, b: Histogram) -> bool:
    head = (a.low, a.high, a.width, a.first) == (b.low, b.high, b.width, b.first)
    return head and bool(np.array_equal(a.counts, b.counts))


def test_the_order_does_not_matter() -> None:
    rng = np.random.default_rng(0)
    parts = [rng.normal(0, 10.0**k, 500) for k in (-3, 2, 0)] + [np.zeros(3), np.array([7.0])]
    first, second = histogram(*parts), histogram(*parts[::-1])
    assert same(first, second)
    assert same(first, histogram(*parts[:2]).union(histogram(*parts[2:])))
    assert first.total == sum(p.size for p in parts)
    assert len(first.counts) <= BINS
    assert np.abs(first.centers()).max() <= max(-first.low, first.high)


@pytest.mark.parametrize("data", [np.zeros(5), np.full(4, -3.0), np.array([1e30, -1e-30])])
def test_few_different_numbers(data: Array) -> None:
    seen = histogram(data)
    assert seen.total == data.size
    for choose in CHOOSERS.values():
        found = choose(seen)
        assert np.isfinite([found.low, found.high]).all()


def test_outliers_are_clipped() -> None:
    data = np.random.default_rng(0).normal(0, 1, 100_000)
    data[0] = 9.0
    seen = histogram(data)
    assert minmax(seen).high == 9.0
    for choose in (percentile, mse, entropy):
        found = choose(seen)
        assert 2.5 < found.high < 8.0
        assert -6.0 < found.low < -2.5


def test_without_outliers_nothing_much_is_clipped() -> None:
    data = np.random.default_rng(0).uniform(0, 6, 100_000)
    for choose in CHOOSERS.values():
        found = choose(histogram(data))
        assert found.high == pytest.approx(6.0, rel=0.05)
        assert found.low == pytest.approx(0.0, abs=0.05)
