"""Requantization against exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glowmcu.core.fixedpoint import multiplier_of, requantize

INT32 = st.integers(-(1 << 31), (1 << 31) - 1)


@given(st.floats(1e-9, 30000.0))
def test_multiplier_is_even_and_close_to_the_scale(scale: float) -> None:
    multiplier, shift = multiplier_of(scale)
    assert multiplier % 2 == 0
    assert 0 <= multiplier < 1 << 31
    represented = Fraction(multiplier, 1 << 32) * (1 << shift)
    assert abs(represented - Fraction(scale)) <= Fraction(1 << shift, 1 << 32)


@given(INT32, st.floats(1e-6, 0.49), st.integers(-128, 127))
def test_requantize_rounds_half_up(acc: int, scale: float, zero_point: int) -> None:
    multiplier, shift = multiplier_of(scale)
    assert shift == 0
    exact = Fraction(acc * multiplier, 1 << 32) + Fraction(1, 2)
    rounded = exact.numerator // exact.denominator
    expected = max(-128, min(127, rounded + zero_point))
    got = requantize(np.asarray([acc]), multiplier, shift, zero_point, -128, 127)
    assert got[0] == expected


@pytest.mark.parametrize("scale", [0.5, 1.0, 3.75, 1000.0, 32767.0])
def test_scales_of_one_half_and_more_shift_left(scale: float) -> None:
    multiplier, shift = multiplier_of(scale)
    assert shift >= 1
    got = requantize(np.asarray([-7, 0, 1, 9]), multiplier, shift, 0, -(1 << 30), 1 << 30)
    assert np.abs(got - np.asarray([-7, 0, 1, 9]) * scale).max() <= 0.5 + 9 * scale * 2.0**-29


@pytest.mark.parametrize("scale", [float("nan"), float("inf"), -0.1, 32768.0])
def test_impossible_scales_are_refused(scale: float) -> None:
    with pytest.raises(ValueError, match="requantization scale"):
        multiplier_of(scale)


def test_a_scale_of_zero_gives_zero() -> None:
    multiplier, shift = multiplier_of(0.0)
    assert requantize(np.asarray([1 << 30]), multiplier, shift, 5, -128, 127)[0] == 5


@given(st.integers(-(1 << 24), 1 << 24), st.sampled_from([2, 4, 8, 64]), st.integers(-9, 9))
def test_averages_round_ties_away_from_zero(acc: int, count: int, zero_point: int) -> None:
    multiplier, shift = multiplier_of(1 / count)
    got = requantize(
        np.asarray([acc]), multiplier, shift, zero_point, -(1 << 30), 1 << 30, average=True
    )
    exact = Fraction(acc, count) + zero_point
    magnitude = abs(exact) + Fraction(1, 2)
    away = magnitude.numerator // magnitude.denominator
    assert got[0] == (away if exact > 0 else -away)
