"""Rows with mean 0 and variance 1: the heart of layer, group and instance normalization."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.types import Array, TensorType
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder
from glowmcu.instr.instruction import In, Instruction, Out
from glowmcu.ops._linear import data_of, is_stored, narrowed, wide_result, widened
from glowmcu.ops._program import Input, Program, Step, Temp
from glowmcu.ops.base import Example, Op, f32, i8, i16
from glowmcu.ops.elementwise import emit_map
from glowmcu.targets.kernel import Kernel

MAX_INTEGER_COLS = 1 << 13
_LARGEST = 1 << 31


class Standardize(Op):
    """(x - mean) / sqrt(variance + epsilon) along the last axis; the mean is 0 unless `centre`.

    Optional constants `scale` and `bias`, a number for each element of a row: * scale + bias.
    """

    floats = (dtypes.F32,)

    epsilon: float
    centre: bool = True

    def infer(
        self, x: TensorType, scale: TensorType | None = None, bias: TensorType | None = None
    ) -> TensorType:
        if x.rank == 0 or x.dtype is not dtypes.F32:
            raise TypeError(f"Standardize takes rows of float32, not {x}")
        if any(c is not None and c.shape != x.shape[-1:] for c in (scale, bias)):
            raise TypeError(f"scale and bias must have {x.shape[-1]} elements, as many as a row")
        return TensorType(x.dtype, x.shape)

    def reference(self, x: Array, scale: Array | None = None, bias: Array | None = None) -> Array:
        centred = x - x.mean(axis=-1, keepdims=True) if self.centre else x
        variance = (centred * centred).mean(axis=-1, keepdims=True)
        y: Array = centred / np.sqrt(variance + np.float32(self.epsilon))
        y = y if scale is None else y * scale
        return y if bias is None else y + bias

    def integer(self, inputs: Any, outputs: Any) -> bool:
        x, y = inputs[0], outputs[0]
        if not is_stored(x) or not is_stored(y) or not 0 < x.shape[-1] <= MAX_INTEGER_COLS:
            return False
        known = all(c is None or c.quant is None for c in inputs[1:])
        return known and self._epsilon(x) < 2.0**60 and y.quant.scale[0] < 2.0**7

    def _epsilon(self, x: TensorType) -> float:
        """Return epsilon as it is added to the variance times cols^2 in units of x."""
        assert x.quant is not None
        return self.epsilon * (x.shape[-1] / x.quant.scale[0]) ** 2

    def lower(
        self, b: Builder, x: Buffer, scale: Buffer | None = None, bias: Buffer | None = None
    ) -> Buffer:
        y = b.result()
        if x.type.quant is not None:
            self._lower_stored(b, y, x, scale, bias)
            return y
        parts = [c for c in (scale, bias) if c is not None]
        plain = b.activation(y.type) if parts else y
        *rows, cols = x.type.shape
        b.emit(
            StandardizeF32(
                y=plain,
                x=x,
                rows=math.prod(rows),
                cols=cols,
                epsilon=self.epsilon,
                centre=int(self.centre),
            )
        )
        program: Program = () if scale is None else (Step("mul", (Input(0), Input(1))),)
        if bias is not None:
            last = Input(0) if scale is None else Temp(0)
            program += (Step("add", (last, Input(len(parts)))),)
        if parts:
            emit_map(b, y, (plain, *parts), program)
        return y

    def _lower_stored(
        self, b: Builder, y: Buffer, x: Buffer, scale: Buffer | None, bias: Buffer | None
    ) -> None:
        given, result = widened(b, x), wide_result(b, y)
        assert x.type.quant and y.type.quant and given.type.quant
        *rows, cols = x.type.shape
        unit = 1 / y.type.quant.scale[0]
        factor = _constant(scale, cols, 1.0) * unit
        added = np.clip(_constant(bias, cols, 0.0) * unit * 256, -_LARGEST, _LARGEST - 1)
        largest = max(float(np.abs(factor).max()), 2.0**-38)
        up = min(23, math.floor(math.log2((_LARGEST - 1) / largest)))
        b.emit(
            StandardizeS16(
                y=result,
                x=given,
                scale=b.constant(
                    np.asarray(np.rint(factor * 2.0**up), np.int32), f"{b.name}.scale"
                ),
                bias=b.constant(np.asarray(np.rint(added), np.int32), f"{b.name}.bias"),
                rows=math.prod(rows),
                cols=cols,
                centre=int(self.centre),
                x_zero_point=given.type.quant.zero_point[0],
                epsilon=round(self._epsilon(x.type)),
                shift=23 + up,
                zero_point=y.type.quant.zero_point[0],
                low=y.type.dtype.low,
                high=y.type.dtype.high,
            )
        )
        narrowed(b, y, result)

    examples = (
        Example((f32(3, 17),), {"epsilon": 1e-5}, tolerance=1e-5),
        Example((f32(2, 3, 8),), {"epsilon": 1e-3, "centre": False}, tolerance=1e-5),
        Example((f32(3, 17), f32(17), f32(17)), {"epsilon": 1e-5}, (1, 2), tolerance=1e-5),
        Example((f32(3, 7), None, f32(7)), {"epsilon": 1e-5}, (2,), tolerance=1e-5),
        *(
            Example((x, f32(17), f32(17)), {"epsilon": 1e-5, "centre": c}, (1, 2), y, tolerance=1)
            for c in (True, False)
            for x, y in (
                (i16(3, 17), i16(3, 17, scale=3e-4)),
                (i16(3, 17, zero_point=77), i16(3, 17, scale=3e-4, zero_point=-9)),
                (i8(3, 17), i8(3, 17)),
                (i16(3, 17), i8(3, 17)),
            )
        ),
        Example((i8(2, 300),), {"epsilon": 1e-5}, (), i8(2, 300, scale=0.03), tolerance=1),
    )


def _constant(buffer: Buffer | None, cols: int, absent: float) -> Array:
    if buffer is None:
        return np.full(cols, absent)
    data = data_of(buffer)
    assert data is not None
    return data.astype(np.float64)


class StandardizeF32(Instruction):
    """y[r] = (x[r] - mean) / sqrt(variance + epsilon)."""

    y: Out
    x: In
    rows: int
    cols: int
    epsilon: float
    centre: int

    kernels = (Kernel("gm_standardize_f32", core=True),)
    may_share = (("y", "x"),)

    def reference(self, x: Array) -> Array:
        return Standardize(self.epsilon, bool(self.centre)).reference(x)


class StandardizeS16(Instruction):
    """The same of int16 in integers, scaled and shifted per column; see gm_standardize_s16.h."""

    y: Out
    x: In
    scale: In
    bias: In
    rows: int
    cols: int
    centre: int
    x_zero_point: int
    epsilon: int
    shift: int
    zero_point: int
    low: int
    high: int

    kernels = (Kernel("gm_standardize_s16", core=True),)
    may_share = (("y", "x"),)

    def reference(self, x: Array, scale: Array, bias: Array) -> Array:
        wide = x.reshape(self.rows, self.cols).astype(np.int64) - self.x_zero_point
        total = wide.sum(axis=1, keepdims=True) * self.centre
        spread = self.cols * (wide * wide).sum(axis=1, keepdims=True) - total * total
        inverse, down = _inverse_roots(np.maximum(spread + self.epsilon, 1))
        z = (wide * self.cols - total) * inverse + (1 << (down - 1)) >> down
        fine = (z * scale.astype(np.int64) >> (self.shift - 8)) + bias
        stored = (fine + 128 >> 8) + self.zero_point
        return np.asarray(np.clip(stored, self.low, self.high)).astype(np.int16)


def _inverse_roots(v: Array) -> tuple[Array, Array]:
    """Return 1 / sqrt(v) in 2^(down + 23)ths, and down."""
    doubled = np.zeros_like(v)
    for _ in range(30):
        small = v < 1 << 60
        v, doubled = np.where(small, v << 2, v), doubled + small
    root = np.sqrt(v.astype(np.float64)).astype(np.int64)
    root = root - (root * root > v)
    root = root + ((root + 1) * (root + 1) <= v)
    return (1 << 61) // root, 38 - doubled
