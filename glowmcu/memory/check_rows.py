"""Proof that the rows of a striped chain lie well, step by step, apart from the code that plans."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from glowmcu.core.passes import IllFormedError
from glowmcu.core.types import Array
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Function
from glowmcu.instr.striped import Access, Member, Striped

Address = Callable[[Buffer], int]


def check_steps(number: int, striped: Striped, address: Address) -> None:
    """Raise IllFormedError where a step lays rows over one another otherwise than declared."""
    for step, (index, _) in enumerate(striped.steps):
        member = striped.members[index]
        accesses = list(striped.accesses[step])
        for one, other in combinations(accesses, 2):
            if one.role == other.role == "in":
                continue
            a, b = _start(one, address), _start(other, address)
            if a + one.nbytes <= b or b + other.nbytes <= a:
                continue
            y, x = (one, other) if one.role == "out" else (other, one)
            if (y.role, x.role) != ("out", "in") or not _is_declared(
                member, x, _start(y, address) - _start(x, address)
            ):
                raise IllFormedError(
                    f"instruction {number}, step {step} of '{striped.name}': "
                    f"{_text(y, address)} may not lie over {_text(x, address)}"
                )


def _is_declared(member: Member, x: Access, distance: int) -> bool:
    """Tell whether every field that reads the row allows the result at this distance."""
    return all(
        not low < distance < high
        for name, (buffer, _) in member.fields.items()
        if buffer.root is x.tensor
        for low, high in member.promises[name]
    )


@dataclass
class Contents:
    """Who wrote what: in the arena, and in memory where every root lies alone.

    Memory is cut where anything begins or ends that is written or read, so that a piece between two
    cuts has one writer: an index into `writers`; 0 is nobody.
    """

    address: Address
    cuts: Array
    arena: Array
    alone: dict[Buffer, Array] = field(default_factory=dict)
    writers: list[str] = field(default_factory=lambda: [""])

    @classmethod
    def of(cls, function: Function, address: Address) -> Contents:
        """Return memory that holds nothing yet, cut for a function."""
        cuts: set[int] = set()
        for buffer in function.buffers():
            if buffer.root.kind != "constant":
                cuts |= {address(buffer), address(buffer) + buffer.nbytes}
                cuts |= {address(buffer.root), address(buffer.root) + buffer.root.nbytes}
        for instruction in function.instructions:
            if isinstance(instruction, Striped):
                for access in (a for step in instruction.accesses for a in step):
                    start = address(access.holder) + access.offset
                    cuts |= {start, start + access.nbytes}
        found = np.array(sorted(cuts), np.int64)
        return cls(address, found, np.zeros(max(0, len(found) - 1), np.int32))

    def _pieces(self, start: int, nbytes: int) -> slice:
        """Return which pieces of memory make up some bytes."""
        first, last = np.searchsorted(self.cuts, [start, start + nbytes])
        return slice(int(first), int(last))

    def _own(self, root: Buffer) -> tuple[Array, int]:
        """Return the pieces of a root where it lies alone, and which piece is its first."""
        pieces = self._pieces(self.address(root), root.nbytes)
        memory = self.alone.setdefault(root, np.zeros(pieces.stop - pieces.start, np.int32))
        return memory, pieces.start

    def write(self, buffer: Buffer, writer: str, offset: int = 0, nbytes: int = -1) -> int:
        """Write a buffer, or some bytes of it; return the mark that is left there."""
        size = buffer.nbytes if nbytes < 0 else nbytes
        pieces = self._pieces(self.address(buffer) + offset, size)
        self.writers.append(writer)
        mark = len(self.writers) - 1
        self.arena[pieces] = mark
        memory, first = self._own(buffer.root)
        memory[pieces.start - first : pieces.stop - first] = mark
        return mark

    def copy(self) -> Contents:
        """Return the state as it is now, to be compared with a later one."""
        alone = {root: memory.copy() for root, memory in self.alone.items()}
        return Contents(self.address, self.cuts, self.arena.copy(), alone, self.writers)

    def lose(self, other: Contents, reason: str) -> None:
        """Let nobody read what the other state, which is as possible, does not hold."""
        self.writers.append(reason)
        mark = len(self.writers) - 1
        for root, memory in self.alone.items():
            _, first = self._own(root)
            before = other.alone.get(root, np.zeros_like(memory))
            held = other.arena[first : first + len(memory)] == before
            memory[(memory != 0) & ~(held & (before != 0))] = mark

    def found(self, start: int, nbytes: int) -> Array:
        """Return the marks in some bytes of the arena."""
        return self.arena[self._pieces(start, nbytes)]

    def read(self, buffer: Buffer, reader: str, offset: int = 0, nbytes: int = -1) -> None:
        """Raise IllFormedError where the arena does not hold what the buffer would hold alone."""
        size = buffer.nbytes if nbytes < 0 else nbytes
        start = self.address(buffer) + offset
        pieces = self._pieces(start, size)
        memory, first = self._own(buffer.root)
        expected = memory[pieces.start - first : pieces.stop - first]
        wrong = np.flatnonzero((expected != 0) & (self.arena[pieces] != expected))
        if len(wrong):
            piece = pieces.start + wrong[0]
            by = self.writers[int(self.arena[piece])]
            where = f"{buffer.name} [{start}, {start + size})"
            byte = self.cuts[piece]
            raise IllFormedError(f"{reader} reads {where}, but byte {byte} was overwritten by {by}")


def walk_steps(number: int, striped: Striped, contents: Contents) -> None:
    """Run the marks through a chain; raise IllFormedError where a row is read that is gone."""
    kept = {b.root for b in (*striped.xs, *striped.ys)}
    marks: dict[tuple[Buffer, int], int] = {}
    for step, (_, row) in enumerate(striped.steps):
        name = f"step {step} of instruction {number} '{striped.name}'"
        for access in striped.accesses[step]:
            place = (access.holder, name, access.offset, access.nbytes)
            key = (access.tensor, access.row)
            if access.role == "in" or (access.role == "sums" and row > 0):
                if access.tensor not in kept:
                    start = _start(access, contents.address)
                    found = contents.found(start, access.nbytes)
                    if np.any(found != marks[key]):
                        raise IllFormedError(
                            f"{name} reads {_text(access, contents.address)}, which was "
                            f"overwritten by {contents.writers[int(found[found != marks[key]][0])]}"
                        )
                else:
                    contents.read(*place)
            if access.role != "in":
                marks[key] = contents.write(*place)


def _start(access: Access, address: Address) -> int:
    return address(access.holder) + access.offset


def _text(access: Access, address: Address) -> str:
    start = _start(access, address)
    return f"row {access.row} of {access.tensor.name} [{start}, {start + access.nbytes})"
