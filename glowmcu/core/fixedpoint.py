"""Requantization: the one definition of how an int32 accumulator becomes an int8 or int16.

    y = clamp(zero_point + (((acc << shift) * multiplier + 2^31) >> 32))

A negative shift goes right and rounds half up: sums of 64 bits are brought to 32 that way.

`multiplier` is an even int32, 2 * round(scale / 2^shift * 2^31), so that the same bits come out of
SMMLAR (Cortex-M4), VQRDMULH (MVE, with multiplier / 2) and an int64 product (C99).
"""

from __future__ import annotations

import math

import numpy as np

from glowmcu.core.types import Array


def multiplier_of(scale: float) -> tuple[int, int]:
    """Return (multiplier, left shift) of a positive real scale below 2^15.

    The shift is 0 for scales below 1/2; the caller proves that `acc << shift` fits 32 bits.
    """
    if not (math.isfinite(scale) and 0.0 <= scale < 2.0**15):
        raise ValueError(f"a requantization scale must lie in [0, 32768), not {scale}")
    shift = 0
    while round(scale / 2.0**shift * 2.0**31) >= 1 << 30:
        shift += 1
    return 2 * round(scale / 2.0**shift * 2.0**31), shift


def requantize(
    acc: Array,
    multiplier: Array | int,
    shift: Array | int,
    zero_point: int,
    low: int,
    high: int,
    *,
    average: bool = False,
) -> Array:
    """Requantize accumulators, which fit 32 bits once shifted, to [low, high] (int32).

    average  round an exact half away from zero (of the stored integers) instead of up, as
             TensorFlow Lite's averages do: dividing by a power of two meets halves often
    """
    wide = np.asarray(acc, np.int64)
    left = np.asarray(shift, np.int64)
    half = np.where(left < 0, 1 << np.maximum(-left - 1, 0), 0)
    wide = (wide + half >> np.maximum(-left, 0)) << np.maximum(left, 0)
    wide = wide * np.asarray(multiplier, np.int64) + (1 << 31)
    stored = (wide >> 32) + zero_point
    if average:
        stored = np.where((wide & 0xFFFFFFFF == 0) & (stored <= 0), stored - 1, stored)
    clamped: Array = np.clip(stored, low, high).astype(np.int32)
    return clamped
