"""Data movement as loop nests: copy between two strided regions, or fill a buffer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from glowmcu.core.types import Array
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder
from glowmcu.instr.instruction import In, Instruction, Out, RowWindow
from glowmcu.ops.copy import Copy
from glowmcu.targets.kernel import Kernel

Ints = tuple[int, ...]


def collapse(shape: Ints, *strides: Ints) -> tuple[Ints, tuple[Ints, ...]]:
    """Drop dimensions of size 1 and merge neighbours that are one run in every tensor.

    `strides` holds the strides of each tensor; the order of the elements stays.
    """
    sizes: list[int] = []
    kept: list[Ints] = []
    for size, steps in zip(shape, zip(*strides, strict=True), strict=True):
        if size == 1:
            continue
        if kept and kept[-1] == tuple(size * s for s in steps):
            sizes[-1], kept[-1] = sizes[-1] * size, steps
        else:
            sizes.append(size)
            kept.append(steps)
    return tuple(sizes), tuple(zip(*kept, strict=True)) if kept else ((),) * len(strides)


@dataclass(frozen=True)
class Move:
    """Elements y_offset + i . y_strides become those at x_offset + i . x_strides, i in shape."""

    shape: Ints
    x_strides: Ints
    y_strides: Ints
    x_offset: int = 0
    y_offset: int = 0

    def collapsed(self) -> Move:
        """Drop dimensions of size 1 and merge those that are contiguous in x and in y."""
        shape, (x_strides, y_strides) = collapse(self.shape, self.x_strides, self.y_strides)
        return Move(shape, x_strides, y_strides, self.x_offset, self.y_offset)

    @property
    def numel(self) -> int:
        """Number of elements moved."""
        return math.prod(self.shape)

    @property
    def is_contiguous(self) -> bool:
        """True where one run of elements moves to another run."""
        small = self.collapsed()
        return len(small.shape) == 0 or (small.x_strides == (1,) and small.y_strides == (1,))


def dense_strides(shape: Ints) -> Ints:
    """Return the strides, in elements, of a row-major tensor."""
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


def emit_move(b: Builder, y: Buffer, x: Buffer, move: Move) -> None:
    """Emit what moves elements of x into y: Copy for contiguous runs, else a loop nest.

    A move that leaves elements of y alone keeps them.
    """
    move = move.collapsed()
    if move.numel == 0:
        return
    if move.is_contiguous:
        size, count = y.type.dtype.nbytes, move.numel
        target = part_of(b, y, move.y_offset, count)
        source = part_of(b, x, move.x_offset, count)
        b.emit(Copy(y=target, x=source, bytes=count * size))
        return
    b.emit(
        StridedCopy(
            y=y,
            x=x,
            shape=move.shape,
            x_strides=move.x_strides,
            y_strides=move.y_strides,
            x_offset=move.x_offset,
            y_offset=move.y_offset,
        )
    )


def part_of(b: Builder, buffer: Buffer, offset: int, count: int) -> Buffer:
    """Return `count` elements of a buffer as a view, the buffer itself where that is all of it."""
    if count == buffer.type.numel:
        return buffer
    type_ = buffer.type.with_shape((count,))
    return b.view(buffer, type_, offset * buffer.type.dtype.nbytes)


def _view(i: Any) -> Mapping[str, Any]:
    move = i.move.collapsed()
    dims = list(zip(move.shape, move.x_strides, move.y_strides, strict=True))
    run = 1
    if dims and dims[-1][1:] == (1, 1):
        run = dims.pop()[0]
    return {
        "type": i.y.type.dtype.c,
        "size": i.y.type.dtype.nbytes,
        "dims": dims,
        "run": run,
        "x_offset": move.x_offset,
        "y_offset": move.y_offset,
    }


def _region(array: Array, shape: Ints, strides: Ints, offset: int) -> Array:
    """Return a strided region of a dense array as a numpy view."""
    flat = array.reshape(-1)
    spans = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
    low = offset + sum(s for s in spans if s < 0)
    high = offset + sum(s for s in spans if s > 0)
    assert 0 <= low <= high < flat.size, "a move leaves its buffer"
    return np.lib.stride_tricks.as_strided(
        flat[offset:], shape, [s * flat.itemsize for s in strides]
    )


class StridedCopy(Instruction):
    """y[y_offset + i . y_strides] = x[x_offset + i . x_strides]; the rest of y keeps its values.

    one_row  of images, only one row each
    """

    y: Out
    x: In
    shape: Ints
    x_strides: Ints
    y_strides: Ints
    x_offset: int
    y_offset: int
    one_row: bool = False

    kernels = (Kernel("gm_strided_copy", template="strided_copy.c.j2", view=_view),)

    @property
    def move(self) -> Move:
        """The attributes as one value."""
        return Move(self.shape, self.x_strides, self.y_strides, self.x_offset, self.y_offset)

    def roles(self) -> dict[str, str]:
        whole = self.one_row or self.move.numel == self.y.type.numel
        return {**super().roles(), "y": "out" if whole else "inout"}

    def windows(self) -> Mapping[str, RowWindow]:
        """A row makes a row or several, where rows are not mixed; else all of x makes each row."""
        found = self._by_rows()
        return {"x": found[1]} if found else {}

    def at_row(self, row: int) -> StridedCopy | None:
        found = self._by_rows()
        if found is None:
            return None
        move, window = found
        return replace(
            self,
            shape=move.shape,
            x_strides=move.x_strides,
            y_strides=move.y_strides,
            x_offset=move.x_offset + row * window.step // self.x.type.dtype.nbytes,
            one_row=True,
        )

    def _by_rows(self) -> tuple[Move, RowWindow] | None:
        """Return what is moved into the first row of y, and which rows of x that takes."""
        x, y = self.x.type, self.y.type
        if not x.rank == y.rank == 4 or not x.numel or self.move.numel < y.numel:
            return None
        if min(*self.x_strides, *self.y_strides, self.x_offset) < 0 or self.y_offset:
            return None
        rows, repeat = y.shape[1], max(1, y.shape[1] // x.shape[1])
        shape, steps = list(self.shape), list(zip(self.x_strides, self.y_strides, strict=True))
        outer = 0
        if repeat > 1 and len(shape) > 1 and shape[0] * repeat == rows:
            rows, outer = repeat, steps[0][0]  # what follows are the copies of a row
            del shape[0], steps[0]
        if shape[0] % rows:
            return None
        shape[0] //= rows
        x_strides, y_strides = (tuple(column) for column in zip(*steps, strict=True))
        move = Move(tuple(shape), x_strides, y_strides, self.x_offset, 0)
        step, y_step = shape[0] * x_strides[0], shape[0] * y_strides[0]
        if y_step * y.shape[1] != y.numel:
            return None
        row = x.numel // x.shape[1]
        last = sum((n - 1) * s for n, s in zip(shape, x_strides, strict=True))
        if self.x_offset + last < row and y.shape[1] == repeat * x.shape[1]:
            if (outer, step) == ((row, 0) if repeat > 1 else (0, row)):
                return move, RowWindow(repeat=repeat)
        if outer:
            return None
        return move, RowWindow(kernel=x.shape[1], stride=0, step=step * x.dtype.nbytes)

    def reference(self, *arrays: Array) -> Array:
        size = self.move.numel if self.one_row else self.y.type.numel
        y, x = (np.empty(size, arrays[-1].dtype), *arrays)[-2:]
        result = y.reshape(-1).copy()
        target = _region(result, self.shape, self.y_strides, self.y_offset)
        target[...] = _region(x, self.shape, self.x_strides, self.x_offset)
        return result


def _fill_view(i: Fill) -> Mapping[str, Any]:
    dtype = i.y.type.dtype
    stored = np.asarray(i.value, dtype.numpy).tobytes()
    return {
        "type": dtype.c,
        "size": dtype.nbytes,
        "count": i.y.type.numel,
        "byte": stored[0] if len(set(stored)) == 1 else None,
        "bits": stored[::-1].hex(),
        "value": i.value,
    }


class Fill(Instruction):
    """Every element of y = value."""

    y: Out
    value: float

    kernels = (Kernel("gm_fill", template="fill.c.j2", view=_fill_view),)

    def reference(self) -> Array:
        return np.full(self.y.type.shape, self.value, self.y.type.dtype.numpy)
