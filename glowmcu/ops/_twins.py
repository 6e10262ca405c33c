"""What the kernels of several instruction sets ask of a layer, and what they promise alike."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from glowmcu.core.types import Array
from glowmcu.ops._linear import data_of
from glowmcu.ops._overlap import (
    ascending_blocks,
    ascending_rows,
    descending_blocks,
    within_rows,
)
from glowmcu.ops._window import MAX_ROWS
from glowmcu.targets.kernel import Overlap

if TYPE_CHECKING:
    from glowmcu.ops.conv2d import ConvF32, ConvS8
    from glowmcu.ops.depthwise import DepthwiseF32, DepthwiseS8

Layer = TypeVar("Layer", "ConvF32", "ConvS8")


def constants_of(i: Any) -> tuple[Array, Array, Array]:
    """Return the weights, bias and multipliers of an integer layer that `known` lets pass."""
    weights, bias, multiplier = (data_of(b) for b in (i.w, i.bias, i.multiplier))
    assert weights is not None
    assert bias is not None
    assert multiplier is not None
    return weights, bias, multiplier


def known(i: Any) -> str:
    """Return "" where weights and bias are constants, else that they are not."""
    parts = (i.w, i.bias, getattr(i, "multiplier", None))
    if any(b is not None and data_of(b) is None for b in parts):
        return "weights or bias are computed at run time"
    return ""


def is_pointwise(i: ConvF32 | ConvS8) -> bool:
    """Tell whether a convolution is a matrix product over pixels: 1x1, stride 1, no padding."""
    sizes = (i.kernel_height, i.kernel_width, i.stride_height, i.stride_width)
    return sizes == (1, 1, 1, 1) and i.padded_width == 0


def known_window(i: ConvF32 | ConvS8 | DepthwiseF32 | DepthwiseS8) -> str:
    """Say what keeps a layer from a kernel that points at the rows of its window, "" if nothing."""
    if i.kernel_height > MAX_ROWS:
        return f"the window is taller than {MAX_ROWS} rows"
    return known(i)


def one_group(i: ConvF32 | ConvS8) -> str:
    """As known_window, of a kernel for convolutions without groups."""
    return "is for convolutions without groups" if i.groups != 1 else known_window(i)


def pixel_in_place(i: ConvF32 | ConvS8) -> tuple[tuple[str, str], ...]:
    """Allow y on x for a pointwise layer whose pixels do not overtake what is still read."""
    narrows = i.out_channels < i.channels and not i.descending
    fits = is_pointwise(i) and (narrows or i.out_channels == i.channels)
    return (("y", "x"),) if fits else ()


def turned(i: Layer) -> Layer | None:
    """Return a pointwise layer that goes through the image the other way."""
    return replace(i, descending=1 - i.descending) if is_pointwise(i) else None


def block_after_block(i: ConvF32 | ConvS8, block: int, *, moved: bool) -> tuple[Overlap, ...]:
    """Let y lie over x as far as a kernel allows that makes `block` pixels at once.

    moved  the pixels of a pointwise layer are copied before their results are written
    """
    outer, inner = _pixels(i)
    if not is_pointwise(i):
        return (Overlap("y", "x", *ascending_rows(i, outer, inner, moved=False)),)
    along = descending_blocks if i.descending else ascending_blocks
    pixels = i.batch * i.height * i.width
    return (Overlap("y", "x", *along(pixels, block, outer, inner, moved=moved)),)


def block_after_block_of_row(i: ConvF32 | ConvS8, block: int) -> tuple[Overlap, ...]:
    """The same of a row of y over one of x."""
    return (Overlap("y", "x", *within_rows(i, block, *_pixels(i))),)


def _pixels(i: ConvF32 | ConvS8) -> tuple[int, int]:
    """Return the bytes of a pixel of y and of x, of a convolution without groups."""
    size = i.x.type.dtype.nbytes
    return i.out_channels * size, i.channels * size


def few_taps(i: DepthwiseF32 | DepthwiseS8, most: int) -> str:
    """As known_window, of a kernel that points at up to `most` taps."""
    if i.kernel_height * i.kernel_width > most:
        return f"the window has more than {most} taps"
    return known_window(i)


def pixel_after_pixel(i: DepthwiseF32 | DepthwiseS8) -> tuple[Overlap, ...]:
    """Let y lie over x as far as a kernel allows that makes a pixel after the other."""
    pixel = i.channels * i.x.type.dtype.nbytes
    return (Overlap("y", "x", *ascending_rows(i, pixel, pixel, moved=False)),)


def pixel_after_pixel_of_row(i: DepthwiseF32 | DepthwiseS8) -> tuple[Overlap, ...]:
    """The same of a row of y over one of x."""
    pixel = i.channels * i.x.type.dtype.nbytes
    return (Overlap("y", "x", *within_rows(i, 1, pixel, pixel)),)


def one_pixel(i: DepthwiseF32 | DepthwiseS8) -> int:
    """Return the scratch that holds a pixel of padding."""
    return -(-i.channels * i.x.type.dtype.nbytes // 4) * 4
