"""Convolution kernels for Arm's DSP extension: pointwise, and direct on a ring of int16 rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from glowmcu.ops._linear import data_of
from glowmcu.ops._overlap import ascending_blocks, ascending_rows, descending_blocks
from glowmcu.ops._raw_product import (
    RawProduct,
    four_times,
    lane_order,
    natural_order,
    raw_product,
    stream,
    too_far,
    why_not,
)
from glowmcu.ops._twins import is_pointwise
from glowmcu.ops._window import MAX_ROWS
from glowmcu.options import Optimize
from glowmcu.targets.kernel import Kernel, Overlap, Packed, RowKernel

if TYPE_CHECKING:
    from glowmcu.ops.conv2d import ConvS8

LONG_CODE: frozenset[Optimize] = frozenset({"speed", "balanced"})
DSP = frozenset({"arm-dsp"})
_STATIONARY_INPUTS = 16
_CHUNK_BYTES, _STATIONARY_CHUNK_BYTES = 256, 1024
"""Of expanded pixels: more of them pay where a group's weights are loaded once for all."""


# Pointwise: `chunk` pixels are expanded to int16 before any of their results is written.


def _pointwise(i: ConvS8) -> RawProduct:
    steps = len(lane_order(i.channels)) // 2
    return raw_product(i, i.out_channels, 1, steps, 4 * steps, 8 * steps)


def _stationary(i: ConvS8) -> RawProduct:
    return replace(_pointwise(i), stationary=True)


def _chunk(i: ConvS8, product: RawProduct) -> int:
    """Return how many pixels are expanded at a time, an even number."""
    pixels = i.batch * i.height * i.width
    room = _STATIONARY_CHUNK_BYTES if product.stationary else _CHUNK_BYTES
    return min(max(room // product.distance // 2 * 2, 2), 32, pixels + pixels % 2)


def _accepts_pointwise(i: ConvS8) -> str:
    if not is_pointwise(i):
        return "is for 1x1 convolutions of stride 1"
    if i.groups != 1:
        return "is for convolutions without groups"
    return too_far(_pointwise(i)) or why_not(i)


def _accepts_stationary(i: ConvS8) -> str:
    if i.channels % 4 or i.channels > _STATIONARY_INPUTS or i.out_channels % 4:
        return f"is for 4, 8, … {_STATIONARY_INPUTS} input and a multiple of 4 output channels"
    return _accepts_pointwise(i)


def _pointwise_scratch(i: ConvS8, product: RawProduct) -> int:
    return _chunk(i, product) * product.distance


def _pointwise_overlap(i: ConvS8, product: RawProduct) -> tuple[Overlap, ...]:
    """Let y lie over x where what is there has been expanded before it is written."""
    pixels, chunk = i.batch * i.height * i.width, _chunk(i, product)
    along = descending_blocks if i.descending else ascending_blocks
    return (Overlap("y", "x", *along(pixels, chunk, i.out_channels, i.channels, moved=True)),)


def _pointwise_in_place(i: ConvS8) -> tuple[tuple[str, str], ...]:
    equal = i.out_channels == i.channels
    narrows = i.out_channels < i.channels and not i.descending
    return (("y", "x"),) if equal or narrows else ()


def _pack_pointwise(i: ConvS8) -> tuple[Packed, ...]:
    weights = data_of(i.w)
    assert weights is not None
    pixels = i.batch * i.height * i.width
    head = [i.zero_point, four_times(i.low), four_times(i.high), pixels, i.out_channels]
    by_channel = weights.reshape(i.out_channels, 1, i.channels)
    words = stream(i, by_channel, lane_order(i.channels), head)
    return (Packed("w", words, f"{i.w.name} {list(i.w.type.shape)}, pairs of raw weights"),)


def _pointwise_view(i: ConvS8, product: RawProduct) -> Mapping[str, Any]:
    pixels = i.batch * i.height * i.width
    return {
        "p": product,
        "paired": product.stationary or pixels > 1,
        "single": not product.stationary and pixels % 2 == 1,
        "chunk": _chunk(i, product),
        "inner": i.channels,
        "descending": i.descending,
    }


def _pointwise_cycles(i: ConvS8, product: RawProduct) -> float:
    pixels, chunk = i.batch * i.height * i.width, _chunk(i, product)
    groups = -(-i.out_channels // 4)
    pairs = pixels // 2
    work = pairs * product.group_cycles()
    if product.stationary:
        work += pixels % 2 * product.group_cycles()
        calls = -(-pixels // chunk) * groups * (90 + 2 * product.steps)
    else:
        work += pixels % 2 * product.single_cycles()
        calls = -(-pixels // chunk) * 200 + pairs * 20
    return groups * work + calls + 1.8 * pixels * i.channels


def _pointwise_flash(i: ConvS8, product: RawProduct) -> int:
    pixels = i.batch * i.height * i.width
    single = not product.stationary and pixels % 2 == 1
    code = product.code_bytes(paired=product.stationary or pixels > 1, single=single)
    return _pack_pointwise(i)[0].data.nbytes + code + 200


# Direct: the product runs over kernel_height rows of kernel_width * channels contiguous values.


def _direct(i: ConvS8) -> RawProduct:
    steps = (i.kernel_width * i.channels + 1) // 2
    pixel = i.stride_width * i.channels
    distance = 2 * (_row_values(i) + pixel - 1) if _twin(i) else 2 * pixel
    return raw_product(i, i.out_channels, i.kernel_height, steps, distance, 4 * pixel)


def _twin(i: ConvS8) -> bool:
    """Tell whether a second copy of each row, one value further on, keeps loads aligned."""
    return i.stride_width * i.channels % 2 == 1


def _row_values(i: ConvS8) -> int:
    """Return the values of a padded row, with what the second pixel of an odd pair reads."""
    pixels = i.window.reach(1) + (i.stride_width if i.out_width % 2 else 0)
    return (pixels * i.channels + 2) // 2 * 2


def _pitch(i: ConvS8) -> int:
    return _row_values(i) * (2 if _twin(i) else 1)


def _direct_scratch(i: ConvS8) -> int:
    return 2 * i.kernel_height * _pitch(i)


def _accepts_direct(i: ConvS8) -> str:
    if i.groups != 1 or (i.dilation_height, i.dilation_width) != (1, 1):
        return "is for convolutions without groups and dilation"
    if i.kernel_height > MAX_ROWS:
        return f"the window is taller than {MAX_ROWS} rows"
    return too_far(_direct(i)) or why_not(i)


def _direct_overlap(i: ConvS8) -> tuple[Overlap, ...]:
    return (Overlap("y", "x", *ascending_rows(i, i.out_channels, i.channels, moved=True)),)


def _direct_in_place(i: ConvS8) -> tuple[tuple[str, str], ...]:
    low, _ = ascending_rows(i, i.out_channels, i.channels, moved=True)
    return (("y", "x"),) if low >= 0 and i.y.nbytes <= i.x.nbytes else ()


def _order(i: ConvS8) -> list[int]:
    count = i.kernel_width * i.channels
    return lane_order(count) if i.channels % 4 == 0 else natural_order(count)


def _pack_direct(i: ConvS8) -> tuple[Packed, ...]:
    weights = data_of(i.w)
    assert weights is not None
    head = [i.zero_point, four_times(i.low), four_times(i.high), i.fill]
    by_row = weights.reshape(i.out_channels, i.kernel_height, -1)
    words = stream(i, by_row, _order(i), head)
    return (Packed("w", words, f"{i.w.name} {list(i.w.type.shape)}, pairs of raw weights"),)


def _direct_view(i: ConvS8) -> Mapping[str, Any]:
    return {
        "p": _direct(i),
        "twin": _row_values(i) if _twin(i) else 0,
        "pitch": _pitch(i),
        "left": i.pad_left * i.channels,
        "values": min(i.window.reach(1) - i.pad_left, i.width) * i.channels,
        "grouped": i.channels % 4 == 0,
        "channels": i.out_channels,
        "groups": -(-i.out_channels // 4),
        "width": i.out_width,
        "height": i.out_height,
        "batch": i.batch,
        "top": i.pad_top,
        "stride": i.stride_height,
        "in_height": i.height,
        "in_row": i.width * i.channels,
    }


def _direct_cycles(i: ConvS8) -> float:
    product = _direct(i)
    groups = -(-i.out_channels // 4)
    row = i.out_width // 2 * (groups * product.group_cycles() + 4 * i.kernel_height + 20)
    if i.out_width % 2:
        row += groups * product.single_cycles() + 4 * i.kernel_height + 70
    loaded = i.batch * i.window.reach(0) * _pitch(i) * 2.2
    return loaded + i.batch * i.out_height * (row + 150)


def _rows_cycles(i: ConvS8) -> float:
    """Return the cycles of all rows where each one expands the rows of its own window."""
    again = i.out_height * i.kernel_height - i.window.reach(0)
    return _direct_cycles(i) + i.batch * again * _pitch(i) * 2.2


def _direct_flash(i: ConvS8) -> int:
    code = _direct(i).code_bytes(paired=i.out_width > 1, single=i.out_width % 2 == 1)
    return _pack_direct(i)[0].data.nbytes + code + 500


def _pointwise_kernel(symbol: str, product: Callable[[ConvS8], RawProduct]) -> Kernel:
    return Kernel(
        symbol,
        requires=DSP,
        folder="arm_dsp",
        accepts=_accepts_pointwise,
        scratch=lambda i: _pointwise_scratch(i, product(i)),
        pack=_pack_pointwise,
        template="raw_pointwise.c.j2",
        view=lambda i: _pointwise_view(i, product(i)),
        in_place=_pointwise_in_place,
        overlap=lambda i: _pointwise_overlap(i, product(i)),
        turned=lambda i: replace(i, descending=1 - i.descending),
        modes=LONG_CODE,
        cycles=lambda i: _pointwise_cycles(i, product(i)),
        flash=lambda i: _pointwise_flash(i, product(i)),
    )


POINTWISE = _pointwise_kernel("gm_conv2d_s8_pointwise", _pointwise)
CONV_DSP = (
    replace(
        _pointwise_kernel("gm_conv2d_s8_stationary", _stationary),
        requires=DSP | {"arm-fpu"},
        accepts=_accepts_stationary,
    ),
    POINTWISE,
    Kernel(
        "gm_conv2d_s8_ring",
        requires=DSP,
        folder="arm_dsp",
        accepts=_accepts_direct,
        scratch=_direct_scratch,
        pack=_pack_direct,
        template="raw_conv.c.j2",
        view=_direct_view,
        in_place=_direct_in_place,
        overlap=_direct_overlap,
        modes=LONG_CODE,
        cycles=_direct_cycles,
        flash=_direct_flash,
        row=RowKernel(
            "gm_conv2d_s8_expanded_rows",
            scratch=_direct_scratch,
            overlap=lambda _: (Overlap("y", "x", 0, 0),),
            cycles=_rows_cycles,
            template="raw_conv_rows.c.j2",
            view=_direct_view,
        ),
    ),
)
"""Kernels of ConvS8, the preferred one first."""
