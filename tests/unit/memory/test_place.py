"""Placement: recorded allocation traces, random problems against brute force, gaps in intervals."""

from __future__ import annotations

import random
import time
from itertools import permutations
from pathlib import Path

import pytest

from glowmcu.memory.place import Problem, make_problem, place, stack_height, whole_buffers


def interval_problem(sizes: list[int], spans: list[tuple[int, int]], align: int = 1) -> Problem:
    moments = [
        [j for j, (first, last) in enumerate(spans) if first <= t <= last]
        for t in {first for first, _ in spans}
    ]
    bound = max(stack_height([sizes[j] for j in live], [align] * len(live)) for live in moments)
    return make_problem(sizes, [align] * len(sizes), spans, whole_buffers(sizes, spans), bound)


def is_sound(problem: Problem, offsets: tuple[int, ...], size: int) -> bool:
    return all(
        not low < offsets[j] - offsets[i] < high
        for j, rules in enumerate(problem.rules)
        for i, low, high in rules
    ) and all(
        at >= 0 and at % align == 0 and at + n <= size
        for at, n, align in zip(offsets, problem.sizes, problem.aligns, strict=True)
    )


def brute_force(problem: Problem) -> int:
    """The least top over all orders of first fit."""
    best = sum(problem.sizes) * 2
    for order in permutations(range(len(problem.sizes))):
        at: dict[int, int] = {}
        for j in order:
            position = 0
            while any(
                i in at and low < position - at[i] < high for i, low, high in problem.rules[j]
            ):
                position += 1
            at[j] = position
        best = min(best, max(at[j] + problem.sizes[j] for j in at))
    return best


def read_traces(path: Path) -> list[tuple[str, Problem]]:
    found: list[tuple[str, Problem]] = []
    name, align, clock = "", 1, 0
    sizes: dict[str, int] = {}
    spans: dict[str, tuple[int, int]] = {}
    for line in path.read_text().splitlines():
        match line.split():
            case ["MODEL", model]:
                name, clock, sizes, spans = model, 0, {}, {}
            case ["ALIGN", number]:
                align = int(number)
            case ["ALLOC", key, size]:
                sizes[key], spans[key], clock = int(size), (clock, -1), clock + 1
            case ["FREE", key]:
                spans[key], clock = (spans[key][0], clock - 1), clock + 1
            case ["EFF", _]:
                problem = interval_problem(list(sizes.values()), list(spans.values()), align)
                found.append((name, problem))
    return found


def test_recorded_traces_are_placed_without_waste(shared: Path) -> None:
    path = shared / "reference" / "allocator_traces.txt"
    if not path.exists():
        pytest.skip("the recorded allocation traces are not there")
    traces = read_traces(path)
    start = time.perf_counter()
    results = [place(problem) for _, problem in traces]
    seconds = time.perf_counter() - start
    for (name, problem), found in zip(traces, results, strict=True):
        assert is_sound(problem, found.offsets, found.size), name
    perfect = sum(f.size == p.bound for (_, p), f in zip(traces, results, strict=True))
    assert len(traces) == 79
    assert perfect >= 78
    assert seconds < 5


@pytest.mark.parametrize("seed", range(40))
def test_random_lifetimes_are_placed_as_well_as_by_brute_force(seed: int) -> None:
    chance = random.Random(seed)
    count = chance.randrange(1, 7)
    sizes = [chance.randrange(1, 12) for _ in range(count)]
    starts = [chance.randrange(8) for _ in range(count)]
    spans = [(s, s + chance.randrange(5)) for s in starts]
    problem = interval_problem(sizes, spans)
    found = place(problem)
    assert is_sound(problem, found.offsets, found.size)
    assert problem.bound <= found.size == brute_force(problem)


@pytest.mark.parametrize("seed", range(40))
def test_random_intervals_with_gaps_are_respected(seed: int) -> None:
    chance = random.Random(seed)
    count = chance.randrange(2, 6)
    sizes = [4 * chance.randrange(1, 6) for _ in range(count)]
    gaps = {(i, j): chance.randrange(-sizes[j], sizes[i]) for j in range(count) for i in range(j)}

    def forbidden(i: int, j: int) -> list[tuple[int, int]]:
        if chance.random() < 0.3:
            return []
        if chance.random() < 0.5:
            return [(-sizes[j], sizes[i])]
        return [(-sizes[j], gaps[i, j]), (gaps[i, j], sizes[i])]

    problem = make_problem(sizes, [1] * count, [(0, 0)] * count, forbidden, max(sizes))
    found = place(problem)
    assert is_sound(problem, found.offsets, found.size)
    assert found.size <= brute_force(problem)


def cut_up(count: int, chance: random.Random, steps: int = 40, height: int = 64) -> Problem:
    """A rectangle of time and addresses cut into buffers at random: there is no slack at all."""
    pieces = [(0, steps, 0, height)]
    while len(pieces) < count:
        pieces.sort(key=lambda p: p[0] - p[1])
        a, b, c, d = pieces.pop(chance.randrange(min(3, len(pieces))))
        if chance.random() < 0.5 and b - a > 1:
            middle = chance.randrange(a + 1, b)
            pieces += [(a, middle, c, d), (middle, b, c, d)]
        elif d - c > 1:
            middle = chance.randrange(c + 1, d)
            pieces += [(a, b, c, middle), (a, b, middle, d)]
        else:
            pieces.append((a, b, c, d))
    return interval_problem([d - c for *_, c, d in pieces], [(a, b - 1) for a, b, *_ in pieces])


def test_perfect_packings_are_found_or_nearly() -> None:
    chance = random.Random(7)
    problems = [cut_up(15, chance) for _ in range(10)]
    found = [place(p).size for p in problems]
    assert all(size <= 1.1 * p.bound for p, size in zip(problems, found, strict=True))
    assert sum(size == p.bound for p, size in zip(problems, found, strict=True)) >= 9


def test_the_same_problem_has_the_same_answer() -> None:
    problem = cut_up(20, random.Random(3))
    assert place(problem) == place(problem)


def test_alignment_pads_all_but_the_top() -> None:
    problem = interval_problem([10, 40, 3], [(0, 0)] * 3, align=16)
    found = place(problem)
    assert found.size == problem.bound == 16 + 48 + 3
    assert all(at % 16 == 0 for at in found.offsets)


def test_no_buffers_need_no_bytes() -> None:
    assert place(make_problem([], [], [], lambda _i, _j: [], 0)).size == 0
