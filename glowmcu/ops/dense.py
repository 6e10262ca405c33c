"""Fully connected layer: y = x . w^T + b, with a clamp for the activation that follows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.fixedpoint import requantize
from glowmcu.core.packing import pack
from glowmcu.core.types import Array, TensorType
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder
from glowmcu.instr.instruction import In, Instruction, Out
from glowmcu.ops import _pair_product
from glowmcu.ops._avx2 import DENSE_AVX2
from glowmcu.ops._conv_dsp import DSP, LONG_CODE
from glowmcu.ops._conv_mve import DENSE_MVE
from glowmcu.ops._dense_dsp import DENSE_DSP
from glowmcu.ops._halfword import DENSE_HALFWORD
from glowmcu.ops._linear import (
    clamp_range,
    fold_linear,
    for_type,
    integer_linear,
    narrowed,
    of_one_type,
    pack_by_four,
)
from glowmcu.ops._window import Window
from glowmcu.ops.base import Example, Op, bias_i32, f32, f64, i8, i16, weights_i8
from glowmcu.ops.contract import emit_dense
from glowmcu.ops.conv2d import ConvS8
from glowmcu.targets.kernel import Kernel, Packed

MAX_INNER_S4 = 1 << 20
"""Most products of an int8 and a number from 0 to 15 whose sum surely fits 32 bits."""


class Dense(Op):
    """x [..., K], w [N, K], optional b [N] -> [..., N]; the result is clamped to `clamp`."""

    floats = (dtypes.F32, dtypes.F64)

    clamp: tuple[float, float] | None = None

    def infer(self, x: TensorType, w: TensorType, b: TensorType | None = None) -> TensorType:
        if x.shape[-1] != w.shape[1]:
            raise TypeError(f"x has {x.shape[-1]} features, the weights {w.shape[1]}")
        return x.with_shape((*x.shape[:-1], w.shape[0])).with_quant(None)

    def reference(self, x: Array, w: Array, b: Array | None = None) -> Array:
        y: Array = x @ w.T
        y = y if b is None else y + b
        return y if self.clamp is None else np.clip(y, *self.clamp).astype(x.dtype)

    def integer(self, inputs: Any, outputs: Any) -> bool:
        return integer_linear(inputs, outputs)

    def lower(self, b: Builder, x: Buffer, w: Buffer, bias: Buffer | None = None) -> Buffer:
        y = b.result()
        if x.type.dtype is dtypes.F64:
            emit_dense(b, x, w, bias, self.clamp)
            return y
        rows, inner = math.prod(x.type.shape[:-1]), x.type.shape[-1]
        cols = w.type.shape[0]
        if x.type.quant is None:
            low, high = self.clamp or (-math.inf, math.inf)
            b.emit(
                DenseF32(
                    y=y, x=x, w=w, bias=bias, rows=rows, inner=inner, cols=cols, low=low, high=high
                )
            )
            return y
        self._lower_stored(b, x, w, bias, {"rows": rows, "inner": inner, "cols": cols})
        return y

    def _lower_stored(
        self, b: Builder, x: Buffer, w: Buffer, bias: Buffer | None, sizes: dict[str, Any]
    ) -> None:
        one = of_one_type(b, x, b.result())
        x, y = one.x, one.y
        folded = fold_linear(b, x.type, w, bias, y.type, 0, one.reach)
        low, high = clamp_range(self.clamp, b.result().type)
        constants = {**folded.attributes(), "low": low, "high": high}
        if folded.is_wide:
            window = Window.over((sizes["rows"], 1), (1, 1), (1, 1), (1, 1), (0, 0, 0, 0))
            geometry: dict[str, Any] = {**window.attributes(1), "padded_width": 0, "fill": 0}
            geometry |= {"channels": sizes["inner"], "out_channels": sizes["cols"], "groups": 1}
            b.emit(
                ConvS8(
                    y=y,
                    x=x,
                    **geometry,
                    **constants,
                )
            )
        else:
            b.emit(DenseS8(y=y, x=x, **sizes, **constants))
        narrowed(b, b.result(), y)

    examples = (
        Example((f32(1, 10), f32(6, 10), f32(6)), constants=(1, 2)),
        Example((f32(3, 7), f32(5, 7), None), constants=(1,), attributes={"clamp": (0.0, 6.0)}),
        Example((f64(2, 10), f64(6, 10), f64(6)), {}, (1, 2), tolerance=1e-15),
        Example((f64(3, 7), f64(5, 7), None), {"clamp": (0.0, 6.0)}, (1,), tolerance=1e-15),
        Example(
            (i8(2, 9), weights_i8(7, 9), bias_i32(i8(2, 9), weights_i8(7, 9))),
            constants=(1, 2),
            output=i8(2, 7, scale=0.04, zero_point=5),
            tolerance=1,
        ),
        *(
            Example(
                (x, weights_i8(7, 9, scale=scale), bias_i32(x, weights_i8(7, 9, scale=scale))),
                {"clamp": clamp},
                (1, 2),
                y,
                tolerance=1,
            )
            for x, y, scale, clamp in (
                (i16(2, 9), i16(2, 7), 0.01, None),
                (i16(3, 9, zero_point=7), i16(3, 7, scale=3e-4), 0.01, (-1.5, 1.0)),
                (i16(3, 9), i8(3, 7), 0.01, (0.0, 6.0)),
                (i8(3, 9), i16(3, 7, zero_point=-4), 0.01, None),
            )
        ),
        Example(
            (i16(2, 1200), weights_i8(5, 1200), None),
            constants=(1,),
            output=i16(2, 5, scale=4e-3),
            tolerance=1,
        ),
    )


class DenseF32(Instruction):
    """y[r][n] = clamp(bias[n] + sum_k x[r][k] * w[n][k])."""

    y: Out
    x: In
    w: In
    bias: In | None = None
    rows: int
    inner: int
    cols: int
    low: float
    high: float

    kernels = (Kernel("gm_dense_f32", core=True),)

    @property
    def macs(self) -> int:
        return self.rows * self.inner * self.cols

    def reference(self, x: Array, w: Array, bias: Array | None) -> Array:
        y: Array = x.reshape(self.rows, self.inner) @ w.T
        y = y if bias is None else y + bias
        return np.clip(y, np.float32(self.low), np.float32(self.high))


def _pair_scratch(i: DenseS8) -> int:
    """Return the bytes of two rows that lie interleaved, of one that is not of whole words."""
    steps = _pair_product.steps(i.inner)
    return 8 * steps if i.rows > 1 else 4 * steps if i.inner % 4 else 0


def _pack_dense_s8(i: DenseS8) -> tuple[Packed, ...]:
    assert i.w.data is not None
    assert i.bias.data is not None
    assert i.multiplier.data is not None
    return (
        Packed("w", pack_by_four(i.w.data), f"{i.w.name} [{i.cols}][{i.inner}] by four rows"),
        Packed("bias", i.bias.data, "bias, input zero point folded in"),
        Packed("multiplier", i.multiplier.data, "requantization"),
    )


def _accepts_s4(i: DenseS8) -> str:
    if i.w.data is None or i.inner > MAX_INNER_S4:
        return f"is for constant weights and up to {MAX_INNER_S4} inputs"
    low, high = int(i.w.data.min(initial=0)), int(i.w.data.max(initial=0))
    return "" if low >= -8 and high <= 7 else "is for weights from -8 to 7"


def _pack_dense_s4(i: DenseS8) -> tuple[Packed, ...]:
    assert i.w.data is not None
    fields = pack(pack_by_four(i.w.data) + np.int8(8), 4)
    comment = f"{i.w.name} [{i.cols}][{i.inner}] of 4 bits, plus 8, by four rows"
    return (Packed("w", fields, comment), *_pack_dense_s8(i)[1:])


DENSE_S4 = Kernel(
    "gm_dense_s4",
    accepts=_accepts_s4,
    pack=_pack_dense_s4,
    core=True,
    modes=frozenset({"size"}),
    flash=lambda i: 2 * i.inner * math.ceil(i.cols / 4) + 8 * i.cols + 250,
)


class DenseS8(Instruction):
    """y = requantize(bias + sum_k x * w), int8 or int16, the zero point of x folded into bias."""

    y: Out
    x: In
    w: In
    bias: In
    multiplier: In
    rows: int
    inner: int
    cols: int
    shift: int
    zero_point: int
    low: int
    high: int

    kernels = (
        *for_type(
            dtypes.I8,
            DENSE_S4,
            *DENSE_MVE,
            *DENSE_HALFWORD,
            *DENSE_DSP,
            *DENSE_AVX2,
            Kernel(
                "gm_dense_s8",
                pack=_pack_dense_s8,
                core=True,
                cycles=lambda i: i.rows * i.cols * (4.5 * i.inner + 20),
            ),
        ),
        *for_type(
            dtypes.I16,
            Kernel(
                "gm_dense_s16_dsp",
                requires=DSP,
                folder="arm_dsp",
                accepts=_pair_product.sums_fit,
                scratch=_pair_scratch,
                pack=lambda i: _pair_product.pack(i, 1, i.cols),
                core=True,
                modes=LONG_CODE,
            ),
            Kernel("gm_dense_s16", pack=_pack_dense_s8, core=True),
        ),
    )

    @property
    def macs(self) -> int:
        return self.rows * self.inner * self.cols

    def reference(self, x: Array, w: Array, bias: Array, multiplier: Array) -> Array:
        product = x.reshape(self.rows, self.inner).astype(np.float64) @ w.T.astype(np.float64)
        acc = product.astype(np.int64) + bias
        return requantize(acc, multiplier, self.shift, self.zero_point, self.low, self.high)
