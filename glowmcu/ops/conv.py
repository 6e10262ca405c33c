"""Convolution over images, grouped and depthwise included, NHWC."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.dtypes import DType
from glowmcu.core.types import Array, TensorType
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder
from glowmcu.ops._linear import (
    clamp_range,
    data_of,
    fold_linear,
    integer_linear,
    narrowed,
    of_one_type,
)
from glowmcu.ops._window import MAX_ROWS, Pads, Pair, Window, convolve
from glowmcu.ops.base import Example, Op, bias_i32, f32, f64, i8, i16, weights_i8
from glowmcu.ops.contract import COMPUTED, emit_convolution
from glowmcu.ops.conv2d import ConvF32, ConvS8, fills_by_bytes
from glowmcu.ops.depthwise import DepthwiseF32, DepthwiseS8


def _quantized(x: TensorType, w: TensorType, y: TensorType, **attributes: Any) -> Example:
    return Example((x, w, bias_i32(x, w)), attributes, (1, 2), y, tolerance=1)


class Conv2D(Op):
    """x [N, H, W, C], w [O, KH, KW, C / groups], optional b [O] -> [N, H', W', O], clamped.

    dtype  what integers are taken to and summed up in, wrapping; None: the type of x
    """

    floats = (dtypes.F32, dtypes.F64)

    strides: Pair = (1, 1)
    pads: Pads = (0, 0, 0, 0)
    dilations: Pair = (1, 1)
    groups: int = 1
    clamp: tuple[float, float] | None = None
    dtype: DType | None = None

    def window(self, x: TensorType, w: TensorType) -> Window:
        """Return how the window lies on x."""
        return self._window(x.shape, w.shape)

    def _window(self, x: tuple[int, ...], w: tuple[int, ...]) -> Window:
        size, kernel = (x[1], x[2]), (w[1], w[2])
        return Window.over(size, kernel, self.strides, self.dilations, self.pads)

    def infer(self, x: TensorType, w: TensorType, b: TensorType | None = None) -> TensorType:
        if x.rank != 4 or w.rank != 4:
            raise TypeError(f"x and w must have four dimensions, not {x.rank} and {w.rank}")
        if x.shape[3] != w.shape[3] * self.groups:
            raise TypeError(
                f"x has {x.shape[3]} channels, the weights {w.shape[3]} in each of "
                f"{self.groups} groups"
            )
        if w.shape[0] % self.groups:
            raise TypeError(f"{w.shape[0]} output channels do not divide into {self.groups} groups")
        if b is not None and b.shape != (w.shape[0],):
            raise TypeError(f"the bias has shape {b.shape}, the weights {w.shape[0]} channels")
        output = self.window(x, w).output
        return TensorType(self.dtype or x.dtype, (x.shape[0], *output, w.shape[0]))

    def reference(self, x: Array, w: Array, b: Array | None = None) -> Array:
        dtype = self.dtype.numpy if self.dtype else x.dtype
        x, w = x.astype(dtype), w.astype(dtype)
        y = convolve(x, w, self._window(x.shape, w.shape), self.groups).astype(dtype)
        y = y if b is None else y + b
        return y if self.clamp is None else np.clip(y, *self.clamp).astype(dtype)

    def integer(self, inputs: Any, outputs: Any) -> bool:
        return integer_linear(inputs, outputs)

    def lower(self, b: Builder, x: Buffer, w: Buffer, bias: Buffer | None = None) -> Buffer:
        y = b.result()
        window = self.window(x.type, w.type)
        if y.type.dtype in COMPUTED:
            emit_convolution(b, (x, w, bias), window, self.groups, self.clamp)
            return y
        constant = all(c is None or data_of(c) is not None for c in (w, bias))
        depthwise = constant and self._is_depthwise(x.type, w.type)
        geometry: dict[str, Any] = window.attributes(x.type.shape[0])
        geometry["padded_width"] = window.padded_width
        if x.type.quant is None:
            low, high = self.clamp or (-math.inf, math.inf)
            float_kind = DepthwiseF32 if depthwise else ConvF32
            channels = self._channels(x.type, w.type, depthwise)
            b.emit(float_kind(y=y, x=x, w=w, bias=bias, **geometry, **channels, low=low, high=high))
            return y
        one = of_one_type(b, x, y)
        x = one.x
        assert x.type.quant is not None
        folded = fold_linear(b, x.type, w, bias, one.y.type, 0, one.reach)
        low_q, high_q = clamp_range(self.clamp, y.type)
        fill = x.type.quant.zero_point[0]
        depthwise = depthwise and not folded.is_wide and fills_by_bytes(x.type.dtype, fill)
        integer_kind = DepthwiseS8 if depthwise else ConvS8
        b.emit(
            integer_kind(
                y=one.y,
                x=x,
                **geometry,
                **self._channels(x.type, w.type, depthwise),
                **folded.attributes(),
                fill=fill,
                low=low_q,
                high=high_q,
            )
        )
        narrowed(b, y, one.y)
        return y

    def _is_depthwise(self, x: TensorType, w: TensorType) -> bool:
        return self.groups == x.shape[3] == w.shape[0] and w.shape[1] <= MAX_ROWS

    def _channels(self, x: TensorType, w: TensorType, depthwise: bool) -> dict[str, Any]:
        if depthwise:
            return {"channels": x.shape[3]}
        return {
            "groups": self.groups,
            "channels": x.shape[3] // self.groups,
            "out_channels": w.shape[0] // self.groups,
        }

    examples = (
        Example((f32(1, 5, 6, 3), f32(4, 3, 3, 3), f32(4)), {"pads": (1, 1, 1, 1)}, (1, 2)),
        Example(
            (f32(2, 7, 5, 1), f32(5, 3, 2, 1), None),
            {"strides": (2, 2), "pads": (1, 0, 0, 1), "clamp": (0.0, 6.0)},
            (1,),
        ),
        Example(
            (f32(1, 9, 8, 6), f32(4, 3, 3, 3), f32(4)),
            {"groups": 2, "dilations": (2, 2), "pads": (2, 1, 0, 3)},
            (1, 2),
        ),
        Example((f32(1, 3, 3, 2), f32(7, 1, 1, 2), f32(7)), {}, (1, 2)),
        Example((f32(1, 6, 5, 2), f32(3, 3, 3, 2), f32(3)), {"pads": (0, 1, 1, 0)}),
        Example((f32(1, 20, 2, 1), f32(2, 18, 1, 1), None), {"pads": (1, 0, 0, 0)}, (1,)),
        Example(
            (f32(1, 6, 9, 5), f32(5, 3, 3, 1), f32(5)),
            {"groups": 5, "pads": (1, 1, 1, 1), "clamp": (0.0, math.inf)},
            (1, 2),
        ),
        Example(
            (f32(1, 7, 6, 3), f32(6, 2, 3, 1), None),
            {"groups": 3, "strides": (2, 1), "dilations": (1, 2)},
            (1,),
        ),
        Example(
            (f64(2, 9, 8, 6), f64(4, 3, 2, 3), f64(4)),
            {"groups": 2, "dilations": (2, 1), "pads": (2, 1, 0, 3), "strides": (1, 2)},
            (1, 2),
            tolerance=1e-15,
        ),
        Example((f64(1, 3, 3, 2), f64(7, 1, 1, 2), f64(7)), {"clamp": (0.0, 6.0)}, tolerance=1e-15),
        Example(
            (TensorType(dtypes.I16, (1, 6, 9, 5)), TensorType(dtypes.I8, (5, 3, 3, 1)), None),
            {"groups": 5, "pads": (1, 1, 1, 1), "dtype": dtypes.I32},
            low=-255,
            high=255,
        ),
        _quantized(i8(1, 5, 6, 3), weights_i8(4, 3, 3, 3), i8(1, 5, 6, 4), pads=(1, 1, 1, 1)),
        _quantized(
            i8(2, 7, 5, 1, zero_point=-128),
            weights_i8(5, 3, 2, 1),
            i8(2, 3, 3, 5, zero_point=-128),
            strides=(2, 2),
            pads=(1, 0, 0, 1),
            clamp=(0.0, 6.0),
        ),
        _quantized(
            i8(1, 9, 8, 6),
            weights_i8(4, 3, 3, 3),
            i8(1, 7, 8, 4, scale=0.1),
            groups=2,
            dilations=(2, 2),
            pads=(2, 1, 0, 3),
        ),
        _quantized(i8(1, 3, 3, 7), weights_i8(2, 1, 1, 7), i8(1, 3, 3, 2)),
        _quantized(i8(1, 20, 2, 1), weights_i8(2, 18, 1, 1), i8(1, 4, 2, 2), pads=(1, 0, 0, 0)),
        _quantized(
            i8(1, 4, 4, 2, scale=0.5), weights_i8(3, 1, 1, 2, scale=0.5), i8(1, 4, 4, 3, scale=0.2)
        ),
        _quantized(
            i8(1, 6, 9, 5), weights_i8(5, 3, 3, 1), i8(1, 6, 9, 5), groups=5, pads=(1, 1, 1, 1)
        ),
        _quantized(
            i8(1, 7, 6, 3),
            weights_i8(3, 2, 3, 1),
            i8(1, 3, 2, 3),
            groups=3,
            strides=(2, 1),
            dilations=(1, 2),
        ),
        _quantized(i16(1, 5, 6, 3), weights_i8(4, 3, 3, 3), i16(1, 5, 6, 4), pads=(1, 1, 1, 1)),
        _quantized(
            i16(2, 7, 5, 1, zero_point=-300),
            weights_i8(5, 3, 2, 1),
            i16(2, 3, 3, 5, zero_point=20),
            strides=(2, 2),
            pads=(1, 0, 0, 1),
            clamp=(0.0, 1.0),
        ),
        _quantized(i16(1, 3, 3, 7), weights_i8(2, 1, 1, 7), i8(1, 3, 3, 2)),
        _quantized(
            i8(1, 5, 5, 4), weights_i8(4, 3, 3, 1), i16(1, 5, 5, 4), groups=4, pads=(1, 1, 1, 1)
        ),
        _quantized(i16(1, 20, 2, 1), weights_i8(2, 18, 1, 1), i16(1, 4, 2, 2), pads=(1, 0, 0, 0)),
        _quantized(
            i16(1, 6, 9, 5),
            weights_i8(5, 3, 3, 1),
            i16(1, 6, 9, 5, scale=2e-4),
            groups=5,
            pads=(1, 1, 1, 1),
            clamp=(0.0, math.inf),
        ),
        _quantized(
            i16(1, 6, 9, 5, zero_point=5),
            weights_i8(5, 3, 3, 1),
            i16(1, 6, 9, 5),
            groups=5,
            pads=(1, 1, 1, 1),
        ),
        _quantized(i16(1, 2, 3, 1200), weights_i8(3, 1, 1, 1200), i16(1, 2, 3, 3, scale=1e-3)),
    )
