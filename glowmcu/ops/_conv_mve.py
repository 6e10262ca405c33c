"""Kernels for MVE: convolution, dense, depthwise convolution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from glowmcu.core.types import Array
from glowmcu.ops._mve import LANES, MVE, product_stream, tap_stream
from glowmcu.ops._twins import (
    block_after_block,
    block_after_block_of_row,
    constants_of,
    few_taps,
    is_pointwise,
    known,
    one_group,
    one_pixel,
    pixel_after_pixel,
    pixel_after_pixel_of_row,
    pixel_in_place,
    turned,
)
from glowmcu.targets.kernel import Kernel, Packed, RowKernel

if TYPE_CHECKING:
    from glowmcu.ops.conv2d import ConvS8
    from glowmcu.ops.dense import DenseS8
    from glowmcu.ops.depthwise import DepthwiseS8

MAX_TAPS = 64
"""GM_DEPTHWISE_MVE_TAPS."""
_CODE = 600


def _product_cycles(pixels: int, inner: int, channels: int) -> float:
    """Return the instructions of pixels that are multiplied two by two."""
    blocks = -(-inner // LANES)
    return (pixels + 1) // 2 * (-(-channels // 4) * (16 * blocks + 30) + 2 * (5 * blocks + 20))


# Convolution: the windows of two pixels are copied to scratch.


def _inner(i: ConvS8) -> int:
    return i.kernel_height * i.kernel_width * i.channels


def _pack_conv(i: ConvS8) -> tuple[Packed, ...]:
    weights, bias, multiplier = constants_of(i)
    words = product_stream(weights.reshape(i.out_channels, -1), bias, multiplier)
    return (Packed("w", words, f"{i.w.name} {list(i.w.type.shape)}, vectors of four channels"),)


def _conv_scratch(i: ConvS8) -> int:
    """Return the bytes of two windows; pixels that get wider are read where they lie."""
    widens = is_pointwise(i) and i.out_channels > i.channels
    return 0 if widens else 2 * (-(-_inner(i) // 4) * 4)


def _conv_cycles(i: ConvS8) -> float:
    return _product_cycles(i.pixels, _inner(i), i.out_channels)


CONV_MVE = (
    Kernel(
        "gm_conv2d_s8_mve",
        requires=MVE,
        folder="arm_mve",
        accepts=one_group,
        scratch=_conv_scratch,
        pack=_pack_conv,
        core=True,
        in_place=pixel_in_place,
        overlap=lambda i: block_after_block(i, 2, moved=_conv_scratch(i) > 0),
        turned=turned,
        cycles=_conv_cycles,
        flash=lambda i: _pack_conv(i)[0].data.nbytes + _CODE,
        row=RowKernel(
            "gm_conv2d_s8_mve_rows",
            scratch=_conv_scratch,
            overlap=lambda i: block_after_block_of_row(i, 2),
            cycles=_conv_cycles,
        ),
    ),
)
"""Kernels of ConvS8."""


def _pack_dense(i: DenseS8) -> tuple[Packed, ...]:
    words = product_stream(*constants_of(i))
    return (Packed("w", words, f"{i.w.name} [{i.cols}][{i.inner}], vectors of four rows"),)


DENSE_MVE = (
    Kernel(
        "gm_dense_s8_mve",
        requires=MVE,
        folder="arm_mve",
        accepts=known,
        pack=_pack_dense,
        core=True,
        cycles=lambda i: i.rows * -(-i.cols // 4) * (10 * -(-i.inner // LANES) + 25),
        flash=lambda i: _pack_dense(i)[0].data.nbytes + _CODE,
    ),
)
"""Kernels of DenseS8."""


# Depthwise: two products of bytes are added in 16 bits.


def _accepts_depthwise(i: DepthwiseS8) -> str:
    reason = few_taps(i, MAX_TAPS)
    if reason:
        return reason
    weights = np.abs(_taps(i).astype(np.int64))
    even = weights[: len(weights) // 2 * 2]
    pairs = even[0::2] + even[1::2]
    return "two weights of -128 in neighbouring taps" if np.any(pairs > 255) else ""


def _taps(i: DepthwiseS8) -> Array:
    return np.ascontiguousarray(constants_of(i)[0].reshape(i.channels, -1).T)


def _pack_depthwise(i: DepthwiseS8) -> tuple[Packed, ...]:
    _, bias, multiplier = constants_of(i)
    words = tap_stream(_taps(i), bias, multiplier)
    return (Packed("w", words, f"{i.w.name} {list(i.w.type.shape)}, taps of eight channels"),)


def _depthwise_cycles(i: DepthwiseS8) -> float:
    taps = i.kernel_height * i.kernel_width
    return i.pixels * (-(-i.channels // 8) * (6.3 * taps + 14) + 5 * taps + 40)


DEPTHWISE_MVE = (
    Kernel(
        "gm_depthwise_s8_mve",
        requires=MVE,
        folder="arm_mve",
        accepts=_accepts_depthwise,
        scratch=one_pixel,
        pack=_pack_depthwise,
        core=True,
        overlap=pixel_after_pixel,
        cycles=_depthwise_cycles,
        flash=lambda i: _pack_depthwise(i)[0].data.nbytes + _CODE,
        row=RowKernel(
            "gm_depthwise_s8_mve_rows",
            scratch=one_pixel,
            overlap=pixel_after_pixel_of_row,
            cycles=_depthwise_cycles,
        ),
    ),
)
"""Kernels of DepthwiseS8."""
