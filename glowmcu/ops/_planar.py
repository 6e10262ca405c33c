"""Depthwise convolution on lines of int16, one channel at a time: shapes, schedule, weights.

Four channels of some rows are spread from NHWC to lines of int16 of one channel each, where a
word holds two neighbouring pixels. Each multiply-accumulate then does two taps of a window.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from glowmcu.core.types import Array

_LEAST_SCRATCH, _MOST_SCRATCH = 768, 3072
"""Bytes of lines wanted at most, a ninth of the image between these; a tall image is made in
stripes of rows."""
_LAST_OFFSET = 4095
"""The largest immediate offset of a load or store."""
_WEIGHT_REGISTERS = 6
_TILES = 4
"""Most tiles that stand one after the other."""

Fetch = Literal["load", "smlad", "smlabb", "smlabt", "smlatb"]


@dataclass(frozen=True)
class Segment:
    """Some taps of one row of the window, whose weights fit the registers."""

    row: int
    start: int
    taps: int


@dataclass(frozen=True)
class Line:
    """One line of a tile's assembly: a load, or a product with its accumulators.

    load: register x, offset in bytes.  Products: r[into] = x * weight + r[base].
    """

    op: Fetch
    x: int
    offset: int = 0
    into: int = 0
    weight: int = 0
    base: int = 0


@dataclass(frozen=True)
class Planar:
    """The geometry of a layer; a window of one column over an image of one column lies down."""

    batch: int
    height: int
    width: int
    channels: int
    out_height: int
    out_width: int
    kernel_height: int
    kernel_width: int
    stride_height: int
    stride_width: int
    top: int
    left: int
    shift: int
    clamped: bool

    def words_of(self, segment: Segment) -> int:
        """Pairs of taps: all neighbours at odd strides, every second one at even strides."""
        if self.stride_width % 2 == 0:
            return (segment.taps + 1) // 2
        return max(segment.taps - 1, 1)

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """Rows of the window in parts of an even number of taps, the last one aside."""
        most = 12 if self.stride_width % 2 == 0 else 7
        step = most // 2 * 2
        parts: list[tuple[int, int]] = []
        start = 0
        while self.kernel_width - start > most:
            parts.append((start, step))
            start += step
        parts.append((start, self.kernel_width - start))
        return tuple(Segment(r, s, n) for r in range(self.kernel_height) for s, n in parts)

    @cached_property
    def words(self) -> int:
        """Weight words of a channel."""
        return sum(self.words_of(s) for s in self.segments)

    @property
    def held(self) -> bool:
        """True where all weights of a channel stay in registers."""
        return self.words <= _WEIGHT_REGISTERS

    @property
    def rows(self) -> int:
        """Output rows of a tile."""
        return 2 if self.held and self.kernel_height > 1 and self.out_height > 1 else 1

    @property
    def across(self) -> int:
        """Output pixels of a tile in a row."""
        return 4 // self.rows

    @property
    def pixels(self) -> int:
        """Pixels of a row that windows reach, padding aside."""
        return min(self._reach - self.left, self.width)

    @property
    def _reach(self) -> int:
        return (self.out_width - 1) * self.stride_width + self.kernel_width

    @property
    def pitch(self) -> int:
        """Values of a line, an even number; the last word of a row's last tile is whole."""
        return (self._reach + 2) // 2 * 2

    @property
    def stripe(self) -> int:
        """Output rows made from the lines at once, a multiple of `rows` if there are more."""
        image = self.batch * self.height * self.width * self.channels
        wanted = min(max(image // 9, _LEAST_SCRATCH), _MOST_SCRATCH)
        fitting = [n for n in self._stripes() if 8 * self._plane(n) <= wanted]
        return max(fitting, default=min(self._stripes()))

    def _stripes(self) -> list[int]:
        return sorted({*range(self.rows, self.out_height, self.rows), self.out_height})

    @property
    def most(self) -> int:
        """Output rows of the largest stripe: a single row at the end joins the one before."""
        n = self.stripe
        return n + 1 if self.rows == 2 and n < self.out_height and self.out_height % n == 1 else n

    def _plane(self, rows: int) -> int:
        return ((rows - 1) * self.stride_height + self.kernel_height) * self.pitch

    @property
    def plane(self) -> int:
        """Values of the lines of one channel."""
        return self._plane(self.most)

    @property
    def tiles(self) -> int:
        """Whole tiles in a row."""
        return self.out_width // self.across

    @property
    def part(self) -> int:
        """Output pixels of a row after the whole tiles."""
        return self.out_width % self.across

    @property
    def unroll(self) -> int:
        """Tiles in a round of the loop, 0 where all stand one after the other."""
        if self.tiles <= _TILES:
            return 0
        return next((n for n in (4, 3) if self.tiles % n == 0), 3)

    @property
    def rounds(self) -> int:
        """Rounds of the loop over tiles."""
        return self.tiles // self.unroll if self.unroll else 0

    @property
    def rest(self) -> int:
        """Whole tiles after the loop."""
        return self.tiles - self.rounds * self.unroll

    @property
    def step(self) -> int:
        """Bytes of a line from a tile to the next."""
        return 2 * self.across * self.stride_width

    def in_place(self) -> bool:
        """Tell whether y may be x: nothing is overwritten before it is spread to lines."""
        if self.out_height * self.out_width > self.height * self.width:
            return False
        made = 0
        while made < self.out_height:
            made = self.out_height if self.out_height - made <= self.most else made + self.stripe
            last = (made - 1) * self.stride_height - self.top + self.kernel_height
            loaded = min(max(last, 0), self.height)
            if loaded < self.height and made * self.out_width > loaded * self.width:
                return False
        return True

    def why_not(self) -> str:
        """Return why the kernel cannot do this shape, "" where it can."""
        if 3 * self.channels > _LAST_OFFSET:
            return f"is for up to {_LAST_OFFSET // 3} channels"
        if self.pixels < 1 or self.left >= self._reach:
            return "the windows see nothing but padding"
        furthest = 2 * self.pitch * ((self.rows - 1) * self.stride_height + self.kernel_height)
        tiles = max(self.unroll, self.rest + (self.part > 0)) * self.step
        if max(furthest + tiles, 8 * self._plane(self.rows) - _MOST_SCRATCH) > _LAST_OFFSET:
            return f"rows of {self.pitch} values are too long"
        return ""

    # The schedule of a tile

    def tile(self, number: int, count: int) -> list[list[Line]]:
        """Return the loads and products of `count` outputs across, by segment of weights.

        The bias lies in the last accumulator, whose first product comes last.
        """
        wanted = [(r, j) for r in range(self.rows) for j in range(count)]
        bias = self.accumulators(count)[-1]
        fresh = {r * self.across + j for r, j in wanted}
        registers = (10, 11, 14) if self.held else (10, 11)
        groups = [list(self.segments)] if self.held else [[s] for s in self.segments]
        found = []
        for group in groups:
            loads = self._loads(group, wanted)
            lines: list[Line] = []
            for at in range(0, len(loads), len(registers)):
                some = loads[at : at + len(registers)]
                for x, ((row, word), _) in zip(registers, some, strict=False):
                    offset = 2 * row * self.pitch + 4 * word + number * self.step
                    lines.append(Line("load", x, offset))
                for x, (_, products) in zip(registers, some, strict=False):
                    for op, into, weight in products:
                        base = bias if into in fresh else into
                        fresh.discard(into)
                        lines.append(Line(op, x, 0, into, weight, base))
            found.append(lines)
        return found

    def accumulators(self, count: int) -> list[int]:
        """Return the registers of a tile with `count` outputs across."""
        return [r * self.across + j for r in range(self.rows) for j in range(count)]

    def _loads(
        self, group: list[Segment], wanted: list[tuple[int, int]]
    ) -> list[tuple[tuple[int, int], list[tuple[Fetch, int, int]]]]:
        """Return ((row of the lines, word), its products) in the order of memory."""
        found: dict[tuple[int, int], list[tuple[Fetch, int, int]]] = {}
        first = 0
        for segment in group:
            for r, j in wanted:
                row = r * self.stride_height + segment.row
                for element, op, word in self._products(segment, j * self.stride_width):
                    key = (row, element // 2)
                    found.setdefault(key, []).append((op, r * self.across + j, first + word))
            first += self.words_of(segment)
        return [(key, sorted(found[key], key=lambda p: p[1])) for key in sorted(found)]

    def _products(self, segment: Segment, start: int) -> list[tuple[int, Fetch, int]]:
        """Return (value of the line, instruction, weight word) of one output's taps."""
        n, first = segment.taps, start + segment.start
        if self.stride_width % 2 == 0:
            return [(first + i, "smlad", i // 2) for i in range(0, n, 2)]
        odd = start % 2
        if n == 1:
            return [(first, "smlatb" if odd else "smlabb", 0)]
        found: list[tuple[int, Fetch, int]] = [(first, "smlatb", 0)] if odd else []
        found += [(first + i, "smlad", i) for i in range(odd, n - 1, 2)]
        if (n - odd) % 2:
            found.append((first + n - 1, "smlabt", n - 2))
        return found

    # Weights

    def pairs(self) -> list[tuple[int, int]]:
        """Return (tap, tap) of each weight word, taps numbered row by row; -1: none."""
        found = []
        for s in self.segments:
            base = s.row * self.kernel_width + s.start
            every = 2 if self.stride_width % 2 == 0 else 1
            for i in range(0, s.taps if every == 2 else max(s.taps - 1, 1), every):
                found.append((base + i, base + i + 1 if i + 1 < s.taps else -1))
        return found

    def places(self) -> list[int]:
        """Return where the weight of each tap lies in a channel's words: 2 * word + half."""
        found = [-1] * (self.kernel_height * self.kernel_width)
        for word, pair in enumerate(self.pairs()):
            for half, tap in enumerate(pair):
                if tap >= 0:
                    found[tap] = 2 * word + half
        return found

    def stream(self, weights: Array, bias: Array, multiplier: Array) -> Array:
        """Return bias, multiplier, weight words of every channel; weights: [channels, taps]."""
        taps = np.concatenate([weights, np.zeros((len(weights), 1), weights.dtype)], axis=1)
        pairs = np.asarray(self.pairs())
        lanes = taps.astype(np.int64)[:, pairs] & 0xFFFF
        words = lanes[..., 0] | lanes[..., 1] << 16
        heads = np.stack([bias, multiplier], axis=1).astype(np.int64) & 0xFFFFFFFF
        return np.concatenate([heads, words], axis=1).reshape(-1)

    # Cost

    def tile_cycles(self, count: int) -> float:
        """Return the cycles of a tile."""
        loads = sum(line.op == "load" for part in self.tile(0, count) for line in part)
        lines = sum(len(part) for part in self.tile(0, count))
        outputs = self.rows * count
        weights = 0 if self.held else self.words + len(self.segments) + 1
        work = lines + loads / (3 if self.held else 2) + weights + 4 + (3 + self.shift) * outputs
        return work + (6 * outputs if self.clamped else 0)

    def cycles(self) -> float:
        """Return the cycles of the layer."""
        row = self.tiles * self.tile_cycles(self.across) + 10 + 8 * self.rounds
        row += self.tile_cycles(self.part) if self.part else 0
        stripes = -(-self.out_height // self.stripe)
        groups = -(-self.out_height // self.rows)
        spread = self.plane * stripes * (1.2 if stripes > 1 else 1) * 2.1
        return self.batch * self.channels * (groups * row + spread + stripes * 28 + 40)

    def code_bytes(self) -> int:
        """Return the bytes of code of the layer."""
        tiles = (self.unroll if self.rounds else 0) + self.rest
        lines = sum(len(part) for part in self.tile(0, self.across))
        outputs = self.rows * self.across
        each = 4 * (lines + 4 + 3 * outputs) + (6 if self.held else 6 + 4 * len(self.segments))
        return 700 + tiles * each + (each * 2 // 3 if self.part else 0)


def planar_row(i: Any) -> Planar:
    """Return the geometry of one row of a DepthwiseS8: the rows of its window are the image."""
    upright = _planar(i, lying=False)
    return replace(upright, batch=1, height=i.kernel_height, out_height=1, top=0)


def planar(i: Any) -> Planar:
    """Return the geometry of a DepthwiseS8."""
    return _planar(i, lying=is_column(i))


def is_column(i: Any) -> bool:
    """Tell whether the image is one column, and so is the window."""
    return bool(i.width == 1 and i.kernel_width == 1 and i.out_width == 1 and i.pad_left == 0)


def _planar(i: Any, *, lying: bool) -> Planar:
    sizes = (i.height, i.width, i.out_height, i.out_width, i.kernel_height, i.kernel_width)
    height, width, out_height, out_width, kernel_height, kernel_width = sizes
    strides, pads = (i.stride_height, i.stride_width), (i.pad_top, i.pad_left)
    if lying:
        height, width, out_height, out_width = width, height, out_width, out_height
        kernel_height, kernel_width = kernel_width, kernel_height
        strides, pads = (1, strides[0]), (0, pads[0])
    return Planar(
        i.batch,
        height,
        width,
        i.channels,
        out_height,
        out_width,
        kernel_height,
        kernel_width,
        *strides,
        *pads,
        i.shift,
        (i.low, i.high) != (-128, 127),
    )
