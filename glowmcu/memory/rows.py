"""Which bytes of a striped chain are in use when: row by row, in closed intervals of its steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from glowmcu.core.types import Array
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.striped import Interval, Striped, row_bytes


@dataclass
class _Piece:
    """Bytes of a root that hold one row from the step that writes it to the last that reads it."""

    offset: int
    nbytes: int
    birth: int
    death: int
    tensor: Buffer


@dataclass(frozen=True)
class _Pieces:
    """The pieces of one root, as columns."""

    offset: Array
    nbytes: Array
    birth: Array
    death: Array
    tensors: tuple[Buffer, ...]


class RowLives:
    """The rows of a striped chain: lives and conflicts.

    What enters is live from the start (-1), what leaves until the end (len(steps)).
    """

    def __init__(self, striped: Striped) -> None:
        self.striped = striped
        self.end = len(striped.steps)
        self._pieces = _collect(striped)
        self._known: dict[tuple[Buffer, Buffer], tuple[Interval, ...]] = {}

    def conflicts(self, a: Buffer, b: Buffer) -> tuple[Interval, ...]:
        """Return the open intervals in which address(b) - address(a) must not lie, for roots.

        Both are operands that are dead before and after, but for what enters and leaves.
        """
        if (a, b) not in self._known:
            found = self._conflicts(a, b)
            self._known[a, b] = found
            self._known[b, a] = tuple((-high, -low) for low, high in reversed(found))
        return self._known[a, b]

    def _conflicts(self, a: Buffer, b: Buffer) -> tuple[Interval, ...]:
        if a not in self._pieces or b not in self._pieces:
            return ()
        p, q = self._pieces[a], self._pieces[b]
        live = (p.birth[:, None] <= q.death[None]) & (q.birth[None] <= p.death[:, None])
        found = [*self._handed_over(p, q, live)]
        found += [(-h, -w) for w, h in self._handed_over(q, p, live.T)]
        rows, columns = np.nonzero(live)
        distance = p.offset[rows] - q.offset[columns]
        low, high = distance - q.nbytes[columns], distance + p.nbytes[rows]
        found += sorted({(int(x), int(y)) for x, y in zip(low, high, strict=True)})
        return _merged(found)

    def _handed_over(self, old: _Pieces, new: _Pieces, live: Array) -> Iterator[Interval]:
        """Yield forbidden address(new) - address(old) of rows that die as others are written.

        Their pairs are taken out of `live`.
        """
        touching = old.death[:, None] == new.birth[None]
        for r, c in zip(*np.nonzero(touching), strict=True):
            step = int(new.birth[c])
            if not 0 <= step < self.end:
                continue
            member = self.striped.members[self.striped.steps[step][0]]
            tensor = old.tensors[r]
            if new.tensors[c] is not member.y.root or member.form == "scan":
                continue
            if all(x.root is not tensor for x, _ in member.fields.values()):
                continue
            live[r, c] = False
            shift = int(old.offset[r] - new.offset[c])
            for low, high in member.forbidden(tensor):
                yield low + shift, high + shift

    def most_live(self, whole: frozenset[Buffer] = frozenset()) -> int:
        """Return the most bytes in use at one step; roots in `whole` are not counted."""
        return self.fullest(whole)[0]

    def fullest(self, whole: frozenset[Buffer] = frozenset()) -> tuple[int, int]:
        """Return the same and the step."""
        counts = np.zeros(self.end + 3, np.int64)
        for root, pieces in self._pieces.items():
            if root not in whole:
                np.add.at(counts, pieces.birth + 1, pieces.nbytes)
                np.add.at(counts, pieces.death + 2, -pieces.nbytes)
        live = np.cumsum(counts)[: self.end + 2]
        for step in range(self.end):
            live[step + 1] -= self._in_place_bytes(step)
        step = int(live.argmax())
        return int(live[step]), min(max(step - 1, 0), self.end - 1)

    def _in_place_bytes(self, step: int) -> int:
        """Return the bytes of a result that may lie over rows read for the last time."""
        index, row = self.striped.steps[step]
        member = self.striped.members[index]
        dying = 0
        full = -row_bytes(member.y)
        if not member.y.in_arena:
            return 0
        for _, x, rows in member.reads(row):
            if not x.in_arena:
                continue
            promised = member.forbidden(x.root)
            if promised != ((full, row_bytes(x)),) and member.form != "scan":
                dying += len(rows) * row_bytes(x)
        return min(dying, row_bytes(member.y))


@lru_cache(maxsize=64)
def row_lives(striped: Striped) -> RowLives:
    """Return the lives of a chain's rows, computed once."""
    return RowLives(striped)


def _collect(striped: Striped) -> dict[Buffer, _Pieces]:
    end = len(striped.steps)
    found: dict[Buffer, dict[tuple[Buffer, int, int], _Piece]] = {}
    leaving = {b.root for b in (*striped.ys, *striped.keeps())}
    for number in range(end):
        for access in striped.accesses[number]:
            root = access.holder.root
            if not root.in_arena:
                continue
            offset = access.holder.root_offset + access.offset
            # every use of scratch is a life of its own
            row = number if access.role == "scratch" else access.row
            key = (access.tensor, row, offset)
            pieces = found.setdefault(root, {})
            piece = pieces.get(key)
            if piece is None:
                birth = -1 if access.role == "in" else number
                piece = _Piece(offset, access.nbytes, birth, number, access.tensor)
                pieces[key] = piece
            piece.death = end if access.tensor in leaving else number
    return {root: _columns(list(pieces.values())) for root, pieces in found.items()}


def _columns(pieces: list[_Piece]) -> _Pieces:
    def column(name: str) -> Array:
        return np.array([getattr(p, name) for p in pieces], np.int64)

    return _Pieces(
        column("offset"),
        column("nbytes"),
        column("birth"),
        column("death"),
        tuple(p.tensor for p in pieces),
    )


def _merged(intervals: list[Interval]) -> tuple[Interval, ...]:
    """Join open intervals that overlap; those that only touch stay apart."""
    found: list[Interval] = []
    for low, high in sorted(intervals):
        if found and low < found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return tuple(found)
