"""When every buffer holds something: closed intervals of instruction indices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Function

Lifetimes = dict[Buffer, tuple[int, int]]
"""First and last instruction that uses a root buffer, both included."""


class Plan(Protocol):
    """What this room needs to know of a memory plan."""

    @property
    def offsets(self) -> Mapping[Buffer, int]:
        """Address of every root buffer."""

    @property
    def size(self) -> int:
        """Bytes of the arena."""

    @property
    def extent(self) -> int:
        """Bytes of the arena and of what lies outside, at addresses beyond its end."""

    @property
    def lifetimes(self) -> Mapping[Buffer, tuple[int, int]]:
        """Lifetime of every root buffer."""


def lifetimes(function: Function) -> Lifetimes:
    """Return the lifetime of every root buffer in the arena, in order of first use.

    Inputs are written by the caller at -1; outputs are read by it after the last instruction, at
    len(function.instructions); states live from the one to the other; a use of a view is a use of
    its root.
    """
    return {b: span for b, span in _spans(function).items() if b.in_arena}


def outside_lifetimes(function: Function) -> Lifetimes:
    """Return the same of the caller's memory that is not in the arena."""
    return {b: span for b, span in _spans(function).items() if b.is_outside}


def _spans(function: Function) -> Lifetimes:
    found: Lifetimes = {}
    for index, buffer in _uses(function):
        root = buffer.root
        if root.kind != "constant":
            first, last = found.get(root, (index, index))
            found[root] = min(first, index), max(last, index)
    return found


def _uses(function: Function) -> Iterator[tuple[int, Buffer]]:
    yield from ((-1, b) for b in function.given)
    for index, instruction in enumerate(function.instructions):
        yield from ((index, o.buffer) for o in instruction.operands())
        if instruction.scratch is not None:
            yield index, instruction.scratch
        if instruction.guard is not None:
            yield index, instruction.guard.condition
    yield from ((len(function.instructions), b) for b in function.kept)


def dead_ranges(function: Function, plan: Plan, index: int) -> tuple[tuple[int, int], ...]:
    """Return the [start, stop) byte ranges that hold nothing before an instruction.

    That includes what instruction `index` is going to write, and its scratch, in the arena and in
    the caller's memory.
    """
    if not 0 <= index <= len(function.instructions):
        raise IndexError(f"{function.name} has no instruction {index}")
    live = sorted(
        (plan.offsets[b], plan.offsets[b] + b.nbytes)
        for b, (first, last) in plan.lifetimes.items()
        if first < index <= last
    )
    dead: list[tuple[int, int]] = []
    position = 0
    for start, stop in live:
        if start > position:
            dead.append((position, start))
        position = max(position, stop)
    if position < plan.extent:
        dead.append((position, plan.extent))
    return tuple(dead)
