"""When every buffer holds something: closed intervals of instruction indices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Function
from glowmcu.instr.loop import Loop, loop_spans, nest_of

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
    def slow_at(self) -> int:
        """The address that stands for the start of slower memory."""

    @property
    def slow_size(self) -> int:
        """Bytes of slower memory."""

    @property
    def extent(self) -> int:
        """Bytes of the arena and of what lies outside, at addresses beyond its end."""

    @property
    def lifetimes(self) -> Mapping[Buffer, tuple[int, int]]:
        """Lifetime of every root buffer."""

    @property
    def lower_bound(self) -> int:
        """Bytes below which no plan for these lifetimes is."""


def lifetimes(function: Function) -> Lifetimes:
    """Return the lifetime of every root buffer in the arena, in order of first use.

    Inputs are written by the caller at -1; outputs are read by it after the last instruction, at
    len(function.instructions); states live from the one to the other; a use of a view is a use of
    its root. What a loop shares with the outside lives through all of the loop.
    """
    return {b: span for b, span in _spans(function).items() if b.in_arena}


def outside_lifetimes(function: Function) -> Lifetimes:
    """Return the same of the caller's memory that is not in the arena."""
    return {b: span for b, span in _spans(function).items() if b.is_outside}


def _spans(function: Function) -> Lifetimes:
    found: Lifetimes = {}
    uses = [(index, b.root) for index, b in _uses(function) if b.root.kind != "constant"]
    through = ((i, root) for root, span in through_loops(function, uses) for i in span)
    for index, root in (*uses, *through):
        first, last = found.get(root, (index, index))
        found[root] = min(first, index), max(last, index)
    return found


def through_loops(
    function: Function, uses: Iterable[tuple[int, Buffer]]
) -> Iterator[tuple[Buffer, tuple[int, int]]]:
    """Yield (root, first and last instruction of a loop) for roots used in a loop and outside.

    Such a root may hold in one iteration what another one wrote, so it must live through the whole
    loop. Of loops within one another, the innermost that holds all uses is no such loop, nor are
    those around it.
    """
    spans = loop_spans(function.instructions)
    if not spans:
        return
    nests: dict[Buffer, set[tuple[Loop, ...]]] = {}
    for index, root in uses:
        inside = 0 <= index < len(function.instructions)
        nest = nest_of(function.instructions[index].loop) if inside else ()
        nests.setdefault(root, set()).add(nest)
    for root, found in nests.items():
        common = set.intersection(*(set(nest) for nest in found))
        shared = dict.fromkeys(loop for nest in found for loop in nest if loop not in common)
        yield from ((root, spans[loop]) for loop in spans if loop in shared)


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
