"""Tensors side by side: runs of each in turn, as a concatenation along an inner axis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np

from glowmcu.core.types import Array
from glowmcu.instr.instruction import Ins, Instruction, Out, RowWindow
from glowmcu.targets.kernel import Kernel, Overlap

Ints = tuple[int, ...]


class Interleave(Instruction):
    """y is, `outer` times, a run of each x.

    runs        elements of a run of each x
    descending  1: from the last run to the first
    """

    y: Out
    xs: Ins
    outer: int
    runs: Ints
    descending: int = 1

    kernels = (
        Kernel(
            "gm_interleave",
            template="interleave.c.j2",
            view=lambda i: _view(i),
            overlap=lambda i: _overlap(i),
            turned=lambda i: replace(i, descending=1 - i.descending),
            cycles=lambda i: i.outer * sum(0.6 * n + 16 for n in _sizes(i)) + 20,
        ),
    )

    def reference(self, xs: list[Array]) -> Array:
        return np.concatenate([x.reshape(self.outer, -1) for x in xs], 1)

    def windows(self) -> Mapping[str, RowWindow]:
        """A row makes a row, where all are images of one height."""
        shape = self.y.type.shape
        heights = [x.type.shape[1:2] for x in self.xs if x.type.rank == len(shape)]
        if len(shape) != 4 or heights != [shape[1:2]] * len(self.xs):
            return {}
        if any(x.root.kind == "constant" for x in self.xs):
            return {}
        return {f"xs{n}": RowWindow() for n in range(len(self.xs))}

    def at_row(self, row: int) -> Interleave | None:
        if not self.windows():
            return None
        return replace(self, outer=self.y.type.numel // self.y.type.shape[1] // sum(self.runs))


def _sizes(i: Interleave) -> list[int]:
    return [n * i.y.type.dtype.nbytes for n in i.runs]


def _view(i: Interleave) -> Mapping[str, Any]:
    starts = accumulate(i.runs, initial=0)
    names = [f"x{n}" for n in range(len(i.runs))]
    parts = list(zip(names, i.runs, starts, strict=False))
    return {
        "type": i.y.type.dtype.c,
        "size": i.y.type.dtype.nbytes,
        "outer": i.outer,
        "all": sum(i.runs),
        "descending": i.descending,
        "names": names,
        "parts": parts[::-1] if i.descending else parts,
    }


def _overlap(i: Interleave) -> tuple[Overlap, ...]:
    """Let y lie over one x: a run is read before what is written reaches it."""
    sizes = _sizes(i)
    whole = sum(sizes)
    starts = list(accumulate(sizes, initial=0))[:-1]
    parts = list(zip(sizes, starts, strict=True))
    low, high = -i.outer * whole, i.outer * max(sizes)
    if i.descending:
        high = max(max(0, size - start) for size, start in parts)
    else:
        low = min(-((i.outer - 1) * (whole - size) + start + size) for size, start in parts)
    return (Overlap("y", "xs", low, high),)
