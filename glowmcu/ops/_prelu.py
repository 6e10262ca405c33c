"""PRelu of stored integers whose slopes differ, say by channel: two multipliers an element."""

from __future__ import annotations

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.types import TensorType, dequantize
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder
from glowmcu.ops._linear import data_of, is_stored, multipliers_of
from glowmcu.ops._program import Input, Literal, Program, Step, Temp
from glowmcu.ops.map import Map

_MOST = 14
"""Bits by which x less its zero point, 17 bits of them, can be shifted left within 32."""


def has_integer_prelu(x: TensorType, slope: TensorType, y: TensorType) -> bool:
    """Tell whether there is integer arithmetic for constant slopes of this type."""
    if not is_stored(x) or not is_stored(y) or x.shape != y.shape:
        return False
    assert x.quant and y.quant
    real = slope.dtype is dtypes.F32 or (slope.quant is not None and slope.quant.axis is None)
    return real and x.quant.scale[0] / y.quant.scale[0] < 2.0**_MOST


def emit_prelu(b: Builder, y: Buffer, x: Buffer, slope: Buffer) -> bool:
    """Emit y = x, times slope where x is negative; tell whether slopes are known and not huge."""
    stored = data_of(slope)
    if stored is None:
        return False
    assert x.type.quant and y.type.quant
    slopes = dequantize(stored, slope.type.quant) if slope.type.quant else stored
    ratio = x.type.quant.scale[0] / y.type.quant.scale[0]
    scales = np.append(np.abs(slopes.astype(np.float64)) * ratio, ratio)
    if float(scales.max()) >= 2.0**_MOST:
        return False
    found, shift = multipliers_of(scales)
    factors = np.where(slopes < 0, -1, 1) << shift
    multipliers = b.constant(found[:-1].astype(np.int32).reshape(slopes.shape), f"{b.name}.slopes")
    shifted = b.constant(factors.astype(np.int32), f"{b.name}.factors")
    one, zero = 1 << shift, y.type.quant.zero_point[0]
    program: Program = (
        Step("cast_i32", (Input(0),)),
        Step("sub", (Temp(0), _number(x.type.quant.zero_point[0]))),
        Step("less", (Temp(1), _number(0))),
        Step("where", (Temp(2), Input(1), _number(int(found[-1])))),
        Step("where", (Temp(2), Input(2), _number(one))),
        Step("mul", (Temp(1), Temp(4))),
        Step("multiply_high", (Temp(5), Temp(3))),
        Step("add", (Temp(6), _number(zero))),
        Step("clamp", (Temp(7), _number(y.type.dtype.low), _number(y.type.dtype.high))),
        Step(f"cast_{y.type.dtype}", (Temp(8),)),
    )
    b.emit(Map(y=y, xs=(x, multipliers, shifted), program=program))
    return True


def _number(value: int) -> Literal:
    return Literal(value, dtypes.I32)
