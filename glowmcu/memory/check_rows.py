"""Proof that the rows of a striped chain lie well, step by step, apart from the code that plans."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from glowmcu.core.passes import IllFormedError
from glowmcu.core.types import Array
from glowmcu.instr.buffer import Buffer
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
    """Who wrote each byte: in the arena, and in memory where every root lies alone.

    Bytes hold indices into `writers`; 0 is nobody.
    """

    address: Address
    arena: Array
    alone: dict[Buffer, Array] = field(default_factory=dict)
    writers: list[str] = field(default_factory=lambda: [""])

    def own(self, buffer: Buffer) -> Array:
        """Return the bytes of a buffer where its root lies alone."""
        memory = self.alone.setdefault(buffer.root, np.zeros(buffer.root.nbytes, np.int32))
        return memory[buffer.root_offset : buffer.root_offset + buffer.nbytes]

    def write(self, buffer: Buffer, writer: str, offset: int = 0, nbytes: int = -1) -> int:
        """Write a buffer, or some bytes of it; return the mark that is left there."""
        size = buffer.nbytes if nbytes < 0 else nbytes
        start = self.address(buffer) + offset
        self.writers.append(writer)
        mark = len(self.writers) - 1
        self.arena[start : start + size] = mark
        self.own(buffer)[offset : offset + size] = mark
        return mark

    def copy(self) -> Contents:
        """Return the state as it is now, to be compared with a later one."""
        alone = {root: memory.copy() for root, memory in self.alone.items()}
        return Contents(self.address, self.arena.copy(), alone, self.writers)

    def lose(self, other: Contents, reason: str) -> None:
        """Let nobody read what the other state, which is as possible, does not hold."""
        self.writers.append(reason)
        mark = len(self.writers) - 1
        for root, memory in self.alone.items():
            start = self.address(root)
            before = other.alone.get(root, np.zeros_like(memory))
            held = other.arena[start : start + root.nbytes] == before
            memory[(memory != 0) & ~(held & (before != 0))] = mark

    def read(self, buffer: Buffer, reader: str, offset: int = 0, nbytes: int = -1) -> None:
        """Raise IllFormedError where the arena does not hold what the buffer would hold alone."""
        size = buffer.nbytes if nbytes < 0 else nbytes
        start = self.address(buffer) + offset
        expected = self.own(buffer)[offset : offset + size]
        wrong = np.flatnonzero((expected != 0) & (self.arena[start : start + size] != expected))
        if len(wrong):
            by = self.writers[int(self.arena[start + wrong[0]])]
            where = f"{buffer.name} [{start}, {start + size})"
            byte = start + wrong[0]
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
                    found = contents.arena[start : start + access.nbytes]
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
