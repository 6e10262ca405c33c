"""Float convolution kernels for a single-precision FPU: sums stay in registers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from glowmcu.ops._linear import data_of
from glowmcu.ops._twins import (
    block_after_block,
    block_after_block_of_row,
    few_taps,
    is_pointwise,
    one_group,
    pixel_after_pixel,
    pixel_after_pixel_of_row,
    pixel_in_place,
    turned,
)
from glowmcu.targets.kernel import Kernel, Packed, RowKernel

if TYPE_CHECKING:
    from glowmcu.ops.conv2d import ConvF32
    from glowmcu.ops.depthwise import DepthwiseF32

FPU = frozenset({"arm-fpu"})
_TAPS = 64
_FLOAT = 4


def _inner(i: ConvF32) -> int:
    return i.kernel_height * i.kernel_width * i.channels


def _conv_scratch(i: ConvF32) -> int:
    """Return the bytes of four windows; pixels that get wider are read where they lie."""
    widens = is_pointwise(i) and i.out_channels > i.channels
    return 0 if widens else 4 * _inner(i) * _FLOAT


def _row_cycles(i: ConvF32) -> float:
    """Rows whose pixels are no multiple of four end in a block that is not full."""
    blocks = i.out_height * -(-i.out_width // 4) * -(-i.out_channels // 4)
    return blocks * (45.0 * _inner(i) + 220) + i.out_height * i.out_width * 2.0 * _inner(i)


def _conv_cycles(i: ConvF32) -> float:
    blocks = -(-i.pixels // 4) * -(-i.out_channels // 4)
    return blocks * (45.0 * _inner(i) + 220) + i.pixels * 2.0 * _inner(i)


def conv_fpu(pack: Callable[[ConvF32], tuple[Packed, ...]]) -> Kernel:
    """Return the kernel of ConvF32, whose constants are packed as for the portable one."""
    return Kernel(
        "gm_conv2d_f32_fpu",
        requires=FPU,
        folder="arm_fpu",
        accepts=one_group,
        scratch=_conv_scratch,
        pack=pack,
        core=True,
        in_place=pixel_in_place,
        overlap=lambda i: block_after_block(i, 4, moved=_conv_scratch(i) > 0),
        turned=turned,
        cycles=_conv_cycles,
        flash=lambda i: sum(p.data.nbytes for p in pack(i)) + 1200,
        row=RowKernel(
            "gm_conv2d_f32_fpu_rows",
            scratch=lambda i: 4 * _inner(i) * _FLOAT,
            overlap=lambda i: block_after_block_of_row(i, 4),
            cycles=_row_cycles,
        ),
    )


def _accepts_depthwise(i: DepthwiseF32) -> str:
    if i.channels % 8:
        return "is for a multiple of 8 channels"
    return few_taps(i, _TAPS)


def _pack_depthwise(i: DepthwiseF32) -> tuple[Packed, ...]:
    data = data_of(i.w)
    assert data is not None
    bias = np.zeros(i.channels, np.float32) if i.bias is None else data_of(i.bias)
    assert bias is not None
    by_eight = data.reshape(i.channels // 8, 8, -1).transpose(0, 2, 1)
    taps = np.ascontiguousarray(by_eight).reshape(-1)
    label = f"{i.w.name} {list(i.w.type.shape)}, taps of eight channels"
    return Packed("w", taps, label), Packed("bias", bias, "bias")


def _pixel(i: DepthwiseF32) -> int:
    return i.channels * _FLOAT


def _depthwise_row_cycles(i: DepthwiseF32) -> float:
    return _depthwise_cycles(i) + 1.0 * i.out_height * i.channels


def _depthwise_cycles(i: DepthwiseF32) -> float:
    taps = i.kernel_height * i.kernel_width
    return i.pixels * (i.channels // 8 * (38.0 * taps + 110) + 10 * taps)


DEPTHWISE_FPU = (
    Kernel(
        "gm_depthwise_f32_fpu",
        requires=FPU,
        folder="arm_fpu",
        accepts=_accepts_depthwise,
        scratch=_pixel,
        pack=_pack_depthwise,
        core=True,
        overlap=pixel_after_pixel,
        cycles=_depthwise_cycles,
        flash=lambda i: sum(p.data.nbytes for p in _pack_depthwise(i)) + 600,
        row=RowKernel(
            "gm_depthwise_f32_fpu_rows",
            scratch=_pixel,
            overlap=pixel_after_pixel_of_row,
            cycles=_depthwise_row_cycles,
        ),
    ),
)
"""Kernels of DepthwiseF32."""
