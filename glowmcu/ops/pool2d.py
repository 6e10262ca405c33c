"""Pooling instructions: the maximum or the average of every channel over windows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.fixedpoint import requantize
from glowmcu.core.types import Array
from glowmcu.instr.instruction import In, Out
from glowmcu.ops._linear import for_type
from glowmcu.ops._mve import MVE
from glowmcu.ops._overlap import within_rows
from glowmcu.ops._pool_dsp import AVERAGE_DSP, MAXIMUM_DSP, accepts_bytes
from glowmcu.ops._window import MAX_ROWS, Window, WindowInstruction, taps
from glowmcu.targets.kernel import Kernel, Overlap, RowKernel


def _row_pointers(i: WindowInstruction) -> int:
    """Return the bytes of a window's row pointers, 0 where it is low enough to keep them aside."""
    return 8 * i.kernel_height if i.kernel_height > MAX_ROWS else 0


def _in_place(i: WindowInstruction) -> tuple[tuple[str, str], ...]:
    """Allow y on x where no output lands on what a later output still reads."""
    window = i.window
    if window.output[0] * window.output[1] > window.size[0] * window.size[1]:
        return ()
    firsts = [_first_inside(window, axis) for axis in (0, 1)]
    reads = (firsts[0][:, None] * window.size[1] + firsts[1]).reshape(-1)
    later = np.minimum.accumulate(reads[::-1])[::-1][1:]
    return (("y", "x"),) if bool(np.all(later > np.arange(later.size))) else ()


def _row_overlap(i: MaxPool | AveragePool) -> tuple[Overlap, ...]:
    """Let a row of y lie over one of x: one pixel is made after the other."""
    pixel = i.channels * i.x.type.dtype.nbytes
    return (Overlap("y", "x", *within_rows(i, 1, pixel, pixel)),)


def _accepts_mve(i: MaxPool) -> str:
    if accepts_bytes(i):
        return accepts_bytes(i)
    return f"the window is taller than {MAX_ROWS} rows" if i.kernel_height > MAX_ROWS else ""


def _accepts_f32(i: MaxPool) -> str:
    return "" if i.x.type.dtype is dtypes.F32 else "is for float32"


def _accepts_indices(i: MaxPool) -> str:
    return _accepts_f32(i) if i.indices is not None else "is for indices"


def _of_maxima(*kernels: Kernel) -> tuple[Kernel, ...]:
    """Return kernels that find maxima, not where they are, and may do so in place."""

    def limited(kernel: Kernel) -> Kernel:
        def accepts(i: MaxPool) -> str:
            return kernel.accepts(i) if i.indices is None else "finds no indices"

        return replace(kernel, accepts=accepts, in_place=_in_place)

    return tuple(map(limited, kernels))


def _mve_cycles(i: MaxPool) -> float:
    taps_ = i.kernel_height * i.kernel_width
    return i.pixels * (-(-i.channels // 16) * (9.0 * taps_ + 12) + 40)


def _sums(i: AveragePool) -> int:
    return 4 * i.out_width * i.channels


def _first_inside(window: Window, axis: int) -> Array:
    """Return the first row (or column) of the image that each window reads, huge where none."""
    starts = np.arange(window.output[axis]) * window.strides[axis] - window.pads[axis]
    places = starts[:, None] + np.arange(window.kernel[axis]) * window.dilations[axis]
    outside = (places < 0) | (places >= window.size[axis])
    first: Array = np.where(outside, 1 << 40, places).min(axis=1)
    return first


def counts(window: Window, counted: tuple[int, int, int, int]) -> Array:
    """Return [H', W']: how many taps of each window lie in the image or in its counted padding."""
    found = []
    for axis in (0, 1):
        starts = np.arange(window.output[axis]) * window.strides[axis] - window.pads[axis]
        places = starts[:, None] + np.arange(window.kernel[axis]) * window.dilations[axis]
        high = window.size[axis] + counted[axis + 2]
        found.append(((places >= -counted[axis]) & (places < high)).sum(axis=1))
    return np.outer(found[0], found[1])


class MaxPool(WindowInstruction):
    """y = max of the taps inside the image, NHWC; NaN stays; integers of x and y mean the same.

    indices       of float32: the place of each maximum in NCHW order, the first of equals; then
                  every window has a tap inside the image, and there is no NaN
    column_major  of indices; 1: the place counts down columns first (ONNX storage_order)
    """

    y: Out
    indices: Out | None = None
    x: In
    channels: int
    column_major: int | None = None

    kernels = (
        *_of_maxima(
            Kernel(
                "gm_max_pool_s8_mve",
                requires=MVE,
                folder="arm_mve",
                accepts=_accepts_mve,
                core=True,
                cycles=_mve_cycles,
                flash=lambda _: 500,
                row=RowKernel("gm_max_pool_s8_mve_rows", overlap=_row_overlap),
            ),
            *MAXIMUM_DSP,
            *for_type(dtypes.I16, Kernel("gm_max_pool_s16", core=True, scratch=_row_pointers)),
            Kernel(
                "gm_max_pool_s8",
                accepts=accepts_bytes,
                core=True,
                scratch=_row_pointers,
                row=RowKernel("gm_max_pool_s8_rows", overlap=_row_overlap),
            ),
            Kernel(
                "gm_max_pool_f32",
                accepts=_accepts_f32,
                core=True,
                scratch=_row_pointers,
                row=RowKernel("gm_max_pool_f32_rows", overlap=_row_overlap),
            ),
        ),
        Kernel("gm_max_pool_indices_f32", core=True, accepts=_accepts_indices),
    )

    def roles(self) -> dict[str, str]:
        """Kernels of maxima alone take no pointer for indices."""
        found = super().roles()
        if self.indices is None:
            del found["indices"]
        return found

    def reference(self, x: Array) -> Array | tuple[Array, Array]:
        if self.indices is not None:
            return max_and_places(x, self.window, column_major=bool(self.column_major))
        lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
        found = [v for _, _, v in taps(x, self.window, lowest)]
        y: Array = np.maximum.reduce(found)
        return y


def max_and_places(x: Array, window: Window, *, column_major: bool) -> tuple[Array, Array]:
    """Return maxima over NHWC x and their places in [batch][channels][height][width]."""
    h, w, channels = x.shape[1:]
    rows, cols = np.indices((h, w))
    plane = (cols * h + rows if column_major else rows * w + cols)[None, :, :, None]
    images = np.arange(x.shape[0])[:, None, None, None] * channels + np.arange(channels)
    places = images * h * w + np.broadcast_to(plane, x.shape)
    values = np.stack([v for _, _, v in taps(x, window, -np.inf)])
    found = np.stack([v for _, _, v in taps(places, window, -1)])
    y = values.max(axis=0)  # NaN where there is one
    same = (values == y) | ((values != values) & (y != y))
    best = ((found >= 0) & same).argmax(axis=0)[None]
    return y, np.take_along_axis(found, best, 0)[0].astype(np.int64)


class AveragePool(WindowInstruction):
    """y = sum of the taps inside the image / taps that count, NHWC; integers are requantized.

    count_...   the padding that counts
    multiplier  of integers, it divides: one for every number of taps that can count, or only one;
                they are summed from `fill` on, the zero point of x
    """

    y: Out
    x: In
    multiplier: In | None = None
    channels: int
    count_top: int
    count_left: int
    count_bottom: int
    count_right: int
    multipliers: int | None = None
    fill: int | None = None
    shift: int | None = None
    zero_point: int | None = None
    low: int | None = None
    high: int | None = None

    kernels = (
        *for_type(
            dtypes.I8,
            *(replace(k, in_place=_in_place) for k in AVERAGE_DSP),
            Kernel(
                "gm_average_pool_s8",
                core=True,
                scratch=_row_pointers,
                in_place=_in_place,
                row=RowKernel("gm_average_pool_s8_rows", overlap=_row_overlap),
                scan=RowKernel("gm_average_pool_s8_scan", scratch=_sums),
            ),
        ),
        *for_type(
            dtypes.I16,
            Kernel("gm_average_pool_s16", core=True, scratch=_row_pointers, in_place=_in_place),
        ),
        *for_type(
            dtypes.F32,
            Kernel(
                "gm_average_pool_f32",
                core=True,
                scratch=_row_pointers,
                in_place=_in_place,
                row=RowKernel("gm_average_pool_f32_rows", overlap=_row_overlap),
                scan=RowKernel("gm_average_pool_f32_scan", scratch=_sums),
            ),
        ),
    )

    def roles(self) -> dict[str, str]:
        """Kernels of float take no pointer for multipliers."""
        found = super().roles()
        if self.multiplier is None:
            del found["multiplier"]
        return found

    def counted(self) -> Array:
        """Return how many taps of each window count."""
        sides = (self.count_top, self.count_left, self.count_bottom, self.count_right)
        return counts(self.window, sides)

    def by_rows(self) -> Self:
        """An average over a whole image takes it for one long row: go back to its rows."""
        h, w = self.x.type.shape[1:3]
        if (self.height, self.kernel_width, self.out_width) != (1, h * w, 1):
            return self
        return replace(self, height=h, width=w, kernel_height=h, kernel_width=w)

    def at_row(self, row: int) -> Self | None:
        """The same for one row: padding above and below the rows that it sees still counts."""
        one = super().at_row(row)
        if one is None:
            return None
        low = max(row * self.stride_height - self.pad_top, 0)
        return replace(
            self,
            height=one.height,
            out_height=1,
            pad_top=one.pad_top,
            count_top=self.count_top + low,
            count_bottom=self.height + self.count_bottom - low - one.height,
        )

    def reference(self, x: Array, *constants: Array) -> Array:
        zero = np.float32(0) if x.dtype.kind == "f" else np.int64(0)
        return self.complete(self._added(np.asarray(zero), x), *constants)

    def partial(self, sums: Array, x: Array, row: int, *constants: Any) -> Array:
        return replace(self, height=1, kernel_height=1, pad_top=0)._added(sums, x)

    def _added(self, sums: Array, x: Array) -> Array:
        fill = self.fill or 0
        found = [v - fill for _, _, v in taps(x.astype(sums.dtype), self.window, fill)]
        return np.asarray(sum(found, sums), sums.dtype)

    def complete(self, sums: Array, *constants: Any) -> Array:
        counted = self.counted()
        if not constants:
            return np.asarray(sums / counted[..., None], np.float32)
        assert self.shift is not None and self.zero_point is not None
        assert self.low is not None and self.high is not None
        index = counted - 1 if self.multipliers != 1 else np.zeros(1, int)
        m, total = constants[0][index][..., None], sums.astype(np.int64)
        return requantize(total, m, self.shift, self.zero_point, self.low, self.high, average=True)
