"""The memory plan: an address in the arena for every root buffer, as small as we can make it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Function
from glowmcu.instr.striped import Striped
from glowmcu.memory.lifetime import Lifetimes, lifetimes, outside_lifetimes
from glowmcu.memory.place import Interval, Placement, make_problem, place, stack_height
from glowmcu.memory.rows import row_lives
from glowmcu.memory.share import Pairs, may_overlap
from glowmcu.memory.uses import Places, Use

_QUICK_TRIES = 60


@dataclass(frozen=True)
class MemoryPlan:
    """Where every root buffer lies.

    offsets      address of each root buffer, from the start of the arena; what lies elsewhere, in
                 slower memory or the caller's, has addresses beyond its end, which no other has
    size, align  bytes of the arena, and what its own address must be a multiple of
    lower_bound  most bytes live at one instruction: no plan for these lifetimes is smaller
    lifetimes    first and last instruction of each root buffer
    strategy     how the addresses were found
    outside      what the address of each of the caller's tensors must be a multiple of
    slow         bytes from the start of a second, slower memory, for what does not lie in the arena
    slow_size    bytes of that memory
    """

    offsets: dict[Buffer, int]
    size: int
    align: int
    lower_bound: int
    lifetimes: Lifetimes
    strategy: str
    outside: Mapping[Buffer, int] = field(default_factory=dict)
    slow: Mapping[Buffer, int] = field(default_factory=dict)
    slow_size: int = 0

    @property
    def total(self) -> int:
        """Bytes of the arena and of the slower memory."""
        return self.size + self.slow_size

    @property
    def slow_at(self) -> int:
        """The address that stands for the start of the slower memory."""
        return -(-self.size // self.align) * self.align

    @property
    def extent(self) -> int:
        """Bytes of the arena and of everything at addresses beyond its end."""
        ends = (self.offsets[b] + b.nbytes for b in (*self.outside, *self.slow))
        return max((self.size, *ends))

    def address(self, buffer: Buffer) -> int:
        """Return the address of a buffer in the arena, also of a view."""
        return self.offsets[buffer.root] + buffer.root_offset


Conflicts = Callable[[Buffer, Buffer], Sequence[Interval]]
"""Open intervals in which the address of the second buffer minus that of the first must not lie."""


def plan(
    function: Function,
    align: int = 4,
    *,
    quick: bool = False,
    states_at: int | None = None,
    slow: frozenset[Buffer] = frozenset(),
) -> MemoryPlan:
    """Return addresses for all buffers of a function; `align` is what the target asks of each.

    quick      a plan for comparing functions: it may be larger than need be
    states_at  where states lie one after the other, what other networks must leave alone; None:
               anywhere
    slow       roots that lie in slower memory
    """
    every, aligns = lifetimes(function), alignments(function, align)
    kept = [b for b in every if b.kind == "state" and states_at is not None]

    def placed(roots: list[Buffer]) -> tuple[dict[Buffer, int], Placement, int]:
        spans = {b: every[b] for b in roots}
        conflicts = sharing_conflicts(function, spans)
        problem = make_problem(
            [b.nbytes for b in roots],
            [aligns[b] for b in roots],
            list(spans.values()),
            lambda i, j: conflicts(roots[i], roots[j]),
            lower_bound(function, spans, aligns, conflicts),
        )
        found = place(problem, _QUICK_TRIES) if quick else place(problem)
        return dict(zip(roots, found.offsets, strict=True)), found, problem.bound

    offsets, found, bound = placed([b for b in every if b not in slow and b not in kept])
    elsewhere, second = dict[Buffer, int](), Placement((), 0, "")
    if slow:
        elsewhere, second, _ = placed([b for b in every if b in slow])
    beyond = outside_lifetimes(function)
    outside = {b: aligns[b] for b in beyond}
    states = _in_a_row(states_at or 0, {b: aligns[b] for b in kept})
    size = max((found.size, *(at + b.nbytes for b, at in states.items())))
    layout = MemoryPlan(
        offsets | states,
        size,
        max((aligns[b] for b in every), default=align),
        bound + sum(b.nbytes for b in states),
        every | beyond,
        found.strategy,
        outside,
        elsewhere,
        second.size,
    )
    start = layout.slow_at
    further = {b: start + at for b, at in elsewhere.items()}
    further |= _in_a_row(start + second.size if slow else size, outside)
    return replace(layout, offsets={**layout.offsets, **further})


def _in_a_row(start: int, aligns: Mapping[Buffer, int]) -> dict[Buffer, int]:
    """Return addresses from `start` on, one buffer after the other."""
    found: dict[Buffer, int] = {}
    for buffer, align in aligns.items():
        found[buffer] = -(-start // align) * align
        start = found[buffer] + buffer.nbytes
    return found


def alignments(function: Function, align: int) -> dict[Buffer, int]:
    """Return what each root's address must be a multiple of: for its elements and the target."""
    found: dict[Buffer, int] = {}
    for buffer in function.buffers():
        root = buffer.root
        if root.kind != "constant":
            found[root] = max(found.get(root, max(align, 4)), buffer.type.dtype.nbytes)
    return found


def sharing_conflicts(function: Function, spans: Lifetimes) -> Conflicts:
    """Return the rule of whole buffers: those live together lie apart, with one exception.

    Where one buffer is used for the last time by the very instruction that writes another for the
    first time, they may overlap as far as the instruction declares that.
    """
    places = Places(function)

    def conflicts(a: Buffer, b: Buffer) -> tuple[Interval, ...]:
        (first_a, last_a), (first_b, last_b) = spans[a], spans[b]
        if last_a < first_b or last_b < first_a or not a.nbytes or not b.nbytes:
            return ()
        first, last = max(first_a, first_b), min(last_a, last_b)
        striped = _striped(function, first) if first == last else None
        if striped is not None and not any(s < first < e for s, e in (spans[a], spans[b])):
            return row_lives(striped).conflicts(a, b)
        if last_a == first_b:
            return _handed_over(places, a, b, last_a)
        if last_b == first_a:
            return tuple((-q, -p) for p, q in reversed(_handed_over(places, b, a, last_b)))
        return ((-b.nbytes, a.nbytes),)

    return conflicts


def _handed_over(places: Places, old: Buffer, new: Buffer, index: int) -> tuple[Interval, ...]:
    """Return forbidden address(new) - address(old) where an instruction ends old and begins new."""
    low, high = -new.nbytes, old.nbytes
    if not 0 <= index < len(places.function.instructions):
        return ((low, high),)
    instruction = places.function.instructions[index]
    reads = [use for use in places.uses[old] if use.index == index]
    writes = [use for use in places.uses[new] if use.index == index]
    if len(reads) == len(writes) == 1 and (writes[0].role, reads[0].role) == ("out", "in"):
        (read,), (write,) = reads, writes
        for promise in instruction.overlaps():
            if (promise.output, promise.input) == (write.field, read.field):
                shift = read.start - write.start
                low, high = max(low, promise.low + shift), min(high, promise.high + shift)
    exact = _in_place_distance(set(instruction.shares()), reads, writes)
    if low >= high:
        return ()
    if exact is None or not low < exact < high:
        return ((low, high),)
    return (low, exact), (exact, high)


def _in_place_distance(pairs: Pairs, reads: list[Use], writes: list[Use]) -> int | None:
    """Return the distance at which every result that lies over an operand lies exactly on it."""
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


def _striped(function: Function, index: int) -> Striped | None:
    """Return the chain at an index."""
    if not 0 <= index < len(function.instructions):
        return None
    instruction = function.instructions[index]
    return instruction if isinstance(instruction, Striped) else None


def lower_bound(
    function: Function,
    spans: Lifetimes,
    aligns: Mapping[Buffer, int],
    conflicts: Conflicts,
) -> int:
    """Return the most bytes live at one instruction, in a chain of rows at one step.

    Two that may overlap count together; roots that are not among `spans` do not count.
    """
    others = frozenset(b.root for b in function.buffers()) - spans.keys()
    bound = 0
    for index in sorted({first for first, _ in spans.values()}):
        live = [b for b, (first, last) in spans.items() if first <= index <= last and b.nbytes]
        striped = _striped(function, index)
        if striped is not None:
            through = frozenset(b for b in live if spans[b][0] < index < spans[b][1])
            rows = row_lives(striped).most_live(through | others)
            bound = max(bound, rows + sum(b.nbytes for b in through))
            continue
        old = [b for b in live if spans[b][1] == index]
        new = [b for b in live if spans[b][0] == index]
        pairs = [
            (a, b)
            for a in old
            for b in new
            if a is not b and conflicts(a, b) != ((-b.nbytes, a.nbytes),)
        ]
        ordered = [sorted(pair, key=lambda buffer: buffer.nbytes) for pair in pairs]
        covered = {small for small, _ in ordered}
        sizes = {b: b.nbytes for b in live if b not in covered}
        if len(pairs) == 1:
            sizes[ordered[0][1]] = _height(*pairs[0], conflicts)
        bound = max(bound, stack_height(list(sizes.values()), [aligns[b] for b in sizes]))
    return bound


def _height(a: Buffer, b: Buffer, conflicts: Conflicts) -> int:
    """Return the least bytes that two buffers take together."""
    ends = {end for interval in conflicts(a, b) for end in interval} | {0}
    return min(
        max(a.nbytes, end + b.nbytes) - min(0, end)
        for end in ends
        if not any(low < end < high for low, high in conflicts(a, b))
    )
