"""Exact Winograd F(4x4, 3x3) for int8 convolutions of stride 1, with Arm's DSP extension.

The transforms are those over the points 0, 1, -1, 2, -2 and infinity, scaled to integers. Sums
wrap modulo 2^32: what comes out is the accumulator times 9 * 2^k, k up to 6, and 1/9 is a number
modulo 2^32. The accumulator times 2^6 must fit, see runtime_c/src/arm_dsp/gm_winograd.h.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from glowmcu.core.types import Array
from glowmcu.ops._linear import data_of
from glowmcu.ops._raw_product import lane_order
from glowmcu.targets.kernel import Kernel, Overlap, Packed

if TYPE_CHECKING:
    from glowmcu.ops.conv2d import ConvS8

_WEIGHTS = np.array([[6, 0, 0], [-1, -1, -1], [-1, 1, -1], [1, 2, 4], [1, -2, 4], [0, 0, 6]])
_NINTH = 0x38E38E39
"""1/9 modulo 2^32."""
_MOST_CHANNELS = 64
_MOST_OUTPUTS = 1365


def _pitch(i: ConvS8) -> int:
    """Return the values of a row of whole pairs of tiles."""
    return (-(-i.out_width // 8) * 8 + 2) * i.channels


def _block(i: ConvS8) -> int:
    """Return the bytes of a position: values of two tiles, sums of four channels of both."""
    return 4 * i.channels + 32


def _edges(i: ConvS8) -> bool:
    return i.out_width % 8 != 0 or i.out_height % 4 != 0


def _scratch(i: ConvS8) -> int:
    return 12 * _pitch(i) + 36 * _block(i) + (32 * i.out_channels if _edges(i) else 0)


def _accepts(i: ConvS8) -> str:
    sizes = (i.kernel_height, i.kernel_width, i.stride_height, i.stride_width)
    if sizes != (3, 3, 1, 1) or (i.dilation_height, i.dilation_width) != (1, 1):
        return "is for 3x3 convolutions of stride 1 without dilation"
    if i.groups != 1:
        return "is for convolutions without groups"
    if i.channels % 4 or i.channels > _MOST_CHANNELS:
        return f"is for 4, 8, … {_MOST_CHANNELS} input channels"
    if i.out_channels % 4 or i.out_channels > _MOST_OUTPUTS:
        return f"is for 4, 8, … {_MOST_OUTPUTS // 4 * 4} output channels"
    if i.pad_left > 2 or i.out_width < 2 or i.out_height < 2:
        return "is for images of more than one pixel"
    return _why_not_exact(i)


def _why_not_exact(i: ConvS8) -> str:
    """Return a reason where an accumulator times 2^6 could pass 32 bits."""
    weights, bias = data_of(i.w), data_of(i.bias)
    if weights is None or bias is None or data_of(i.multiplier) is None:
        return "weights or bias are computed at run time"
    w = weights.reshape(i.out_channels, -1).astype(np.int64)
    up, down = np.maximum(w, 0).sum(axis=1), -np.minimum(w, 0).sum(axis=1)
    most = np.maximum(bias + 127 * up + 128 * down, -(bias - 128 * up - 127 * down))
    wrong = np.flatnonzero(most << i.shift >= 1 << 25)
    return f"the sum of channel {wrong[0]} could pass 2^25" if wrong.size else ""


def _pack(i: ConvS8) -> tuple[Packed, ...]:
    """Return the constants as the kernel streams them."""
    weights, bias, multiplier = (data_of(b) for b in (i.w, i.bias, i.multiplier))
    assert weights is not None
    assert bias is not None
    assert multiplier is not None
    w = weights.astype(np.int64)
    u = np.einsum("ia,jb,nabc->njic", _WEIGHTS, _WEIGHTS, w)[..., lane_order(i.channels)] & 0xFFFF
    groups = i.out_channels // 4
    lanes = u.reshape(groups, 4, 36, i.channels // 2, 2).transpose(0, 2, 3, 1, 4)
    words = (lanes[..., 0] | lanes[..., 1] << 16).reshape(groups, -1)
    sums = w.reshape(i.out_channels, -1).sum(axis=1)
    biases = 36 * (bias.astype(np.int64) - 128 * sums)
    heads = np.concatenate([biases.reshape(groups, 4), multiplier.reshape(groups, 4)], axis=1)
    roundings = [(i.zero_point << k) + (1 << (k - 1)) for k in range(2, 7)]
    parts = [np.asarray([*roundings, i.fill + 128]), np.concatenate([heads, words], axis=1)]
    stream: Array = np.concatenate([p.reshape(-1) for p in parts]) & 0xFFFFFFFF
    data = stream.astype(np.uint32).view(np.int32)
    return (Packed("w", data, f"{i.w.name} {list(i.w.type.shape)}, transformed for 4x4 outputs"),)


def _view(i: ConvS8) -> Mapping[str, Any]:
    return {
        "channels": i.channels,
        "out_channels": i.out_channels,
        "pitch": _pitch(i),
        "block": _block(i),
        "unroll": 3 if i.channels <= 16 else 2 if i.channels <= 32 else 1,
        "ninth": (_NINTH << i.shift) & 0xFFFFFFFF,
        "clamped": (i.low, i.high) != (-128, 127),
        "low": i.low,
        "high": i.high,
        "edges": _edges(i),
        "out_pitch": (8 if _edges(i) else i.out_width) * i.out_channels,
        "left": i.pad_left,
        "pixels": min(_pitch(i) // i.channels - i.pad_left, i.width),
        "top": i.pad_top,
        "batch": i.batch,
        "height": i.height,
        "width": i.width,
        "out_height": i.out_height,
        "out_width": i.out_width,
    }


def _overlap(i: ConvS8) -> tuple[Overlap, ...]:
    """Let y lie over x where what is there has been expanded before it is written."""
    y_row, x_row = i.out_width * i.out_channels, i.width * i.channels
    high = low = i.batch * i.height * x_row
    for image in range(i.batch):
        for oy in range(0, i.out_height, 4):
            last = image == i.batch - 1 and oy + 4 >= i.out_height
            needed = min(max(oy - i.pad_top + 6, 0), i.height)
            end = image * i.out_height + min(oy + 4, i.out_height)
            if not last:
                low = min(low, (image * i.height + needed) * x_row - end * y_row)
    return (Overlap("y", "x", low, high),)


def _in_place(i: ConvS8) -> tuple[tuple[str, str], ...]:
    return (("y", "x"),) if _overlap(i)[0].low >= 0 and i.y.nbytes <= i.x.nbytes else ()


def _cycles(i: ConvS8) -> float:
    pairs = i.batch * -(-i.out_height // 4) * -(-i.out_width // 8)
    group = 36 * (7.5 * i.channels + 14) + 2 * (4 * 420 + 60)
    copy = 20 * i.out_channels if _edges(i) else 0
    rows = i.batch * (i.out_height + 6) * _pitch(i) * 2
    return pairs * (i.channels * 350 + i.out_channels // 4 * group + copy) + rows


WINOGRAD_DSP = (
    Kernel(
        "gm_conv2d_s8_winograd",
        requires=frozenset({"arm-dsp"}),
        folder="arm_dsp",
        accepts=_accepts,
        scratch=_scratch,
        pack=_pack,
        template="winograd.c.j2",
        view=_view,
        in_place=_in_place,
        overlap=_overlap,
        modes=frozenset({"speed"}),
        cycles=_cycles,
        flash=lambda i: 4 * (6 + i.out_channels // 4 * (8 + 72 * i.channels)) + 3800,
    ),
)
"""Winograd kernels of ConvS8."""
