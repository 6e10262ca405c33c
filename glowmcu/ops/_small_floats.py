"""Conversions of 8-bit and 4-bit floating-point formats: C expressions and numpy twins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.dtypes import DType
from glowmcu.core.types import Array


@dataclass(frozen=True)
class Format:
    """Layout of a format: see gm_small_float.h for the meaning of the codes."""

    sign: int
    mantissa: int
    bias: int
    largest: int
    infinite: int
    nan: int
    zeros: int


FORMATS: dict[DType, Format] = {
    dtypes.E4M3FN: Format(7, 3, 7, 0x7E, 256, 0x7F, 2),
    dtypes.E4M3FNUZ: Format(7, 3, 8, 0x7F, 256, 256, 1),
    dtypes.E5M2: Format(7, 2, 15, 0x7B, 0x7C, 0x7D, 2),
    dtypes.E5M2FNUZ: Format(7, 2, 16, 0x7F, 256, 256, 1),
    dtypes.E2M1: Format(3, 1, 1, 0x7, 256, 256, 2),
}
_PARTS = {"down": 0, "nearest": 0x400000, "up": 0x7FFFFF}


def from_float(dtype: DType, saturate: bool, mode: str = "up") -> str:
    """Return the C expression that converts the float {a}."""
    if dtype is dtypes.E8M0:
        largest = 0xFE if saturate else 0xFF
        return f"gm_f32_to_e8m0({{a}}, {_PARTS[mode]}u, {largest}u)"
    f = FORMATS[dtype]
    nan = 1 << f.sign if f.nan == 256 else f.nan
    beyond = f.largest
    if not saturate and dtype is not dtypes.E2M1:
        beyond = f.infinite if f.infinite < 256 else nan
    codes = f"{f.largest}u, {beyond}u, {beyond}u, {nan}u, {f.zeros}"
    return f"gm_f32_to_small({{a}}, {f.sign}u, {f.mantissa}u, {f.bias}, {codes})"


def to_float(dtype: DType) -> str:
    """Return the C expression that converts the stored {a}."""
    if dtype is dtypes.E8M0:
        return "gm_e8m0_to_f32({a})"
    f = FORMATS[dtype]
    codes = f"{f.infinite}u, {f.nan}u, {f.zeros}"
    return f"gm_small_to_f32({{a}}, {f.sign}u, {f.mantissa}u, {f.bias}, {codes})"


def convert(dtype: DType, saturate: bool, mode: str = "up") -> Callable[[Array], Array]:
    """Return the numpy function that converts an array of real numbers."""

    def small(x: Array) -> Array:
        real = x.astype(np.float32)
        if dtype is dtypes.E8M0:
            return _powers(real, _PARTS[mode], 0xFE if saturate else 0xFF).view(dtype.numpy)
        if saturate and dtype is not dtypes.E2M1:
            top = np.asarray(FORMATS[dtype].largest, np.uint8).view(dtype.numpy).astype(np.float32)
            real = np.clip(real, -top, top)
        return real.astype(dtype.numpy)

    return small


def _powers(real: Array, part: int, largest: int) -> Array:
    rest = real.view(np.uint32) & np.uint32(0x7FFFFFFF)
    code = np.minimum((rest + np.uint32(part)) >> 23, largest)
    return np.where(rest >= 0x7F800000, 0xFF, code).astype(np.uint8)
