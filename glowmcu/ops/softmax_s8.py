"""Softmax in integers by table: exponentials of int8, powers of two of int16."""

from __future__ import annotations

import math

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.types import Array, TensorType
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder
from glowmcu.instr.instruction import Flag, In, Instruction, Out
from glowmcu.ops._linear import for_type, is_stored, narrowed, wide_result, widened
from glowmcu.ops.binary_s8 import is_i8
from glowmcu.targets.kernel import Kernel

MAX_BYTE_COLS = 2048
"""Longest row of int8 whose table of exponentials is fine enough for 1 LSB of 1/256."""
_STEPS = 128
"""Lines between which powers and logarithms of two are straight."""
_LARGEST = 1 << 31


class SoftmaxS8(Instruction):
    """y[r] = exp(x[r] - max) / sum in integers by table, or its logarithm: int8 or int16.

    int8   table[max - x] are exponentials of sum_shift + 15 bits, those beyond `last` equal to it;
           probabilities have 30 bits and are brought to the scale of y by multiplier = 2^14 / scale
    int16  powers of two between those of the table, see gm_softmax_s16.h; the attributes that are
           None for int8 belong to it
    """

    y: Out
    x: In
    table: In
    log: Flag = False
    rows: int
    cols: int
    last: int
    exponent_multiplier: int | None = None
    exponent_shift: int | None = None
    sum_shift: int
    multiplier: int
    log_multiplier: int | None = None
    shift: int | None = None
    zero_point: int
    low: int | None = None
    high: int | None = None

    kernels = (
        *for_type(dtypes.I8, Kernel("gm_softmax_s8", core=True)),
        *for_type(
            dtypes.I16,
            Kernel(
                "gm_softmax_s16", core=True, accepts=lambda i: "is no logarithm" if i.log else ""
            ),
            Kernel(
                "gm_log_softmax_s16",
                core=True,
                accepts=lambda i: "" if i.log else "is for the logarithm",
            ),
        ),
    )
    may_share = (("y", "x"),)

    def reference(self, x: Array, table: Array) -> Array:
        wide = x.reshape(self.rows, self.cols).astype(np.int64)
        below = wide.max(axis=1, keepdims=True) - wide
        if self.y.type.dtype is dtypes.I8:
            return self._of_bytes(below, table.astype(np.int64))
        return self._of_halfwords(below, table.astype(np.int64))

    def _of_bytes(self, below: Array, table: Array) -> Array:
        powers = table[np.minimum(below, self.last)]
        total = powers.sum(axis=1, keepdims=True) >> self.sum_shift
        part = (powers >> self.sum_shift) * ((1 << 30) // total)
        fine = (part * self.multiplier + (1 << 31)) >> 32
        y: Array = np.clip(((fine + (1 << 11)) >> 12) + self.zero_point, -128, 127)
        return y.astype(np.int8)

    def _of_halfwords(self, below: Array, table: Array) -> Array:
        assert self.shift is not None
        assert self.log_multiplier is not None
        powers = self._powers(below, table)
        total = powers.sum(axis=1, keepdims=True) >> self.sum_shift
        if self.log:
            log2 = _log2(total, 30 - self.sum_shift, table[_STEPS + 1 :])
            acc = -log2 * self.log_multiplier - below * self.multiplier
        else:
            inverse = (1 << (61 - self.sum_shift)) // total
            acc = (powers * inverse >> 30) * self.multiplier
        stored = (acc + (1 << (self.shift - 1)) >> self.shift) + self.zero_point
        return np.asarray(np.clip(stored, self.low, self.high)).astype(np.int16)

    def _powers(self, below: Array, table: Array) -> Array:
        assert self.exponent_multiplier is not None
        assert self.exponent_shift is not None
        t = np.minimum(below, self.last) * self.exponent_multiplier >> self.exponent_shift
        place, part = t >> 19 & _STEPS - 1, t & (1 << 19) - 1
        step = (table[place] - table[place + 1]) * part >> 19
        return np.asarray(table[place] - step >> (t >> 26))


def _log2(total: Array, one: int, table: Array) -> Array:
    whole = np.floor(np.log2(total)).astype(np.int64)
    m = total << (31 - whole)
    place, part = m >> 24 & _STEPS - 1, m & (1 << 24) - 1
    step = (table[place + 1] - table[place]) * part >> 24
    return np.asarray(((whole - one) << 20) + table[place] + step)


def fits_bytes(x: TensorType, y: TensorType) -> bool:
    """Tell whether the kernel for int8 is exact to 1 LSB between these types."""
    fits = x.shape[-1] <= MAX_BYTE_COLS and is_i8(x) and is_i8(y)
    return fits and y.quant is not None and y.quant.scale[0] > 2.0**-14


def fits_halfwords(x: TensorType, y: TensorType) -> bool:
    """Tell whether the kernels for int16 are exact to 1 LSB between these types."""
    if not is_stored(x) or not is_stored(y) or not 0 < x.shape[-1] <= 1 << 14:
        return False
    assert x.quant and y.quant
    return x.quant.scale[0] < 16 and 2.0**-17 < y.quant.scale[0] < 64


def emit_softmax_bytes(b: Builder, y: Buffer, x: Buffer) -> None:
    """Emit the softmax of int8 x along its last axis by the kernel for int8."""
    assert x.type.quant and y.type.quant
    cols = x.type.shape[-1]
    bits = table_bits(cols)
    table = exponentials(x.type.quant.scale[0], bits)
    b.emit(
        SoftmaxS8(
            y=y,
            x=x,
            table=b.constant(table, f"{b.name}.exponentials"),
            rows=math.prod(x.type.shape[:-1]),
            cols=cols,
            last=table.size - 1,
            sum_shift=bits - 15,
            multiplier=round(2.0**14 / y.type.quant.scale[0]),
            zero_point=y.type.quant.zero_point[0],
        )
    )


def table_bits(cols: int) -> int:
    """Return the bits of the largest exponential: a row of `cols` of them must fit 32 bits."""
    return min(22, 31 - (cols - 1).bit_length())


def exponentials(scale: float, bits: int) -> Array:
    """Return exp(-d * scale) for d = 0, 1, … as integers of `bits` bits, up to the first zero."""
    real = np.exp(-scale * np.arange(256, dtype=np.float64))
    table = np.rint(real * 2.0**bits).astype(np.uint32)
    return table[: np.count_nonzero(table) + 1]


def emit_softmax_halfwords(b: Builder, y: Buffer, x: Buffer, *, log: bool) -> None:
    """Emit the softmax of x, int8 or int16, along its last axis, or its logarithm, in int16."""
    assert x.type.quant and y.type.quant
    given, result = widened(b, x), wide_result(b, y)
    sx, sy = x.type.quant.scale[0], y.type.quant.scale[0]
    cols = x.type.shape[-1]
    exponent = sx / math.log(2.0)
    exponent_shift = _shift(exponent * 2.0**26, 31)
    if log:
        shift = min(_shift(sx / sy, 40), 20 + _shift(math.log(2.0) / sy, 40))
        multiplier, log_multiplier = sx / sy * 2.0**shift, math.log(2.0) / sy * 2.0 ** (shift - 20)
    else:
        shift = 31 + _shift(1 / sy, 12)
        multiplier, log_multiplier = 2.0 ** (shift - 31) / sy, 0.0
    b.emit(
        SoftmaxS8(
            y=result,
            x=given,
            table=b.constant(_table(log=log), f"{b.name}.powers"),
            log=log,
            rows=math.prod(x.type.shape[:-1]),
            cols=cols,
            last=min((1 << 16) - 1, int(31 / exponent)),
            exponent_multiplier=round(exponent * 2.0 ** (26 + exponent_shift)),
            exponent_shift=exponent_shift,
            sum_shift=max(0, (cols - 1).bit_length() - 1),
            multiplier=round(multiplier),
            log_multiplier=round(log_multiplier),
            shift=shift,
            zero_point=y.type.quant.zero_point[0],
            low=y.type.dtype.low,
            high=y.type.dtype.high,
        )
    )
    narrowed(b, y, result)


def _shift(real: float, most: int) -> int:
    """Return how far a real number can be shifted left to stay below 2^31."""
    return min(most, math.floor(math.log2((_LARGEST - 1) / real)))


def _table(*, log: bool) -> Array:
    places = np.arange(_STEPS + 1) / _STEPS
    powers, logarithms = 2.0 ** (30 - places), np.log2(1 + places) * 2.0**20
    real = np.concatenate([powers, logarithms]) if log else powers
    return np.asarray(np.rint(real), np.int32)
