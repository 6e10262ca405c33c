"""Exact Winograd F(4x4, 3x3) and F(2x2, 3x3) for int8 convolutions of stride 1, with Arm's DSP
extension.

The transforms are scaled to integers, and sums wrap modulo 2^32. Over the points 0, 1, -1, 2, -2
and infinity the accumulator comes out times 9 * 2^k, k up to 6, and 1/9 is a number modulo 2^32;
over 0, 1, -1 and infinity times 4. The accumulator times 2^k must fit, see
runtime_c/src/arm_dsp/gm_winograd.h.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from glowmcu.core.types import Array
from glowmcu.ops._linear import data_of
from glowmcu.ops._raw_product import lane_order
from glowmcu.targets.kernel import Kernel, Overlap, Packed

if TYPE_CHECKING:
    from glowmcu.ops.conv2d import ConvS8

_NINTH = 0x38E38E39
"""1/9 modulo 2^32."""
_MOST_CHANNELS = 64
_MOST_OUTPUTS = 1365
_LAST_OFFSET = 4095
"""The largest immediate offset of a load."""


@dataclass(frozen=True)
class Transform:
    """A tile of size x size outputs.

    weights  what makes the points of a row or column from the three taps
    columns  the order in which columns of points come
    shifts   the powers of 2, one after the other, by which results are scaled
    scale    by how much a bias is multiplied at the position that all outputs take once
    """

    size: int
    weights: tuple[tuple[int, int, int], ...]
    columns: tuple[int, ...]
    shifts: tuple[int, ...]
    scale: int

    @property
    def points(self) -> int:
        """Rows, and columns, of a tile of the input."""
        return self.size + 2

    @property
    def positions(self) -> int:
        """Products of a tile."""
        return self.points**2

    @property
    def limit(self) -> int:
        """The power of 2 that the accumulator must stay below."""
        return 31 - max(self.shifts)

    def pitch(self, i: ConvS8) -> int:
        """Return the values of a row of whole pairs of tiles."""
        across = 2 * self.size
        return (-(-i.out_width // across) * across + 2) * i.channels

    def edges(self, i: ConvS8) -> bool:
        """Tell whether tiles go beyond the image."""
        return i.out_width % (2 * self.size) != 0 or i.out_height % self.size != 0

    def unroll(self, i: ConvS8) -> int:
        """Return the positions in a round of the loop of products."""
        if self.size == 2:
            return 2 if i.channels <= 32 else 1
        return 3 if i.channels <= 16 else 2 if i.channels <= 32 else 1


F4 = Transform(
    4,
    ((6, 0, 0), (-1, -1, -1), (-1, 1, -1), (1, 2, 4), (1, -2, 4), (0, 0, 6)),
    (0, 1, 2, 3, 4, 5),
    (2, 3, 4, 5, 6),
    36,
)
F2 = Transform(2, ((2, 0, 0), (1, 1, 1), (1, -1, 1), (0, 0, 2)), (1, 2, 0, 3), (2,), 4)


def _block(i: ConvS8) -> int:
    """Return the bytes of a position: values of two tiles, sums of four channels of both."""
    return 4 * i.channels + 32


def _scratch(i: ConvS8, t: Transform) -> int:
    tiles = 2 * t.size**2 * i.out_channels if t.edges(i) else 0
    return 2 * t.points * t.pitch(i) + t.positions * _block(i) + tiles


def _accepts(i: ConvS8, t: Transform) -> str:
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
    if t is F2 and 2 * t.pitch(i) + 6 * i.channels > _LAST_OFFSET:
        return f"rows of {t.pitch(i)} values are too long"
    return _why_not_exact(i, t)


def _why_not_exact(i: ConvS8, t: Transform) -> str:
    """Return a reason where a scaled accumulator could pass 32 bits."""
    weights, bias = data_of(i.w), data_of(i.bias)
    if weights is None or bias is None or data_of(i.multiplier) is None:
        return "weights or bias are computed at run time"
    w = weights.reshape(i.out_channels, -1).astype(np.int64)
    up, down = np.maximum(w, 0).sum(axis=1), -np.minimum(w, 0).sum(axis=1)
    most = np.maximum(bias + 127 * up + 128 * down, -(bias - 128 * up - 127 * down))
    wrong = np.flatnonzero(most << i.shift >= 1 << t.limit)
    return f"the sum of channel {wrong[0]} could pass 2^{t.limit}" if wrong.size else ""


def _pack(i: ConvS8, t: Transform) -> tuple[Packed, ...]:
    """Return the constants as the kernel streams them."""
    weights, bias, multiplier = (data_of(b) for b in (i.w, i.bias, i.multiplier))
    assert weights is not None
    assert bias is not None
    assert multiplier is not None
    w = weights.astype(np.int64)
    rows = np.asarray(t.weights)
    u = np.einsum("ia,jb,nabc->njic", rows, rows[list(t.columns)], w)
    u = u[..., lane_order(i.channels)] & 0xFFFF
    groups = i.out_channels // 4
    lanes = u.reshape(groups, 4, t.positions, i.channels // 2, 2).transpose(0, 2, 3, 1, 4)
    words = (lanes[..., 0] | lanes[..., 1] << 16).reshape(groups, -1)
    sums = w.reshape(i.out_channels, -1).sum(axis=1)
    biases = t.scale * (bias.astype(np.int64) - 128 * sums)
    heads = np.concatenate([biases.reshape(groups, 4), multiplier.reshape(groups, 4)], axis=1)
    roundings = [(i.zero_point << k) + (1 << (k - 1)) for k in t.shifts]
    parts = [np.asarray([*roundings, i.fill + 128]), np.concatenate([heads, words], axis=1)]
    stream: Array = np.concatenate([p.reshape(-1) for p in parts]) & 0xFFFFFFFF
    data = stream.astype(np.uint32).view(np.int32)
    what = f"{i.w.name} {list(i.w.type.shape)}, transformed for {t.size}x{t.size} outputs"
    return (Packed("w", data, what),)


def _packed_bytes(i: ConvS8, t: Transform) -> int:
    group = 8 + 2 * t.positions * i.channels
    return 4 * (len(t.shifts) + 1 + i.out_channels // 4 * group)


def _code_bytes(i: ConvS8, t: Transform) -> int:
    product = 56 * t.unroll(i) * (i.channels // 2)
    return product + (3450 if t is F4 else 1250)


def _view(i: ConvS8, t: Transform) -> Mapping[str, Any]:
    pitch = t.pitch(i)
    return {
        "size": t.size,
        "points": t.points,
        "positions": t.positions,
        "roundings": len(t.shifts),
        "channels": i.channels,
        "out_channels": i.out_channels,
        "pitch": pitch,
        "block": _block(i),
        "unroll": t.unroll(i),
        "shift": i.shift,
        "ninth": (_NINTH << i.shift) & 0xFFFFFFFF,
        "clamped": (i.low, i.high) != (-128, 127),
        "low": i.low,
        "high": i.high,
        "edges": t.edges(i),
        "out_pitch": (2 * t.size if t.edges(i) else i.out_width) * i.out_channels,
        "left": i.pad_left,
        "pixels": min(pitch // i.channels - i.pad_left, i.width),
        "top": i.pad_top,
        "batch": i.batch,
        "height": i.height,
        "width": i.width,
        "out_height": i.out_height,
        "out_width": i.out_width,
    }


def _overlap(i: ConvS8, t: Transform) -> tuple[Overlap, ...]:
    """Let y lie over x where what is there has been expanded before it is written."""
    y_row, x_row = i.out_width * i.out_channels, i.width * i.channels
    high = low = i.batch * i.height * x_row
    for image in range(i.batch):
        for oy in range(0, i.out_height, t.size):
            last = image == i.batch - 1 and oy + t.size >= i.out_height
            needed = min(max(oy - i.pad_top + t.points, 0), i.height)
            end = image * i.out_height + min(oy + t.size, i.out_height)
            if not last:
                low = min(low, (image * i.height + needed) * x_row - end * y_row)
    return (Overlap("y", "x", low, high),)


def _in_place(i: ConvS8, t: Transform) -> tuple[tuple[str, str], ...]:
    fits = _overlap(i, t)[0].low >= 0 and i.y.nbytes <= i.x.nbytes
    return (("y", "x"),) if fits else ()


def _cycles(i: ConvS8, t: Transform) -> float:
    pairs = i.batch * -(-i.out_height // t.size) * -(-i.out_width // (2 * t.size))
    transforms, outputs = (350, 4 * 420 + 60) if t is F4 else (90, 4 * 66 + 20)
    channel, position = (7.5, 14) if t is F4 else (8, 16)
    group = t.positions * (channel * i.channels + position) + 2 * outputs
    copy = 5 * t.size * i.out_channels if t.edges(i) else 0
    rows = i.batch * (i.out_height + 2 * i.out_height // t.size) * t.pitch(i) * 1.6
    return pairs * (i.channels * transforms + i.out_channels // 4 * group + copy) + rows


def _kernel(symbol: str, t: Transform) -> Kernel:
    return Kernel(
        symbol,
        requires=frozenset({"arm-dsp"}),
        folder="arm_dsp",
        accepts=lambda i: _accepts(i, t),
        scratch=lambda i: _scratch(i, t),
        pack=lambda i: _pack(i, t),
        template="winograd.c.j2",
        view=lambda i: _view(i, t),
        in_place=lambda i: _in_place(i, t),
        overlap=lambda i: _overlap(i, t),
        modes=frozenset({"speed"}),
        cycles=lambda i: _cycles(i, t),
        flash=lambda i: _packed_bytes(i, t) + _code_bytes(i, t),
    )


WINOGRAD_DSP = (_kernel("gm_conv2d_s8_winograd", F4), _kernel("gm_conv2d_s8_winograd2", F2))
"""Winograd kernels of ConvS8."""
