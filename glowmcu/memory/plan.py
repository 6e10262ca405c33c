"""The memory plan: an address in the arena for every root buffer, as small as we can make it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Function
from glowmcu.memory.lifetime import Lifetimes, lifetimes
from glowmcu.memory.place import Interval, make_problem, place, stack_height
from glowmcu.memory.share import may_overlap
from glowmcu.memory.uses import Places


@dataclass(frozen=True)
class MemoryPlan:
    """Where every root buffer lies.

    offsets      address of each root buffer, from the start of the arena
    size, align  bytes of the arena, and what its own address must be a multiple of
    lower_bound  most bytes live at one instruction: no plan for these lifetimes is smaller
    lifetimes    first and last instruction of each root buffer
    strategy     how the addresses were found
    """

    offsets: dict[Buffer, int]
    size: int
    align: int
    lower_bound: int
    lifetimes: Lifetimes
    strategy: str

    def address(self, buffer: Buffer) -> int:
        """Return the address of a buffer in the arena, also of a view."""
        return self.offsets[buffer.root] + buffer.root_offset


Conflicts = Callable[[Buffer, Buffer], Sequence[Interval]]
"""Open intervals in which the address of the second buffer minus that of the first must not lie."""


def plan(function: Function, align: int = 4) -> MemoryPlan:
    """Return addresses for all buffers of a function; `align` is what the target asks of each."""
    spans = lifetimes(function)
    roots = tuple(spans)
    aligns = alignments(function, align)
    conflicts = sharing_conflicts(function, spans)
    problem = make_problem(
        [b.nbytes for b in roots],
        [aligns[b] for b in roots],
        list(spans.values()),
        lambda i, j: conflicts(roots[i], roots[j]),
        lower_bound(spans, aligns, conflicts),
    )
    found = place(problem)
    return MemoryPlan(
        dict(zip(roots, found.offsets, strict=True)),
        found.size,
        max(problem.aligns, default=align),
        problem.bound,
        spans,
        found.strategy,
    )


def alignments(function: Function, align: int) -> dict[Buffer, int]:
    """Return what each root's address must be a multiple of: for its elements and the target."""
    found: dict[Buffer, int] = {}
    for buffer in function.buffers():
        root = buffer.root
        if root.kind != "constant":
            found[root] = max(found.get(root, max(align, 4)), buffer.type.dtype.nbytes)
    return found


def sharing_conflicts(function: Function, spans: Lifetimes) -> Conflicts:
    """Return the rule of whole buffers: those live together lie apart, except in place.

    Where one buffer is used for the last time by the very instruction that writes another for the
    first time, and it declares that pair, the two may also lie so that the operands coincide.
    """
    places = Places(function)

    def conflicts(a: Buffer, b: Buffer) -> tuple[Interval, ...]:
        (first_a, last_a), (first_b, last_b) = spans[a], spans[b]
        if last_a < first_b or last_b < first_a or not a.nbytes or not b.nbytes:
            return ()
        low, high = -b.nbytes, a.nbytes
        if last_a == first_b:
            distance = _in_place_distance(places, a, b, last_a)
        elif last_b == first_a:
            distance = _in_place_distance(places, b, a, last_b)
            distance = None if distance is None else -distance
        else:
            distance = None
        if distance is None:
            return ((low, high),)
        return tuple((p, q) for p, q in ((low, distance), (distance, high)) if p < q)

    return conflicts


def _in_place_distance(places: Places, old: Buffer, new: Buffer, index: int) -> int | None:
    """Return the address(new) - address(old) at which an instruction may write new over old."""
    if not 0 <= index < len(places.function.instructions):
        return None
    pairs = set(places.function.instructions[index].shares())
    reads = [use for use in places.uses[old] if use.index == index]
    writes = [use for use in places.uses[new] if use.index == index]
    for write in writes:
        for read in reads:
            distance = read.start - write.start
            if may_overlap(pairs, read, write.moved(distance)) and all(
                may_overlap(pairs, r, w.moved(distance))
                for w in writes
                for r in reads
                if r.meets(w.start + distance, w.stop + distance)
            ):
                return distance
    return None


def lower_bound(spans: Lifetimes, aligns: Mapping[Buffer, int], conflicts: Conflicts) -> int:
    """Return the most bytes live at one instruction; of an in-place pair the larger counts."""
    bound = 0
    for index in sorted({first for first, _ in spans.values()}):
        live = [b for b, (first, last) in spans.items() if first <= index <= last]
        old = [b for b in live if spans[b][1] == index]
        new = [b for b in live if spans[b][0] == index]
        covered = {
            min(a, b, key=lambda buffer: buffer.nbytes)
            for a in old
            for b in new
            if a is not b and conflicts(a, b) != ((-b.nbytes, a.nbytes),)
        }
        apart = [b for b in live if b not in covered and b.nbytes]
        height = stack_height([b.nbytes for b in apart], [aligns[b] for b in apart])
        bound = max(bound, height)
    return bound
