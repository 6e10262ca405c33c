"""Geometry of windows that slide over an image: output sizes, padding, the ring of padded rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from glowmcu.core.types import Array
from glowmcu.graph.graph import Value
from glowmcu.instr.instruction import Instruction, RowWindow

Pair = tuple[int, int]
Pads = tuple[int, int, int, int]
"""Padding at the top, left, bottom, right."""

MAX_ROWS = 16
"""GM_WINDOW_ROWS: the tallest window of a kernel that works on row pointers."""


def extent(kernel: int, dilation: int) -> int:
    """Return how many rows (or columns) a window spans."""
    return (kernel - 1) * dilation + 1


def output_size(size: int, kernel: int, stride: int, dilation: int, pads: int) -> int:
    """Return how many windows fit; raise TypeError where not even one does."""
    room = size + pads - extent(kernel, dilation)
    if room < 0:
        span = extent(kernel, dilation)
        raise TypeError(f"a window over {span} is larger than the padded input, {size + pads}")
    return room // stride + 1


@dataclass(frozen=True)
class Window:
    """A window on an NHWC image: how it lies, and the size of input and output."""

    size: Pair
    output: Pair
    kernel: Pair
    strides: Pair
    dilations: Pair
    pads: Pads

    @staticmethod
    def over(size: Pair, kernel: Pair, strides: Pair, dilations: Pair, pads: Pads) -> Window:
        """Return the window over an image of `size` with as many positions as fit."""
        top, left, bottom, right = pads
        output = (
            output_size(size[0], kernel[0], strides[0], dilations[0], top + bottom),
            output_size(size[1], kernel[1], strides[1], dilations[1], left + right),
        )
        return Window(size, output, kernel, strides, dilations, pads)

    def reach(self, axis: int) -> int:
        """Return the size, padding included, that windows read along an axis."""
        span = extent(self.kernel[axis], self.dilations[axis])
        return (self.output[axis] - 1) * self.strides[axis] + span

    @property
    def padded(self) -> bool:
        """True where a window reads outside the image."""
        overhang = (self.reach(a) - self.pads[a] > self.size[a] for a in (0, 1))
        return self.pads[0] > 0 or self.pads[1] > 0 or any(overhang)

    @property
    def padded_width(self) -> int:
        """Pixels of a padded row, 0 where there is no padding."""
        return self.reach(1) if self.padded else 0

    @property
    def ring_pixels(self) -> int:
        """Pixels of the ring of padded rows that a kernel keeps, 0 where there is no padding."""
        return extent(self.kernel[0], self.dilations[0]) * self.padded_width

    def attributes(self, batch: int) -> dict[str, int]:
        """Return the attributes of a WindowInstruction."""
        return {
            "batch": batch,
            "height": self.size[0],
            "width": self.size[1],
            "out_height": self.output[0],
            "out_width": self.output[1],
            "kernel_height": self.kernel[0],
            "kernel_width": self.kernel[1],
            "stride_height": self.strides[0],
            "stride_width": self.strides[1],
            "dilation_height": self.dilations[0],
            "dilation_width": self.dilations[1],
            "pad_top": self.pads[0],
            "pad_left": self.pads[1],
        }


def taps(x: Array, window: Window, fill: float) -> Iterator[tuple[int, int, Array]]:
    """Yield (i, j, values) for each tap of the window: what each output sees of NHWC x there."""
    x = x.reshape(x.shape[0], *window.size, x.shape[-1])
    top, left, _, _ = window.pads
    bottom = max(window.reach(0) - top - x.shape[1], 0)
    right = max(window.reach(1) - left - x.shape[2], 0)
    pads = ((0, 0), (top, bottom), (left, right), (0, 0))
    padded = np.pad(x, pads, constant_values=fill)
    (high, wide), (sh, sw), (dh, dw) = window.output, window.strides, window.dilations
    for i in range(window.kernel[0]):
        for j in range(window.kernel[1]):
            r, c = i * dh, j * dw
            rows, cols = (
                slice(r, r + (high - 1) * sh + 1, sh),
                slice(c, c + (wide - 1) * sw + 1, sw),
            )
            yield i, j, padded[:, rows, cols]


def convolve(x: Array, w: Array, window: Window, groups: int, fill: float = 0) -> Array:
    """Return the sums of products of NHWC x and OHWI w, in the type of x; padding is `fill`."""
    count, inner = w.shape[0] // groups, w.shape[3]
    y = np.zeros((x.shape[0], *window.output, w.shape[0]), x.dtype)
    for i, j, values in taps(x, window, fill):
        if count == inner == 1:  # depthwise: the same sums without a loop over channels
            y += values * w[:, i, j, 0]
            continue
        for g in range(groups):
            outs = slice(g * count, (g + 1) * count)
            y[..., outs] += values[..., g * inner : (g + 1) * inner] @ w[outs, i, j].T
    return y


class WindowInstruction(Instruction):
    """Base of the instructions that slide a window over x; the first members of their C structs."""

    batch: int
    height: int
    width: int
    out_height: int
    out_width: int
    kernel_height: int
    kernel_width: int
    stride_height: int
    stride_width: int
    dilation_height: int
    dilation_width: int
    pad_top: int
    pad_left: int

    @property
    def window(self) -> Window:
        """The window; bottom and right pads are as large as they need to be."""
        window = Window(
            (self.height, self.width),
            (self.out_height, self.out_width),
            (self.kernel_height, self.kernel_width),
            (self.stride_height, self.stride_width),
            (self.dilation_height, self.dilation_width),
            (self.pad_top, self.pad_left, 0, 0),
        )
        bottom = max(window.reach(0) - self.pad_top - self.height, 0)
        right = max(window.reach(1) - self.pad_left - self.width, 0)
        return replace(window, pads=(self.pad_top, self.pad_left, bottom, right))

    @property
    def pixels(self) -> int:
        """Pixels of the output."""
        return self.batch * self.out_height * self.out_width

    def windows(self) -> dict[str, RowWindow]:
        shape = next(b.type.shape for b in self.inputs())
        if shape[1:3] != (self.height, self.width):
            return {}  # rows of the image lie in a line
        rows = RowWindow(self.kernel_height, self.stride_height, self.dilation_height, self.pad_top)
        return {"x": rows}

    def at_row(self, row: int) -> WindowInstruction | None:
        """The window on the rows of the image that one output row sees."""
        first = row * self.stride_height - self.pad_top
        low = max(first, 0)
        high = min(first + extent(self.kernel_height, self.dilation_height), self.height)
        if self.batch != 1 or high <= low:
            return None
        return replace(self, height=high - low, out_height=1, pad_top=low - first)

    def whole_windows(self) -> Pair:
        """Return how many rows and columns of the output see no padding."""
        window = self.window
        found = []
        for axis in (0, 1):
            span = extent(window.kernel[axis], window.dilations[axis])
            starts = range(-window.pads[axis], window.reach(axis), window.strides[axis])
            places = list(starts)[: window.output[axis]]
            found.append(sum(0 <= s and s + span <= window.size[axis] for s in places))
        return found[0], found[1]

    def ring_in_place(self, out_pixel: int, in_pixel: int) -> bool:
        """Tell whether a kernel that keeps a ring of padded rows may write y where x lies.

        Row r of the output may be written once every input row up to its end is in the ring.
        out_pixel and in_pixel are bytes of a pixel.
        """
        y_row, x_row = self.out_width * out_pixel, self.width * in_pixel
        if not self.window.padded or self.out_height * y_row > self.height * x_row:
            return False
        span = extent(self.kernel_height, self.dilation_height)
        for r in range(self.out_height):
            loaded = min(r * self.stride_height - self.pad_top + span, self.height)
            if loaded < self.height and (r + 1) * y_row > loaded * x_row:
                return False
        return True


def same_pads(size: int, kernel: int, stride: int, dilation: int, *, upper: bool) -> Pair:
    """Return (before, after) of ONNX auto_pad SAME: as many outputs as ceil(size / stride)."""
    output = -(-size // stride)
    total = max((output - 1) * stride + extent(kernel, dilation) - size, 0)
    small, large = total // 2, total - total // 2
    return (small, large) if upper else (large, small)


@dataclass(frozen=True)
class Sliding:
    """Strides, dilations and pads of an ONNX node, as many as it has spatial dimensions."""

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begins: tuple[int, ...]
    ends: tuple[int, ...]

    def last_two(self) -> tuple[Pair, Pair, Pads]:
        """Return strides, dilations, pads of the last two dimensions; a single one is the row."""
        s, d = (1, *self.strides)[-2:], (1, *self.dilations)[-2:]
        begins, ends = (0, *self.begins)[-2:], (0, *self.ends)[-2:]
        return (s[0], s[1]), (d[0], d[1]), (begins[0], begins[1], ends[0], ends[1])


def kernel_of(node: Any, w: Value, what: str, most: int) -> tuple[int, ...]:
    """Return the size of the window of a layer with weights, over 1 to `most` dimensions."""
    kernel: tuple[int, ...] = w.shape[2:]
    if not 1 <= len(kernel) <= most:
        known = ("one", "two", "three")[:most]
        why = f"{', '.join(known[:-1])} and {known[-1]} are implemented"
        node.fail(f"{what} over {len(kernel)} spatial dimensions", why=why)
    if tuple(node.attr("kernel_shape") or kernel) != kernel:
        node.fail(f"kernel_shape is not that of the weights, {kernel}")
    return kernel


def stated(node: Any, rank: int) -> tuple[Sliding, str]:
    """Read strides, dilations, pads of an ONNX node as they stand, and auto_pad."""
    ones = (1,) * rank
    strides = tuple(int(v) for v in node.attr("strides") or ones)
    dilations = tuple(int(v) for v in node.attr("dilations") or ones)
    pads = tuple(int(v) for v in node.attr("pads") or (0,) * 2 * rank)
    mode = node.attr("auto_pad") or "NOTSET"
    for name, values, count in (
        ("strides", strides, rank),
        ("dilations", dilations, rank),
        ("pads", pads, 2 * rank),
    ):
        if len(values) != count:
            node.fail(f"{name} has {len(values)} values for {rank} spatial dimensions")
    if min(*strides, *dilations) < 1 or min(pads) < 0:
        node.fail("strides and dilations must be 1 or more, pads 0 or more")
    if mode not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        node.fail(f"there is no auto_pad '{mode}'")
    if mode != "NOTSET":
        pads = (0,) * 2 * rank
    return Sliding(strides, dilations, pads[:rank], pads[rank:]), mode


def sliding(node: Any, spatial: tuple[int, ...], kernel: tuple[int, ...]) -> Sliding:
    """Read strides, dilations and pads of an ONNX node; auto_pad comes out as explicit pads."""
    found, mode = stated(node, len(spatial))
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        return found
    pads = [
        same_pads(n, k, s, d, upper=mode == "SAME_UPPER")
        for n, k, s, d in zip(spatial, kernel, found.strides, found.dilations, strict=True)
    ]
    return replace(found, begins=tuple(p[0] for p in pads), ends=tuple(p[1] for p in pads))
