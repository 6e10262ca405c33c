"""Kernels for AVX2, so that a network is quickly run over many samples on the host."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from glowmcu.core.types import Array
from glowmcu.ops._linear import data_of
from glowmcu.ops._twins import (
    block_after_block,
    block_after_block_of_row,
    constants_of,
    few_taps,
    known,
    known_window,
    one_group,
    one_pixel,
    pixel_after_pixel,
    pixel_after_pixel_of_row,
    pixel_in_place,
)
from glowmcu.targets.kernel import Kernel, Packed, RowKernel

if TYPE_CHECKING:
    from glowmcu.ops.conv2d import ConvF32, ConvS8
    from glowmcu.ops.dense import DenseS8
    from glowmcu.ops.depthwise import DepthwiseF32, DepthwiseS8

AVX2 = frozenset({"x86-avx2"})
LANES = 8
"""32-bit sums of a vector."""
MAX_TAPS = 64
"""GM_DEPTHWISE_AVX2_TAPS."""
_FLOAT = 4
"""Bytes of a float."""
_TAKEN = 16
"""Channels of a depthwise layer that are taken together."""
_IN_ORDER = [0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15]
"""Which channel of sixteen a sum belongs to."""


def _pack_product(weights: Array, bias: Array, multiplier: Array) -> tuple[Packed, ...]:
    """Return [N, K] weights as [ceil(N / 8)][ceil(K / 2)][8][2] int16, and what goes with them."""
    channels, inner = weights.shape
    blocks, pairs = -(-channels // LANES), -(-inner // 2)
    padded = np.zeros((blocks * LANES, 2 * pairs), np.int16)
    padded[:channels, :inner] = weights
    words = padded.reshape(blocks, LANES, pairs, 2).transpose(0, 2, 1, 3)

    def eights(values: Array) -> Array:
        return np.pad(values, (0, -channels % LANES))

    return (
        Packed("w", np.ascontiguousarray(words).reshape(-1), "weights, pairs of eight channels"),
        Packed("bias", eights(bias), "bias, input zero point folded in"),
        Packed("multiplier", eights(multiplier), "requantization"),
    )


# Convolution: the windows of four pixels are copied to scratch.


def _pack_conv(i: ConvS8) -> tuple[Packed, ...]:
    weights, bias, multiplier = constants_of(i)
    return _pack_product(weights.reshape(i.out_channels, -1), bias, multiplier)


def _conv_scratch(i: ConvS8) -> int:
    return 4 * 4 * -(-(i.kernel_height * i.kernel_width * i.channels) // 2)


CONV_AVX2 = (
    Kernel(
        "gm_conv2d_s8_avx2",
        requires=AVX2,
        folder="x86_avx2",
        accepts=one_group,
        scratch=_conv_scratch,
        pack=_pack_conv,
        core=True,
        in_place=pixel_in_place,
        overlap=lambda i: block_after_block(i, 4, moved=True),
        row=RowKernel(
            "gm_conv2d_s8_avx2_rows",
            scratch=_conv_scratch,
            overlap=lambda i: block_after_block_of_row(i, 4),
        ),
    ),
)
"""Kernels of ConvS8."""


def _pack_dense(i: DenseS8) -> tuple[Packed, ...]:
    return _pack_product(*constants_of(i))


DENSE_AVX2 = (
    Kernel(
        "gm_dense_s8_avx2",
        requires=AVX2,
        folder="x86_avx2",
        accepts=known,
        scratch=lambda i: 4 * -(-i.inner // 2),
        pack=_pack_dense,
        core=True,
    ),
)
"""Kernels of DenseS8."""


# Depthwise: two taps of sixteen channels at a time.


def _pack_depthwise(i: DepthwiseS8) -> tuple[Packed, ...]:
    """Return blocks of sixteen channels: biases, weights of two taps in turn, multipliers."""
    weights, bias, multiplier = constants_of(i)
    taps = weights.reshape(i.channels, -1)
    parts = []
    for start in range(0, i.channels, _TAKEN):
        stop = min(start + _TAKEN, i.channels)
        pairs = np.zeros((_TAKEN, taps.shape[1] + taps.shape[1] % 2), np.int16)
        pairs[: stop - start, : taps.shape[1]] = taps[start:stop]
        words = np.zeros((2, _TAKEN), np.int32)
        words[:, : stop - start] = bias[start:stop], multiplier[start:stop]
        by_pair = pairs[_IN_ORDER].reshape(_TAKEN, -1, 2).transpose(1, 0, 2)
        stored = np.ascontiguousarray(by_pair).reshape(-1).view(np.int32)
        parts += [words[0, _IN_ORDER], stored, words[1, _IN_ORDER]]
    label = f"{i.w.name} {list(i.w.type.shape)}, taps of sixteen channels"
    return (Packed("w", np.concatenate(parts), label),)


DEPTHWISE_AVX2 = (
    Kernel(
        "gm_depthwise_s8_avx2",
        requires=AVX2,
        folder="x86_avx2",
        accepts=lambda i: few_taps(i, MAX_TAPS),
        scratch=one_pixel,
        pack=_pack_depthwise,
        core=True,
        overlap=pixel_after_pixel,
        row=RowKernel(
            "gm_depthwise_s8_avx2_rows", scratch=one_pixel, overlap=pixel_after_pixel_of_row
        ),
    ),
)
"""Kernels of DepthwiseS8."""


# Float: vectors of the compiler, sums in the order of the C kernels.


def _bias_f32(i: ConvF32 | DepthwiseF32, channels: int) -> Packed:
    bias = np.zeros(channels, np.float32) if i.bias is None else data_of(i.bias)
    assert bias is not None
    return Packed("bias", np.pad(bias, (0, -channels % LANES)), "bias")


def _eights(weights: Array) -> Array:
    """Return [N, K] as [ceil(N / 8)][K][8]."""
    padded = np.pad(weights, ((0, -weights.shape[0] % LANES), (0, 0)))
    return np.ascontiguousarray(padded.reshape(-1, LANES, weights.shape[1]).transpose(0, 2, 1))


def _pack_f32(i: ConvF32 | DepthwiseF32) -> tuple[Packed, ...]:
    data = data_of(i.w)
    assert data is not None
    channels = data.shape[0]
    label = f"{i.w.name} {list(data.shape)} by eight output channels"
    words = _eights(data.reshape(channels, -1)).reshape(-1)
    return Packed("w", words, label), _bias_f32(i, channels)


CONV_F32_AVX2 = (
    Kernel(
        "gm_conv2d_f32_avx2",
        requires=AVX2,
        folder="x86_avx2",
        accepts=one_group,
        scratch=lambda i: 4 * _FLOAT * i.kernel_height * i.kernel_width * i.channels,
        pack=_pack_f32,
        core=True,
        in_place=pixel_in_place,
        overlap=lambda i: block_after_block(i, 4, moved=True),
    ),
)
"""Kernels of ConvF32."""

DEPTHWISE_F32_AVX2 = (
    Kernel(
        "gm_depthwise_f32_avx2",
        requires=AVX2,
        folder="x86_avx2",
        accepts=lambda i: (
            "is for a multiple of 8 channels" if i.channels % LANES else known_window(i)
        ),
        pack=_pack_f32,
        core=True,
        overlap=pixel_after_pixel,
    ),
)
"""Kernels of DepthwiseF32."""
