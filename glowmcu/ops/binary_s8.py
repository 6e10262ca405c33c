"""Integer addition, subtraction and multiplication of two int8 or int16 tensors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.dtypes import DType
from glowmcu.core.fixedpoint import multiplier_of, requantize
from glowmcu.core.types import Array, Quant, TensorType
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder
from glowmcu.instr.instruction import In, Instruction, Out, RowWindow
from glowmcu.ops._add_mve import ADD_MVE
from glowmcu.ops._binary_dsp import ADD_DSP, MUL_DSP
from glowmcu.ops._linear import for_type, is_stored, narrowed, wide_result, widened
from glowmcu.ops.map import collapse
from glowmcu.targets.kernel import Kernel


@dataclass(frozen=True)
class Layout:
    """How two operands are read: y[r][c] of a[r][c] and b[r * b_row + c * b_col].

    `swapped`: the first operand of the node is the one that broadcasts, so it is b.
    """

    rows: int
    cols: int
    b_row: int
    b_col: int
    swapped: bool


def layout_of(x: tuple[int, ...], z: tuple[int, ...]) -> Layout | None:
    """Return the layout for operands of these shapes; None where two loops are not enough."""
    y = np.broadcast_shapes(x, z)
    numel = math.prod(y)
    if numel not in (math.prod(x), math.prod(z)):
        return None
    swapped = math.prod(x) != numel
    sizes, (_, steps) = collapse(y, [z, x] if swapped else [x, z])
    if len(sizes) > 2:
        return None
    rows, cols = [1, 1, *sizes][-2:]
    b_row, b_col = [0, 0, *steps][-2:]
    return Layout(rows, cols, b_row, b_col, swapped)


class BinaryS8(Instruction):
    """y of a and b, element by element; b may broadcast as Layout says."""

    y: Out
    a: In
    b: In
    rows: int
    cols: int
    b_row: int
    b_col: int

    may_share = (("y", "a"),)

    def shares(self) -> tuple[tuple[str, str], ...]:
        """y may also lie where b does, if b has as many elements."""
        return super().shares() + _shares_b(self.rows, self.b_row, self.b_col, self.cols)

    def windows(self) -> Mapping[str, RowWindow]:
        both = _shares_b(self.rows, self.b_row, self.b_col, self.cols)
        return {"a": RowWindow(), "b": RowWindow()} if both else {}

    def at_row(self, row: int) -> Self | None:
        if not self.windows():
            return None
        count = _row_size(self.y)
        return replace(self, rows=1, cols=count, b_row=count, b_col=1)


class AddS8(BinaryS8):
    """y = clamp((a * a_multiplier + b * b_multiplier + offset) >> shift)."""

    a_multiplier: int
    b_multiplier: int
    offset: int
    shift: int
    low: int
    high: int

    kernels = (
        *for_type(dtypes.I8, *ADD_MVE, *ADD_DSP, Kernel("gm_add_s8", core=True)),
        *for_type(dtypes.I16, Kernel("gm_add_s16", core=True)),
    )

    def reference(self, a: Array, b: Array) -> Array:
        wide_a, wide_b = _spread(self, a, b)
        acc = wide_a * self.a_multiplier + wide_b * self.b_multiplier + self.offset
        y: Array = np.clip(acc >> self.shift, self.low, self.high)
        return y


class MulS8(BinaryS8):
    """y = requantize((a - a_zero) * (b - b_zero))."""

    a_zero: int
    b_zero: int
    multiplier: int
    shift: int
    zero_point: int
    low: int
    high: int

    kernels = (
        *for_type(dtypes.I8, *MUL_DSP, Kernel("gm_mul_s8", core=True)),
        *for_type(dtypes.I16, Kernel("gm_mul_s16", core=True)),
    )

    def reference(self, a: Array, b: Array) -> Array:
        wide_a, wide_b = _spread(self, a, b)
        acc = (wide_a - self.a_zero) * (wide_b - self.b_zero)
        return requantize(acc, self.multiplier, self.shift, self.zero_point, self.low, self.high)


def _shares_b(rows: int, b_row: int, b_col: int, cols: int) -> tuple[tuple[str, str], ...]:
    whole = (b_col == 1 or cols == 1) and (rows == 1 or b_row == cols)
    return (("y", "b"),) if whole else ()


def _row_size(y: Buffer) -> int:
    """Return the elements of a row of an NHWC image."""
    return y.type.numel // (y.type.shape[1] if y.type.rank == 4 else 1)


def _spread(i: AddS8 | MulS8, a: Array, b: Array) -> tuple[Array, Array]:
    row, col = np.arange(i.rows)[:, None], np.arange(i.cols)
    wide_b = b.reshape(-1).astype(np.int64)[row * i.b_row + col * i.b_col]
    return a.reshape(i.rows, i.cols).astype(np.int64), wide_b


_FACTOR_BITS = 23
"""Bits of a multiplier: 256 times it fits 32 bits, which Arm's DSP extension makes use of."""


@dataclass(frozen=True)
class AddConstants:
    """The numbers of an integer addition, see AddS8."""

    a: int
    b: int
    offset: int
    shift: int


def add_constants(
    a: Quant, b: Quant, y: Quant, sign: int, dtype: DType = dtypes.I8
) -> AddConstants | None:
    """Return constants for y = a + sign * b that stay within 32 bits and 1 LSB; None if none do.

    Sums of int16 have 64 bits, and fit 32 when they are shifted.
    """
    ratio_a = a.scale[0] / y.scale[0]
    ratio_b = sign * b.scale[0] / y.scale[0]
    real = y.zero_point[0] - a.zero_point[0] * ratio_a - b.zero_point[0] * ratio_b
    if dtype is dtypes.I16:
        return _add_constants_s16(ratio_a, ratio_b, real)
    for shift in range(30, 7, -1):
        one = 1 << shift
        found = AddConstants(
            round(ratio_a * one), round(ratio_b * one), round((real + 0.5) * one), shift
        )
        bound = 128 * (abs(found.a) + abs(found.b)) + abs(found.offset)
        if bound < 1 << 31 and max(abs(found.a), abs(found.b)) < 1 << _FACTOR_BITS:
            return found
    return None


def _add_constants_s16(ratio_a: float, ratio_b: float, real: float) -> AddConstants | None:
    for shift in range(31, 15, -1):
        one = 1 << shift
        found = AddConstants(
            round(ratio_a * one), round(ratio_b * one), round((real + 0.5) * one), shift
        )
        bound = (1 << 15) * (abs(found.a) + abs(found.b)) + abs(found.offset)
        if max(abs(found.a), abs(found.b)) < 1 << 31 and bound >> shift < 1 << 30:
            return found
    return None


def is_i8(type_: TensorType) -> bool:
    """Tell whether a type is int8 with one scale."""
    return type_.dtype is dtypes.I8 and type_.quant is not None and type_.quant.axis is None


def has_integer_add(a: TensorType, b: TensorType, y: TensorType, sign: int) -> bool:
    """Tell whether AddS8 computes y = a + sign * b."""
    types = (a, b, y)
    if not all(map(is_stored, types)) or layout_of(a.shape, b.shape) is None:
        return False
    assert y.quant is not None
    first, second = (_quant(t, _common(types)) for t in (a, b))
    return add_constants(first, second, y.quant, sign, _common(types)) is not None


def _common(types: Iterable[TensorType]) -> DType:
    """Return the type in which stored integers are added or multiplied."""
    return dtypes.I16 if any(t.dtype is dtypes.I16 for t in types) else dtypes.I8


def _quant(type_: TensorType, dtype: DType) -> Quant:
    """Return what an operand means once it has that type: int8 lose their zero point then."""
    assert type_.quant is not None
    same = type_.dtype is dtype
    return type_.quant if same else Quant.per_tensor(type_.quant.scale[0])


def has_integer_mul(a: TensorType, b: TensorType, y: TensorType) -> bool:
    """Tell whether MulS8 computes y = a * b."""
    types = (a, b, y)
    if not all(map(is_stored, types)) or layout_of(a.shape, b.shape) is None:
        return False
    assert a.quant and b.quant and y.quant
    scale = a.quant.scale[0] * b.quant.scale[0] / y.quant.scale[0]
    if _common(types) is dtypes.I8:
        return scale < 2.0**14
    reach = math.prod(abs(t.quant.zero_point[0]) - t.dtype.low for t in (a, b) if t.quant)
    return scale < 2.0**14 and reach << multiplier_of(scale)[1] < 1 << 31


def emit_add(b: Builder, y: Buffer, x: Buffer, z: Buffer, sign: int, low: int, high: int) -> None:
    """Emit y = x + sign * z, clamped to the stored integers low..high."""
    first, second, result = _operands(b, x, z, y)
    layout = layout_of(x.type.shape, z.type.shape)
    assert layout and first.type.quant and second.type.quant and y.type.quant
    quants = (first.type.quant, second.type.quant, y.type.quant)
    found = add_constants(*quants, sign, result.type.dtype)
    assert found is not None
    multipliers = (found.b, found.a) if layout.swapped else (found.a, found.b)
    b.emit(
        AddS8(
            y=result,
            a=second if layout.swapped else first,
            b=first if layout.swapped else second,
            rows=layout.rows,
            cols=layout.cols,
            b_row=layout.b_row,
            b_col=layout.b_col,
            a_multiplier=multipliers[0],
            b_multiplier=multipliers[1],
            offset=found.offset,
            shift=found.shift,
            low=low,
            high=high,
        )
    )
    narrowed(b, y, result)


def _operands(b: Builder, x: Buffer, z: Buffer, y: Buffer) -> tuple[Buffer, Buffer, Buffer]:
    """Return x, z and y as elements of one type."""
    if _common((x.type, z.type, y.type)) is dtypes.I8:
        return x, z, y
    return widened(b, x), widened(b, z), wide_result(b, y)


def emit_mul(b: Builder, y: Buffer, x: Buffer, z: Buffer, low: int, high: int) -> None:
    """Emit y = x * z, clamped to the stored integers low..high."""
    first, second, result = _operands(b, x, z, y)
    layout = layout_of(x.type.shape, z.type.shape)
    assert layout and first.type.quant and second.type.quant and y.type.quant
    a, c = (second, first) if layout.swapped else (first, second)
    assert a.type.quant and c.type.quant
    scale = a.type.quant.scale[0] * c.type.quant.scale[0] / y.type.quant.scale[0]
    multiplier, shift = multiplier_of(scale)
    b.emit(
        MulS8(
            y=result,
            a=a,
            b=c,
            rows=layout.rows,
            cols=layout.cols,
            b_row=layout.b_row,
            b_col=layout.b_col,
            a_zero=a.type.quant.zero_point[0],
            b_zero=c.type.quant.zero_point[0],
            multiplier=multiplier,
            shift=shift,
            zero_point=y.type.quant.zero_point[0],
            low=low,
            high=high,
        )
    )
    narrowed(b, y, result)
