"""Transposed convolution instructions: each output gathers the inputs that reach it."""

from __future__ import annotations

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.types import Array
from glowmcu.instr.instruction import In, Out, RowWindow
from glowmcu.ops._linear import data_of, for_type, pack_by_four, pad_to_four, requantize_channels
from glowmcu.ops._window import MAX_ROWS, Pair, WindowInstruction, extent
from glowmcu.targets.kernel import Kernel, Packed


def spread(
    x: Array, w: Array, groups: int, strides: Pair, dilations: Pair, start: Pair, output: Pair
) -> Array:
    """Return the transposed convolution of NHWC x with OHWI w, cut to `output` from `start` on."""
    n, h, wide, _ = x.shape
    count, inner = w.shape[0] // groups, w.shape[3]
    full = [
        max((size - 1) * s + extent(k, d), first + out)
        for size, s, k, d, first, out in zip(
            (h, wide), strides, w.shape[1:3], dilations, start, output, strict=True
        )
    ]
    y = np.zeros((n, *full, w.shape[0]), x.dtype)
    for i in range(w.shape[1]):
        for j in range(w.shape[2]):
            r, c = i * dilations[0], j * dilations[1]
            rows = slice(r, r + (h - 1) * strides[0] + 1, strides[0])
            cols = slice(c, c + (wide - 1) * strides[1] + 1, strides[1])
            for g in range(groups):
                outs = slice(g * count, (g + 1) * count)
                part = x[..., g * inner : (g + 1) * inner]
                y[:, rows, cols, outs] += part @ w[outs, i, j].T
    return y[:, start[0] : start[0] + output[0], start[1] : start[1] + output[1]]


def _scratch(i: TransposedInstruction) -> int:
    return 8 * i.kernel_height if i.kernel_height > MAX_ROWS else 0


class TransposedInstruction(WindowInstruction):
    """Base of the transposed convolutions: the window slides over y, not over x."""

    groups: int
    channels: int
    out_channels: int

    @property
    def macs(self) -> int:
        pixels = self.batch * self.height * self.width
        taps = self.kernel_height * self.kernel_width
        return pixels * taps * self.groups * self.channels * self.out_channels

    def windows(self) -> dict[str, RowWindow]:
        return {}

    def sums(self, x: Array, w: Array) -> Array:
        """Return the sums of products, in the type of x."""
        strides = (self.stride_height, self.stride_width)
        dilations = (self.dilation_height, self.dilation_width)
        start, output = (self.pad_top, self.pad_left), (self.out_height, self.out_width)
        return spread(x, w, self.groups, strides, dilations, start, output)


def _pack_s8(i: ConvTransposeS8) -> tuple[Packed, ...]:
    w, bias, multiplier = data_of(i.w), data_of(i.bias), data_of(i.multiplier)
    assert w is not None
    assert bias is not None
    assert multiplier is not None
    rows = w.reshape(i.groups, i.out_channels, -1)
    packed = np.concatenate([pack_by_four(group) for group in rows])
    return (
        Packed("w", packed, f"{i.w.name} {list(w.shape)} by four output channels"),
        Packed("bias", pad_to_four(bias, i.groups), "bias"),
        Packed("multiplier", pad_to_four(multiplier, i.groups), "requantization"),
    )


class ConvTransposeF32(TransposedInstruction):
    """y = clamp(bias + the products of x and w spread by the stride); w is OHWI."""

    y: Out
    x: In
    w: In
    bias: In | None = None
    low: float
    high: float

    kernels = (Kernel("gm_conv_transpose2d_f32", scratch=_scratch, core=True),)

    def reference(self, x: Array, w: Array, bias: Array | None) -> Array:
        y = self.sums(x, w)
        y = y if bias is None else y + bias
        return np.clip(y, np.float32(self.low), np.float32(self.high))


class ConvTransposeS8(TransposedInstruction):
    """y = requantize(bias + the products of x - fill and w spread by the stride); w is OHWI."""

    y: Out
    x: In
    w: In
    bias: In
    multiplier: In
    fill: int
    shift: int
    zero_point: int
    low: int
    high: int

    kernels = (
        *for_type(
            dtypes.I8, Kernel("gm_conv_transpose2d_s8", scratch=_scratch, pack=_pack_s8, core=True)
        ),
        *for_type(
            dtypes.I16,
            Kernel("gm_conv_transpose2d_s16", scratch=_scratch, pack=_pack_s8, core=True),
        ),
    )

    def reference(self, x: Array, w: Array, bias: Array, multiplier: Array) -> Array:
        acc = self.sums(x.astype(np.float64) - self.fill, w)
        return requantize_channels(self, acc, bias, multiplier)
