"""Kernels for Armv6-M: words of weights whose halves hold two channels each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from glowmcu.core.types import Array
from glowmcu.ops._twins import (
    block_after_block,
    block_after_block_of_row,
    constants_of,
    known,
    pixel_in_place,
    turned,
)
from glowmcu.ops._window import MAX_ROWS
from glowmcu.targets.kernel import Kernel, Packed, RowKernel

if TYPE_CHECKING:
    from glowmcu.ops.conv2d import ConvS8
    from glowmcu.ops.dense import DenseS8

_BOUND = 1 << 23
_CODE = 700


def _constants(i: Any) -> tuple[Array, Array, Array]:
    """Return weights [channels, values], biases, multipliers."""
    weights, bias, multiplier = constants_of(i)
    return weights.reshape(bias.size, -1), bias, multiplier


def why_not(i: Any) -> str:
    """Return why halves of words would not be exact for a layer, "" where they are.

    The second of each two channels is 256 times its value in a sum of 32 bits.
    """
    if known(i):
        return known(i)
    if i.shift:
        return "a channel has a scale of a half or more"
    weights, bias, _ = _constants(i)
    second = np.abs(weights[1::2].astype(np.int64))
    if np.any(second > 127):
        return "a weight of -128 in an odd channel"
    sums = 128 * second.sum(axis=1) + np.abs(bias[1::2].astype(np.int64))
    return "a sum of an odd channel could reach 2^23" if np.any(sums >= _BOUND) else ""


def _stream(i: Any) -> Array:
    """Return biases, weights, multipliers by four channels; missing ones are zeros."""
    weights, bias, multiplier = _constants(i)
    channels, inner = weights.shape
    groups, steps = -(-channels // 4), -(-inner // 4) * 4
    wide = np.zeros((groups * 4, steps), np.int64)
    wide[:channels, :inner] = weights
    ends = np.zeros((2, groups * 4), np.int64)
    ends[0, :channels] = bias
    ends[1, :channels] = multiplier
    by_four = wide.reshape(groups, 4, steps)
    low, high = ((by_four[:, k] + 256 * by_four[:, k + 1]) & 0xFFFF for k in (0, 2))
    biases = ends[0].reshape(groups, 4)
    biases[:, 1::2] = 256 * biases[:, 1::2] + biases[:, 0::2]
    words = np.concatenate([biases, low | high << 16, ends[1].reshape(groups, 4)], axis=1)
    return (words.reshape(-1) & 0xFFFFFFFF).astype(np.uint32).view(np.int32)


def _pack(i: Any) -> tuple[Packed, ...]:
    return (Packed("w", _stream(i), f"{i.w.name} {list(i.w.type.shape)}, halves of two channels"),)


def _flash(i: Any) -> int:
    return int(_stream(i).nbytes) + _CODE


def _cycles(pixels: int, inner: int, channels: int) -> float:
    return pixels * (-(-channels // 4) * (15.0 * (inner + 3) + 130) + 5 * inner + 60)


def _inner(i: ConvS8) -> int:
    return i.kernel_height * i.kernel_width * i.channels


def _accepts_conv(i: ConvS8) -> str:
    if i.groups != 1:
        return "is for convolutions without groups"
    if i.kernel_height > MAX_ROWS:
        return f"the window is taller than {MAX_ROWS} rows"
    return why_not(i)


def _conv_scratch(i: ConvS8) -> int:
    return 4 * (-(-_inner(i) // 4) * 4)


def _conv_cycles(i: ConvS8) -> float:
    return _cycles(i.pixels, _inner(i), i.out_channels)


def _dense_scratch(i: DenseS8) -> int:
    """Return the bytes of a row with zeros up to a multiple of four, none where it is one."""
    return -(-i.inner // 4) * 4 if i.inner % 4 else 0


CONV_HALFWORD = (
    Kernel(
        "gm_conv2d_s8_halfword",
        requires=frozenset({"armv6m"}),
        folder="armv6m",
        accepts=_accepts_conv,
        scratch=_conv_scratch,
        pack=_pack,
        core=True,
        in_place=pixel_in_place,
        overlap=lambda i: block_after_block(i, 1, moved=True),
        turned=turned,
        cycles=_conv_cycles,
        flash=_flash,
        row=RowKernel(
            "gm_conv2d_s8_halfword_rows",
            scratch=_conv_scratch,
            overlap=lambda i: block_after_block_of_row(i, 1),
            cycles=_conv_cycles,
        ),
    ),
)
"""Kernels of ConvS8."""

DENSE_HALFWORD = (
    Kernel(
        "gm_dense_s8_halfword",
        requires=frozenset({"armv6m"}),
        folder="armv6m",
        accepts=why_not,
        scratch=_dense_scratch,
        pack=_pack,
        core=True,
        cycles=lambda i: 1.15 * _cycles(i.rows, i.inner, i.cols),
        flash=_flash,
    ),
)
"""Kernels of DenseS8."""
