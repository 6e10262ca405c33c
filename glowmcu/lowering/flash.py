"""The fastest kernels that take so many bytes of flash less: a knapsack with shared code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations

from glowmcu.instr.cost import cycles
from glowmcu.instr.instruction import Instruction
from glowmcu.targets.kernel import Kernel

Code = Callable[[Kernel, Instruction], tuple[str, int]]
"""What identifies the code of a kernel for an instruction, and its bytes; layers whose code is
identical share it."""

_MOST_SHARED = 3
_MOST_STATES = 400


@dataclass(frozen=True)
class Saving:
    """So many bytes of flash less than without a limit."""

    nbytes: int
    code: Code


@dataclass(frozen=True)
class Way:
    """One kernel for an instruction: its cycles, its packed constants, its code."""

    kernel: Kernel
    cycles: float
    packed: int
    key: str
    code: int

    @property
    def facts(self) -> tuple[object, ...]:
        """All but the kernel, by its name: instructions with the same facts are alike."""
        return (self.kernel.symbol, self.cycles, self.packed, self.key, self.code)


@dataclass(frozen=True)
class _State:
    """Kernels for some instructions: one mix of kernels after the other."""

    nbytes: int
    cycles: float
    mix: tuple[tuple[int, int], ...] = ()
    before: _State | None = None


@dataclass(frozen=True)
class _Alike:
    """Instructions for which the same kernels cost the same."""

    ways: tuple[Way, ...]
    members: tuple[int, ...]


def ways_of(instruction: Instruction, kernels: Iterable[Kernel], code: Code) -> tuple[Way, ...]:
    """Return what each kernel costs."""
    found = []
    for kernel in kernels:
        if kernel.pack:
            packed = sum(p.data.nbytes for p in kernel.pack(instruction))
        else:
            packed = sum(b.nbytes for b in instruction.inputs() if b.root.kind == "constant")
        key, size = code(kernel, instruction)
        found.append(Way(kernel, cycles(instruction, kernel), packed, key, size))
    return tuple(found)


def total(ways: Iterable[Way]) -> int:
    """Return the bytes of flash, the same code counted once."""
    taken = tuple(ways)
    return sum(w.packed for w in taken) + sum({w.key: w.code for w in taken}.values())


def fastest_within(ways: Mapping[int, tuple[Way, ...]], limit: int) -> dict[int, Way]:
    """Return for each instruction the way to go: the fewest cycles with so many bytes in total.

    Where no choice is that small, it is the one with the fewest bytes.
    """
    groups: dict[tuple[object, ...], list[int]] = {}
    for number, found in ways.items():
        groups.setdefault(tuple(w.facts for w in found), []).append(number)
    alike = [_Alike(ways[numbers[0]], tuple(numbers)) for numbers in groups.values()]
    shared = _shared(alike)
    states = []
    for common in chain.from_iterable(combinations(shared, n) for n in range(len(shared) + 1)):
        state = _search(alike, {k: shared[k] for k in common}, set(shared), limit)
        states += [state] if state is not None else []
    return _taken(alike, min(states, key=lambda s: _rank(s, limit)))


def _rank(state: _State, limit: int) -> tuple[int, float, int]:
    over = max(state.nbytes - limit, 0)
    return over, state.cycles if not over else 0.0, state.nbytes


def _shared(alike: Sequence[_Alike]) -> dict[str, int]:
    """Return the largest pieces of code that instructions which are not alike may share."""
    sizes: dict[str, int] = {}
    count: dict[str, int] = {}
    for group in alike:
        for key, size in {w.key: w.code for w in group.ways}.items():
            sizes[key] = size
            count[key] = count.get(key, 0) + 1
    several = sorted((k for k in sizes if count[k] > 1), key=lambda k: (-sizes[k], k))
    return {k: sizes[k] for k in several[:_MOST_SHARED]}


def _search(
    alike: Sequence[_Alike], common: Mapping[str, int], shared: set[str], limit: int
) -> _State | None:
    """Return the best state with the code `common`, paid once, and without the rest of `shared`."""
    frontier = [_State(sum(common.values()), 0.0)]
    for group in alike:
        usable = [n for n, w in enumerate(group.ways) if w.key not in shared or w.key in common]
        if not usable:
            return None
        mixes = _pareto(_mixes(group, usable, common))
        frontier = _pareto(
            _State(s.nbytes + m.nbytes, s.cycles + m.cycles, m.mix, s)
            for s in frontier
            for m in mixes
        )
    return min(frontier, key=lambda s: _rank(s, limit))


def _mixes(group: _Alike, usable: Sequence[int], common: Mapping[str, int]) -> Iterable[_State]:
    """Yield the costs of a group where all take one kernel, or some one and the others another."""
    count = len(group.members)
    for a in usable:
        yield _mix(group, ((a, count),), common)
    for a, b in combinations(usable, 2):
        for n in range(1, count):
            yield _mix(group, ((a, n), (b, count - n)), common)


def _mix(group: _Alike, mix: tuple[tuple[int, int], ...], common: Mapping[str, int]) -> _State:
    nbytes = sum(n * group.ways[w].packed for w, n in mix)
    code = {group.ways[w].key: group.ways[w].code for w, _ in mix}
    nbytes += sum(size for key, size in code.items() if key not in common)
    return _State(nbytes, sum(n * group.ways[w].cycles for w, n in mix), mix)


def _pareto(states: Iterable[_State]) -> list[_State]:
    """Return the states that none other beats in bytes and cycles; of very many, some."""
    kept: list[_State] = []
    for state in sorted(states, key=lambda s: (s.nbytes, s.cycles)):
        if not kept or state.cycles < kept[-1].cycles:
            kept.append(state)
    step = -(-len(kept) // _MOST_STATES)
    return kept if step <= 1 else [*kept[:-1:step], kept[-1]]


def _taken(alike: Sequence[_Alike], state: _State) -> dict[int, Way]:
    found: dict[int, Way] = {}
    at: _State | None = state
    for group in reversed(alike):
        assert at is not None
        numbers = iter(group.members)
        for way, count in at.mix:
            for _ in range(count):
                found[next(numbers)] = group.ways[way]
        at = at.before
    return found
