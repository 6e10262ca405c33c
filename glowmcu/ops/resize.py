"""Resize2D: the rows and columns of an image resized by the nearest or the two nearest elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.fixedpoint import multiplier_of, requantize
from glowmcu.core.types import Array, TensorType
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder
from glowmcu.instr.instruction import In, Instruction, Out
from glowmcu.ops._linear import for_type, is_stored, narrowed, of_one_type
from glowmcu.ops._requantize import is_requantizable, requantized
from glowmcu.ops._resize_taps import Axis
from glowmcu.ops.base import Example, Op, f32, i8, i16
from glowmcu.ops.strided_copy import Move, dense_strides, emit_move
from glowmcu.targets.kernel import Kernel


class Resize2D(Op):
    """x [N, H, W, C] resized to [N, height.out, width.out, C], mode nearest or linear.

    `rounding` is ONNX's nearest_mode, or `simple`: down, but up where an axis shrinks (opset 10).
    """

    height: Axis
    width: Axis
    mode: str = "nearest"
    rounding: str = "round_prefer_floor"

    def infer(self, x: TensorType) -> TensorType:
        if x.rank != 4 or x.shape[1:3] != (self.height.size, self.width.size):
            raise TypeError(f"{x} is not an image of {self.height.size} x {self.width.size}")
        if self.mode == "linear" and x.dtype != dtypes.F32 and x.quant is None:
            raise TypeError(f"mode 'linear' works on float numbers, not on {x.dtype}")
        shape = (x.shape[0], self.height.out, self.width.out, x.shape[3])
        return x.real().with_shape(shape)

    def reference(self, x: Array) -> Array:
        if self.mode == "nearest":
            rows, cols = self.height.nearest(self.rounding), self.width.nearest(self.rounding)
            return np.ascontiguousarray(x[:, rows][:, :, cols])
        return bilinear(x, *self.height.linear(), *self.width.linear())

    def integer(self, inputs: Any, outputs: Any) -> bool:
        x, y = inputs[0], outputs[0]
        if self.mode == "nearest":
            return is_requantizable(x, y)
        return is_stored(x) and is_stored(y) and x.quant.scale[0] / y.quant.scale[0] < 2.0**12

    def lower(self, b: Builder, x: Buffer) -> Buffer:
        y = b.result()
        if y.type.numel == 0:
            return b.view(x, y.type)
        if self.mode == "nearest":
            self._lower_nearest(b, y, requantized(b, x, y.type))
        elif x.type.quant is None:
            rows, cols = self.height.linear(), self.width.linear()
            b.emit(ResizeLinear(y=y, x=x, **_tables(b, rows, cols), **self._sizes(x)))
        else:
            self._lower_linear_stored(b, y, x)
        return y

    def _sizes(self, x: Buffer) -> dict[str, Any]:
        batch, height, width, channels = x.type.shape
        return {
            "batch": batch,
            "height": height,
            "width": width,
            "channels": channels,
            "out_height": self.height.out,
            "out_width": self.width.out,
        }

    def _lower_nearest(self, b: Builder, y: Buffer, x: Buffer) -> None:
        batch, height, width, channels = x.type.shape
        rows, cols = self.height.nearest(self.rounding), self.width.nearest(self.rounding)
        down, right = _repeats(rows, height), _repeats(cols, width)
        if down and right:
            shape = (batch, height, down, width, right, channels)
            image, row, pixel, one = dense_strides(x.type.shape)
            strides = (image, row, 0, pixel, 0, one)
            emit_move(b, y, x, Move(shape, strides, dense_strides(shape)))
            return
        sizes = self._sizes(x)
        del sizes["channels"]
        b.emit(
            ResizeNearest(
                y=y,
                x=x,
                rows=b.constant(rows, f"{b.name}.rows"),
                cols=b.constant(cols, f"{b.name}.cols"),
                pixel=channels * x.type.dtype.nbytes,
                **sizes,
            )
        )

    def _lower_linear_stored(self, b: Builder, y: Buffer, x: Buffer) -> None:
        one = of_one_type(b, x, y)
        x = one.x
        assert x.type.quant
        assert y.type.quant
        unit, dtype = (1 << 16, np.int32) if x.type.dtype is dtypes.I16 else (1 << 10, np.int16)
        rows, cols = (
            (index, np.rint(weight * unit).astype(dtype))
            for index, weight in (self.height.linear(), self.width.linear())
        )
        scale = x.type.quant.scale[0] / y.type.quant.scale[0]
        multiplier, _ = multiplier_of(scale / 2.0 ** (14 if unit == 1 << 16 else 20))
        b.emit(
            ResizeLinear(
                y=one.y,
                x=x,
                **_tables(b, rows, cols),
                **self._sizes(x),
                x_zero_point=x.type.quant.zero_point[0],
                multiplier=multiplier,
                zero_point=y.type.quant.zero_point[0],
            )
        )
        narrowed(b, y, one.y)

    examples = (
        Example((f32(1, 3, 4, 2),), {"height": Axis(3, 6, 2.0), "width": Axis(4, 8, 2.0)}),
        Example((f32(2, 5, 4, 3),), {"height": Axis(5, 3, 0.6), "width": Axis(4, 7, 1.75)}),
        Example(
            (i8(1, 3, 4, 2),),
            {"height": Axis(3, 5, 1.7), "width": Axis(4, 4, 1.0)},
            output=i8(1, 5, 4, 2),
            tolerance=0,
        ),
        Example(
            (f32(2, 5, 4, 3),),
            {"height": Axis(5, 3, 0.6), "width": Axis(4, 7, 1.75), "mode": "linear"},
            tolerance=1e-6,
        ),
        Example(
            (i8(2, 5, 4, 3),),
            {"height": Axis(5, 9, 1.8), "width": Axis(4, 7, 1.75), "mode": "linear"},
            output=i8(2, 9, 7, 3, scale=0.04, zero_point=11),
            tolerance=1,
        ),
        *(
            Example(
                (x,),
                {"height": Axis(5, 9, 1.8), "width": Axis(4, 7, 1.75), "mode": mode},
                output=y,
                tolerance=1,
            )
            for mode in ("linear", "nearest")
            for x, y in (
                (i16(2, 5, 4, 3, zero_point=7), i16(2, 9, 7, 3)),
                (i16(2, 5, 4, 3), i16(2, 9, 7, 3, scale=5e-5)),
                (i8(2, 5, 4, 3), i16(2, 9, 7, 3)),
                (i16(2, 5, 4, 3), i8(2, 9, 7, 3)),
            )
        ),
    )


def _repeats(index: Array, size: int) -> int:
    """Return how often every element repeats, 0 where they do not repeat alike."""
    count = len(index) // size
    return count if np.array_equal(index, np.repeat(np.arange(size), count)) else 0


def _tables(b: Builder, rows: tuple[Array, Array], cols: tuple[Array, Array]) -> dict[str, Any]:
    return {
        "rows": b.constant(rows[0], f"{b.name}.rows"),
        "row_weights": b.constant(rows[1], f"{b.name}.row_weights"),
        "cols": b.constant(cols[0], f"{b.name}.cols"),
        "col_weights": b.constant(cols[1], f"{b.name}.col_weights"),
    }


def bilinear(x: Array, rows: Array, down: Array, cols: Array, right: Array, one: int = 1) -> Array:
    """Return x [N, H, W, C] between rows and rows + 1, cols and cols + 1, times one squared.

    The weights say how much of the way, in units of 1 / one.
    """
    below, beside = rows + (down > 0), cols + (right > 0)
    down, right = down.reshape(-1, 1, 1), right.reshape(-1, 1)
    top, bottom = x[:, rows], x[:, below]
    upper = top[:, :, cols] * one + (top[:, :, beside] - top[:, :, cols]) * right
    lower = bottom[:, :, cols] * one + (bottom[:, :, beside] - bottom[:, :, cols]) * right
    return np.asarray(upper * one + (lower - upper) * down)


class ResizeNearest(Instruction):
    """y[n][i][j] = x[n][rows[i]][cols[j]], pixels of `pixel` bytes."""

    y: Out
    x: In
    rows: In
    cols: In
    batch: int
    height: int
    width: int
    out_height: int
    out_width: int
    pixel: int

    kernels = (Kernel("gm_resize_nearest", core=True),)

    def reference(self, x: Array, rows: Array, cols: Array) -> Array:
        image = x.reshape(self.batch, self.height, self.width, -1)
        return image[:, rows][:, :, cols]


class ResizeLinear(Instruction):
    """y = x between rows[i] and the next (row_weights of the way), columns likewise.

    Integers are requantized; the weights are 1024ths of int8, 65536ths of int16.
    """

    y: Out
    x: In
    rows: In
    row_weights: In
    cols: In
    col_weights: In
    batch: int
    height: int
    width: int
    channels: int
    out_height: int
    out_width: int
    x_zero_point: int | None = None
    multiplier: int | None = None
    zero_point: int | None = None

    kernels = (
        *for_type(dtypes.F32, Kernel("gm_resize_linear_f32", core=True)),
        *for_type(dtypes.I8, Kernel("gm_resize_linear_s8", core=True)),
        *for_type(dtypes.I16, Kernel("gm_resize_linear_s16", core=True)),
    )

    @property
    def macs(self) -> int:
        return 3 * self.y.type.numel

    def reference(self, x: Array, rows: Array, down: Array, cols: Array, right: Array) -> Array:
        image = x.reshape(self.batch, self.height, self.width, self.channels)
        if self.x_zero_point is None or self.multiplier is None or self.zero_point is None:
            return bilinear(image, rows, down, cols, right)
        image, down, right = (a.astype(np.int64) for a in (image, down, right))
        unit, shift = (1 << 16, -18) if self.x.type.dtype is dtypes.I16 else (1 << 10, 0)
        acc = bilinear(image, rows, down, cols, right, one=unit) - self.x_zero_point * unit * unit
        low, high = self.y.type.dtype.low, self.y.type.dtype.high
        return requantize(acc, self.multiplier, shift, self.zero_point, low, high)
