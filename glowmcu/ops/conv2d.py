"""Convolution instructions: the products of a window with every output channel."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.dtypes import DType
from glowmcu.core.types import Array
from glowmcu.instr.instruction import In, Out
from glowmcu.ops import _pair_product
from glowmcu.ops._avx2 import CONV_AVX2, CONV_F32_AVX2
from glowmcu.ops._conv_dsp import CONV_DSP, DSP, LONG_CODE
from glowmcu.ops._conv_fpu import conv_fpu
from glowmcu.ops._conv_mve import CONV_MVE
from glowmcu.ops._halfword import CONV_HALFWORD
from glowmcu.ops._linear import data_of, for_type, pack_by_four, pad_to_four, requantize_channels
from glowmcu.ops._overlap import (
    ascending_blocks,
    ascending_rows,
    descending_blocks,
    within_rows,
)
from glowmcu.ops._twins import is_pointwise, known_window, turned
from glowmcu.ops._window import WindowInstruction, convolve, extent
from glowmcu.ops._winograd import WINOGRAD_DSP
from glowmcu.targets.kernel import Kernel, Overlap, Packed, RowKernel


def fills_by_bytes(dtype: DType, fill: int) -> bool:
    """Tell whether all bytes of a row of padding are alike, as kernels want that keep such rows."""
    return dtype is not dtypes.I16 or fill & 0xFF == fill >> 8 & 0xFF


def _accepts_s16(i: ConvS8) -> str:
    if i.bias.type.dtype is dtypes.I64:
        return "sums could pass 2^31"
    if i.padded_width and not fills_by_bytes(dtypes.I16, i.fill):
        return f"padding of {i.fill} is not the same in both bytes"
    return known_window(i)


def _pair_scratch(i: ConvS8) -> int:
    """Return the bytes of the windows of two pixels, and of the ring of rows."""
    pair = 8 * _pair_product.steps(i.kernel_height * i.kernel_width * i.channels)
    return pair + (0 if is_pointwise(i) else _scratch(i))


def _pair_cycles(i: ConvS8) -> float:
    """Two pixels are gathered once, then multiplied with four channels at a time."""
    steps = _pair_product.steps(i.kernel_height * i.kernel_width * i.channels)
    fours = -(-i.out_channels // 4)
    return (i.pixels + 1) // 2 * i.groups * (fours * (80 + 19.2 * steps) + 6 * steps + 100)


def _scratch(i: ConvF32 | ConvS8) -> int:
    """Return the bytes of two pixels of a pointwise layer, of the ring of rows of any other."""
    if is_pointwise(i):
        pixels = 2 if i.out_channels <= i.channels else 0
    else:
        pixels = extent(i.kernel_height, i.dilation_height) * i.padded_width
    return math.ceil(pixels * i.groups * i.channels * i.x.type.dtype.nbytes / 4) * 4


def _in_place(i: ConvF32 | ConvS8) -> tuple[tuple[str, str], ...]:
    """Allow y on x: a pointwise layer copies pixels before it writes, one with padding its rows."""
    outer, inner = i.groups * i.out_channels, i.groups * i.channels
    if is_pointwise(i):
        fits = outer == inner or (outer < inner and not i.descending)
    else:
        fits = i.ring_in_place(outer, inner)
    return (("y", "x"),) if fits else ()


def _overlap(i: ConvF32 | ConvS8) -> tuple[Overlap, ...]:
    """Let y lie over x where what is there has been read before it is written."""
    size = i.x.type.dtype.nbytes
    outer, inner = i.groups * i.out_channels * size, i.groups * i.channels * size
    if is_pointwise(i):
        pixels = i.batch * i.height * i.width
        moved = i.out_channels <= i.channels
        if i.descending:
            return (Overlap("y", "x", *descending_blocks(pixels, 2, outer, inner, moved=moved)),)
        return (Overlap("y", "x", *ascending_blocks(pixels, 2, outer, inner, moved=moved)),)
    return (Overlap("y", "x", *ascending_rows(i, outer, inner, moved=i.padded_width > 0)),)


def _row_overlap(i: ConvF32 | ConvS8) -> tuple[Overlap, ...]:
    """Let a row of y lie over one of x: two pixels are made at once."""
    size = i.x.type.dtype.nbytes * i.groups
    return (Overlap("y", "x", *within_rows(i, 2, size * i.out_channels, size * i.channels)),)


def _row_cycles(i: ConvF32 | ConvS8) -> float:
    """Pixels at the border take longer than others, and others longer alone than in pairs."""
    rows, columns = i.whole_windows()
    pairs = columns // 2 * 2
    row = 3.1 * pairs + 4.5 * (columns - pairs) + 5.5 * (i.out_width - columns)
    pixels = rows * row + (i.out_height - rows) * i.out_width * 5.5
    return pixels * i.macs / (i.out_height * i.out_width)


def _pack_weights(i: ConvF32 | ConvS8) -> Packed:
    data = data_of(i.w)
    assert data is not None
    w = data.reshape(i.groups, i.out_channels, -1)
    return Packed(
        "w",
        np.concatenate([pack_by_four(group) for group in w]),
        f"{i.w.name} {list(i.w.type.shape)} by four output channels",
    )


def _pack_f32(i: ConvF32) -> tuple[Packed, ...]:
    outputs = i.groups * i.out_channels
    bias = np.zeros(outputs, np.float32) if i.bias is None else data_of(i.bias)
    assert bias is not None
    return _pack_weights(i), Packed("bias", pad_to_four(bias, i.groups), "bias")


def _pack_s8(i: ConvS8) -> tuple[Packed, ...]:
    assert i.bias.data is not None
    assert i.multiplier.data is not None
    return (
        _pack_weights(i),
        Packed("bias", pad_to_four(i.bias.data, i.groups), "bias, input zero point folded in"),
        Packed("multiplier", pad_to_four(i.multiplier.data, i.groups), "requantization"),
    )


class ConvF32(WindowInstruction):
    """y = clamp(bias + sum x * w) over windows of NHWC x; w is OHWI, padding is zero."""

    y: Out
    x: In
    w: In
    bias: In | None = None
    padded_width: int
    groups: int
    channels: int
    out_channels: int
    low: float
    high: float
    descending: int = 0

    kernels = (
        conv_fpu(_pack_f32),
        *CONV_F32_AVX2,
        Kernel(
            "gm_conv2d_f32",
            accepts=known_window,
            scratch=_scratch,
            pack=_pack_f32,
            core=True,
            in_place=_in_place,
            overlap=_overlap,
            turned=turned,
            row=RowKernel("gm_conv2d_f32_rows", overlap=_row_overlap, cycles=_row_cycles),
        ),
        Kernel("gm_conv2d_f32_direct", core=True),
    )

    @property
    def macs(self) -> int:
        taps = self.kernel_height * self.kernel_width
        return self.pixels * self.groups * self.out_channels * taps * self.channels

    def reference(self, x: Array, w: Array, bias: Array | None) -> Array:
        y = convolve(x, w, self.window, self.groups)
        y = y if bias is None else y + bias
        return np.clip(y, np.float32(self.low), np.float32(self.high))


def _pack_direct(i: ConvS8) -> tuple[Packed, ...]:
    w, bias, multiplier = data_of(i.w), data_of(i.bias), data_of(i.multiplier)
    assert w is not None and bias is not None and multiplier is not None
    return (
        Packed("w", w, f"{i.w.name} {list(i.w.type.shape)}"),
        Packed("bias", bias.astype(np.int64), "bias, input zero point folded in"),
        Packed("multiplier", multiplier, "requantization"),
    )


_RING = Kernel(
    "gm_conv2d_s8",
    accepts=known_window,
    scratch=_scratch,
    pack=_pack_s8,
    core=True,
    in_place=_in_place,
    overlap=_overlap,
    turned=turned,
)


class ConvS8(WindowInstruction):
    """y = requantize(bias + sum x * w) over windows of NHWC x; w is OHWI, padding is `fill`.

    x and y are int8, or both int16; of these, sums have 64 bits where bias has.
    """

    y: Out
    x: In
    w: In
    bias: In
    multiplier: In
    padded_width: int
    groups: int
    channels: int
    out_channels: int
    fill: int
    shift: int
    zero_point: int
    low: int
    high: int
    descending: int = 0

    kernels = (
        *for_type(
            dtypes.I8,
            *CONV_MVE,
            *CONV_HALFWORD,
            *CONV_DSP,
            *WINOGRAD_DSP,
            *CONV_AVX2,
            replace(
                _RING,
                row=RowKernel("gm_conv2d_s8_rows", overlap=_row_overlap, cycles=_row_cycles),
            ),
            Kernel("gm_conv2d_s8_direct", core=True, cycles=lambda i: 12.0 * i.macs),
        ),
        *for_type(
            dtypes.I16,
            replace(
                _RING,
                symbol="gm_conv2d_s16_dsp",
                requires=DSP,
                folder="arm_dsp",
                accepts=_accepts_s16,
                scratch=_pair_scratch,
                pack=lambda i: _pair_product.pack(i, i.groups, i.out_channels),
                modes=LONG_CODE,
                cycles=_pair_cycles,
            ),
            replace(
                _RING,
                symbol="gm_conv2d_s16",
                accepts=_accepts_s16,
                cycles=lambda i: 3.2 * i.macs,
            ),
            Kernel(
                "gm_conv2d_s16_direct", pack=_pack_direct, core=True, cycles=lambda i: 14.0 * i.macs
            ),
        ),
    )

    @property
    def macs(self) -> int:
        taps = self.kernel_height * self.kernel_width
        return self.pixels * self.groups * self.out_channels * taps * self.channels

    def reference(self, x: Array, w: Array, bias: Array, multiplier: Array) -> Array:
        taps = (self.kernel_height, self.kernel_width, self.channels)
        rows = x.reshape(self.batch, self.height, self.width, -1).astype(np.float64)
        acc = convolve(rows, w.reshape(-1, *taps), self.window, self.groups, self.fill)
        return requantize_channels(self, acc, bias, multiplier)
