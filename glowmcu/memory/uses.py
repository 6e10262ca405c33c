"""Who uses which bytes when, kept up to date while root buffers are moved into one another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Function
from glowmcu.memory.lifetime import through_loops

Spot = tuple[Buffer, int]
"""A root buffer and bytes from its start."""
THROUGH = "through"
"""The field of a use that only says that a root lives through a loop."""


@dataclass(frozen=True)
class Use:
    """Instruction `index` uses bytes [start, stop) of a root, in an operand field in a role.

    The caller writes inputs at -1 and reads outputs at len(instructions). What lives through a loop
    is read by its first and by its last instruction.
    """

    index: int
    start: int
    stop: int
    field: str
    role: str

    def moved(self, offset: int) -> Use:
        """Return the use as seen from the root that this one has been moved into."""
        return replace(self, start=self.start + offset, stop=self.stop + offset)

    def meets(self, start: int, stop: int) -> bool:
        """Tell whether the use touches bytes [start, stop)."""
        return self.start < stop and start < self.stop


@dataclass(frozen=True)
class Move:
    """Root buffer `root` becomes a view, `offset` bytes into root buffer `into`."""

    root: Buffer
    into: Buffer
    offset: int


class Places:
    """The roots of a function, their uses, and the bytes that are live at every instruction."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.uses: dict[Buffer, list[Use]] = {}
        self._home: dict[Buffer, Spot] = {}
        self._align: dict[Buffer, int] = {}
        for buffer, use in _uses(function):
            self.uses.setdefault(buffer.root, []).append(use)
        indices = [(use.index, root) for root, uses in self.uses.items() for use in uses]
        for root, span in through_loops(function, indices):
            start = min(use.start for use in self.uses[root])
            stop = max(use.stop for use in self.uses[root])
            self.uses[root] += [Use(index, start, stop, THROUGH, "in") for index in span]
        for buffer in function.buffers():
            root = buffer.root
            self._align[root] = max(self._align.get(root, 1), buffer.type.dtype.nbytes)
        self.live = [0] * (len(function.instructions) + 2)
        for root in self.uses:
            self._add(_arena_bytes(root), *self.span(root))

    def where(self, buffer: Buffer) -> Spot:
        """Return the root in which a buffer lies by now, and how far in."""
        root, offset = buffer.root, buffer.root_offset
        while root in self._home:
            root, further = self._home[root]
            offset += further
        return root, offset

    def span(self, root: Buffer) -> tuple[int, int]:
        """Return the first and the last use of a root."""
        indices = [use.index for use in self.uses[root]]
        return min(indices), max(indices)

    def moves(self, one: Buffer, other: Buffer) -> Iterator[Move]:
        """Yield the ways to put both buffers at one address by moving one's root into the other's.

        Only memory that belongs to nobody outside can move, and only to where it fits and keeps the
        alignment of its elements. What moves into an argument must only be read from there on.
        """
        (a, in_a), (b, in_b) = self.where(one), self.where(other)
        if a is b or "constant" in (a.kind, b.kind):
            return
        for move in (Move(a, b, in_b - in_a), Move(b, a, in_a - in_b)):
            fits = 0 <= move.offset <= move.into.nbytes - move.root.nbytes
            if fits and move.root.kind == "activation" and not move.offset % self._align[move.root]:
                yield move

    def around(self, move: Move) -> tuple[list[Use], list[Use]]:
        """Return the uses of the root to move, and those of the bytes it would come to cover."""
        stop = move.offset + move.root.nbytes
        mine = [use.moved(move.offset) for use in self.uses[move.root]]
        return mine, [use for use in self.uses[move.into] if use.meets(move.offset, stop)]

    def peaks(self, move: Move) -> tuple[int, int]:
        """Return the most bytes live while either root is, before and after a move."""
        first, last = self._hull(move)
        before = self.live[first + 1 : last + 2]
        after = list(before)
        start, stop = self.span(move.root)
        for index in range(start, stop + 1):
            after[index - first] -= _arena_bytes(move.root)
        start, stop = self.span(move.into)
        for index in (*range(first, start), *range(stop + 1, last + 1)):
            after[index - first] += _arena_bytes(move.into)
        return max(before), max(after)

    def merge(self, move: Move) -> None:
        """Carry out a move."""
        self._add(-_arena_bytes(move.root), *self.span(move.root))
        self._add(-_arena_bytes(move.into), *self.span(move.into))
        self.uses[move.into] += [use.moved(move.offset) for use in self.uses.pop(move.root)]
        self._home[move.root] = move.into, move.offset
        self._align[move.into] = max(self._align[move.into], self._align[move.root])
        self._add(_arena_bytes(move.into), *self.span(move.into))

    def forget(self, index: int) -> None:
        """Drop the uses of an instruction that is going to be removed."""
        for root, uses in self.uses.items():
            if any(use.index == index and use.field != THROUGH for use in uses):
                first, last = self.span(root)
                uses[:] = [u for u in uses if u.index != index or u.field == THROUGH]
                self._add(-_arena_bytes(root), first, last)
                if uses:
                    self._add(_arena_bytes(root), *self.span(root))

    def rebuild(self, function: Function) -> Function:
        """Return the function with every moved root, and every view of it, in its new place."""
        mapping: dict[Buffer, Buffer] = {}

        def placed(buffer: Buffer) -> Buffer:
            if buffer not in mapping:
                mapping[buffer] = buffer
                if buffer.base is not None:
                    base = placed(buffer.base)
                    if base is not buffer.base:
                        mapping[buffer] = replace(buffer, base=base)
                elif buffer in self._home:
                    root, offset = self.where(buffer)
                    mapping[buffer] = replace(buffer, base=root, offset=offset)
            return mapping[buffer]

        for buffer in function.buffers():
            placed(buffer)
        return function.with_buffers(mapping)

    def _hull(self, move: Move) -> tuple[int, int]:
        (a, b), (c, d) = self.span(move.root), self.span(move.into)
        return min(a, c), max(b, d)

    def _add(self, size: int, first: int, last: int) -> None:
        for index in range(first + 1, last + 2):
            self.live[index] += size


def _arena_bytes(root: Buffer) -> int:
    return root.nbytes if root.in_arena else 0


def _uses(function: Function) -> Iterator[tuple[Buffer, Use]]:
    """Yield every use of memory that is not constant, with offsets inside the root."""

    def use(index: int, buffer: Buffer, field: str, role: str) -> tuple[Buffer, Use]:
        start = buffer.root_offset
        return buffer, Use(index, start, start + buffer.nbytes, field, role)

    for buffer in function.given:
        yield use(-1, buffer, "", "out")
    for index, instruction in enumerate(function.instructions):
        for operand in instruction.operands():
            if operand.buffer.root.kind != "constant":
                yield use(index, operand.buffer, operand.field, operand.role)
        if instruction.scratch is not None:
            yield use(index, instruction.scratch, "", "out")
        if instruction.guard is not None:
            yield use(index, instruction.guard.condition, "", "in")
    for buffer in function.kept:
        yield use(len(function.instructions), buffer, "", "in")
