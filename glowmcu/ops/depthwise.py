"""Depthwise convolution instructions: every channel has a window of its own."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.types import Array
from glowmcu.instr.instruction import In, Out
from glowmcu.ops._avx2 import DEPTHWISE_AVX2, DEPTHWISE_F32_AVX2
from glowmcu.ops._conv_dsp import DSP, LONG_CODE
from glowmcu.ops._conv_fpu import DEPTHWISE_FPU
from glowmcu.ops._conv_mve import DEPTHWISE_MVE
from glowmcu.ops._depthwise_dsp import DEPTHWISE_DSP
from glowmcu.ops._linear import data_of, for_type, requantize_channels
from glowmcu.ops._overlap import ascending_rows, within_rows
from glowmcu.ops._window import WindowInstruction, convolve, extent, taps
from glowmcu.targets.kernel import Kernel, Overlap, Packed, RowKernel


def _scratch(i: DepthwiseF32 | DepthwiseS8) -> int:
    pixels = extent(i.kernel_height, i.dilation_height) * i.padded_width
    return math.ceil(pixels * i.channels * i.x.type.dtype.nbytes / 4) * 4


def _in_place(i: DepthwiseF32 | DepthwiseS8) -> tuple[tuple[str, str], ...]:
    return (("y", "x"),) if i.ring_in_place(i.channels, i.channels) else ()


def _overlap(i: DepthwiseF32 | DepthwiseS8) -> tuple[Overlap, ...]:
    """Let y lie over x where what is there has been read before it is written."""
    pixel = i.channels * i.x.type.dtype.nbytes
    return (Overlap("y", "x", *ascending_rows(i, pixel, pixel, moved=i.padded_width > 0)),)


def _row_overlap(i: DepthwiseF32 | DepthwiseS8) -> tuple[Overlap, ...]:
    """Let a row of y lie over one of x: up to four pixels are made at once."""
    pixel = i.channels * i.x.type.dtype.nbytes
    return (Overlap("y", "x", *within_rows(i, 4, pixel, pixel)),)


def _row_cycles(i: DepthwiseF32 | DepthwiseS8) -> float:
    """Pixels at the border take longer than others, and others longer alone than together."""
    rows, columns = i.whole_windows()
    blocks = columns // 4 * 4 + (3 if columns % 4 == 3 else 0)
    row = 4.5 * blocks + 7.0 * (columns - blocks) + 11.0 * (i.out_width - columns)
    pixels = rows * row + (i.out_height - rows) * i.out_width * 11.0
    return pixels * i.macs / (i.out_height * i.out_width)


def _cycles(i: DepthwiseS8) -> float:
    """Four pixels of a row at once take less than one after the other."""
    blocks = i.out_width // 4 * 4
    row = 4.5 * blocks + 7.0 * (i.out_width - blocks)
    return i.batch * i.out_height * row * i.macs / (i.out_height * i.out_width)


def _sums(i: DepthwiseF32 | DepthwiseS8) -> int:
    return 4 * i.out_width * i.channels


def _pack_weights(i: DepthwiseF32 | DepthwiseS8) -> Packed:
    """Return the weights as [kernel_height][kernel_width][channels]."""
    data = data_of(i.w)
    assert data is not None
    w = np.ascontiguousarray(data[..., 0].transpose(1, 2, 0))
    return Packed("w", w.reshape(-1), f"{i.w.name} {list(w.shape)}")


def _pack_f32(i: DepthwiseF32) -> tuple[Packed, ...]:
    bias = np.zeros(i.channels, np.float32) if i.bias is None else data_of(i.bias)
    assert bias is not None
    return _pack_weights(i), Packed("bias", bias, "bias")


def _pack_s8(i: DepthwiseS8) -> tuple[Packed, ...]:
    assert i.bias.data is not None
    assert i.multiplier.data is not None
    return (
        _pack_weights(i),
        Packed("bias", i.bias.data, "bias, input zero point folded in"),
        Packed("multiplier", i.multiplier.data, "requantization"),
    )


def _pack_wide(i: DepthwiseS8) -> tuple[Packed, ...]:
    weights, *rest = _pack_s8(i)
    return (Packed("w", weights.data.astype(np.int16), weights.comment), *rest)


_RING = Kernel(
    "gm_depthwise_s8",
    scratch=_scratch,
    pack=_pack_s8,
    core=True,
    in_place=_in_place,
    overlap=_overlap,
    cycles=_cycles,
)


class DepthwiseF32(WindowInstruction):
    """y[c] = clamp(bias[c] + sum x[c] * w[c]) over windows of NHWC x; w is [C, KH, KW, 1]."""

    y: Out
    x: In
    w: In
    bias: In | None = None
    padded_width: int
    channels: int
    low: float
    high: float

    kernels = (
        *DEPTHWISE_FPU,
        *DEPTHWISE_F32_AVX2,
        Kernel(
            "gm_depthwise_f32",
            scratch=_scratch,
            pack=_pack_f32,
            core=True,
            in_place=_in_place,
            overlap=_overlap,
            row=RowKernel("gm_depthwise_f32_rows", overlap=_row_overlap, cycles=_row_cycles),
            scan=RowKernel("gm_depthwise_f32_scan", scratch=_sums),
        ),
    )

    @property
    def macs(self) -> int:
        return self.pixels * self.channels * self.kernel_height * self.kernel_width

    def reference(self, x: Array, w: Array, bias: Array | None) -> Array:
        return self.complete(convolve(x, w, self.window, self.channels), w, bias)

    def partial(self, sums: Array, x: Array, row: int, *constants: Any) -> Array:
        return _with_row(self, sums, x, row, constants[0], 0)

    def complete(self, sums: Array, *constants: Any) -> Array:
        _, bias = constants
        y = sums if bias is None else sums + bias
        return np.clip(y, np.float32(self.low), np.float32(self.high))


class DepthwiseS8(WindowInstruction):
    """y[c] = requantize(bias[c] + sum x[c] * w[c]); w is [C, KH, KW, 1], padding is `fill`.

    x and y are int8, or both int16, of which the bytes of `fill` are alike.
    """

    y: Out
    x: In
    w: In
    bias: In
    multiplier: In
    padded_width: int
    channels: int
    fill: int
    shift: int
    zero_point: int
    low: int
    high: int

    kernels = (
        *for_type(
            dtypes.I8,
            *DEPTHWISE_MVE,
            *DEPTHWISE_DSP,
            *DEPTHWISE_AVX2,
            replace(
                _RING,
                row=RowKernel("gm_depthwise_s8_rows", overlap=_row_overlap, cycles=_row_cycles),
                scan=RowKernel("gm_depthwise_s8_scan", scratch=_sums),
            ),
        ),
        *for_type(
            dtypes.I16,
            replace(
                _RING,
                symbol="gm_depthwise_s16_dsp",
                requires=DSP,
                folder="arm_dsp",
                accepts=lambda i: "the number of channels is odd" if i.channels % 2 else "",
                pack=_pack_wide,
                modes=LONG_CODE,
                cycles=lambda i: 2.4 * i.macs,
            ),
            replace(_RING, symbol="gm_depthwise_s16"),
        ),
    )

    @property
    def macs(self) -> int:
        return self.pixels * self.channels * self.kernel_height * self.kernel_width

    def reference(self, x: Array, w: Array, bias: Array, multiplier: Array) -> Array:
        acc = convolve(x.astype(np.float64), w, self.window, self.channels, self.fill)
        return requantize_channels(self, acc, bias, multiplier)

    def partial(self, sums: Array, x: Array, row: int, *constants: Any) -> Array:
        w, bias, _ = constants
        start = sums if row else sums + bias
        return _with_row(self, start, x.astype(np.int32), row, w.astype(np.int32), self.fill)

    def complete(self, sums: Array, *constants: Any) -> Array:
        _, bias, multiplier = constants
        return requantize_channels(self, sums.astype(np.float64), 0 * bias, multiplier)


def _with_row(
    i: DepthwiseF32 | DepthwiseS8, sums: Array, x: Array, row: int, w: Array, fill: int
) -> Array:
    """Return sums and what row `row` of x adds to them, tap after tap as the kernels do it."""
    one = replace(i, height=1, kernel_height=1, pad_top=0)
    for _, j, values in taps(x, one.window, fill):
        sums = sums + values * w[:, row, j, 0]
    return sums
