"""Where to put buffers: addresses for sizes and forbidden distances, whatever these mean."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

Interval = tuple[int, int]
"""An open interval (low, high) of a distance between two addresses."""

_TRIES = 2000
_WORK = 2_000_000  # rules looked at while climbing: a limit that does not depend on the machine
_EXACT_BUFFERS = 16
_EXACT_STATES = 20_000


@dataclass(frozen=True)
class Problem:
    """Buffers to place.

    sizes, aligns  bytes, and what the address must be a multiple of
    spans          lifetimes (first, last); they only guide the order in which buffers are tried
    rules          rules[j] has (i, low, high): address(j) - address(i) must not lie in (low, high)
    bound          no arena can be smaller than this
    """

    sizes: tuple[int, ...]
    aligns: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]
    rules: tuple[tuple[tuple[int, int, int], ...], ...]
    bound: int


@dataclass(frozen=True)
class Placement:
    """An address for every buffer, the bytes that takes, and how it was found."""

    offsets: tuple[int, ...]
    size: int
    strategy: str


def make_problem(
    sizes: Sequence[int],
    aligns: Sequence[int],
    spans: Sequence[tuple[int, int]],
    forbidden: Callable[[int, int], Sequence[Interval]],
    bound: int,
) -> Problem:
    """Ask `forbidden(i, j)`, i < j, for the open intervals of address(j) - address(i)."""
    rules: list[list[tuple[int, int, int]]] = [[] for _ in sizes]
    for j in range(len(sizes)):
        for i in range(j):
            for low, high in forbidden(i, j):
                rules[j].append((i, low, high))
                rules[i].append((j, -high, -low))
    return Problem(tuple(sizes), tuple(aligns), tuple(spans), tuple(map(tuple, rules)), bound)


def whole_buffers(
    sizes: Sequence[int], spans: Sequence[tuple[int, int]]
) -> Callable[[int, int], tuple[Interval, ...]]:
    """Return the plain rule: buffers whose closed lifetimes meet do not overlap."""

    def forbidden(i: int, j: int) -> tuple[Interval, ...]:
        apart = spans[i][1] < spans[j][0] or spans[j][1] < spans[i][0]
        return () if apart or not sizes[i] or not sizes[j] else ((-sizes[j], sizes[i]),)

    return forbidden


def stack_height(sizes: Sequence[int], aligns: Sequence[int]) -> int:
    """Return the least height of buffers that must all lie apart: only the top one ends ragged."""
    if not sizes:
        return 0
    step = min(aligns)
    padding = [-size % step for size in sizes]
    return sum(sizes) + sum(padding) - max(padding)


def place(problem: Problem, tries: int = _TRIES) -> Placement:
    """Return the smallest placement found: first fit in several orders, climbing, exact search.

    With fewer tries the climbing is shorter, and there is no exact search.
    """
    best: Placement | None = None
    best_order: list[int] = []
    for name, key in _keys(problem):
        order = sorted(range(len(problem.sizes)), key=lambda j: (key(j), j))
        found = _first_fit(problem, order, None if best is None else best.size - 1)
        if found:
            best, best_order = Placement(*found, f"first fit by {name}"), order
            if best.size <= problem.bound:
                return best
    assert best is not None
    best = _climb(problem, best_order, best, tries)
    few = tries == _TRIES and len(problem.sizes) <= _EXACT_BUFFERS
    if few and best.size > problem.bound:
        best = _Search(problem, best).run()
    return best


def _keys(problem: Problem) -> Iterator[tuple[str, Callable[[int], tuple[int, ...]]]]:
    size = problem.sizes
    span = [last - first + 1 for first, last in problem.spans]
    weight = [
        size[j] + sum(size[i] for i in {rule[0] for rule in problem.rules[j]})
        for j in range(len(size))
    ]
    yield "size", lambda j: (-size[j], -span[j])
    yield "size and lifetime", lambda j: (-size[j] * span[j],)
    yield "lifetime", lambda j: (-span[j], -size[j])
    yield "bytes in conflict", lambda j: (-weight[j], -size[j])
    yield "birth", lambda j: (problem.spans[j][0], -size[j])
    yield "death", lambda j: (-problem.spans[j][1], -size[j])


def _lowest(problem: Problem, j: int, at: Sequence[int]) -> int:
    """Return the lowest address for buffer j next to those that are placed (address >= 0)."""
    intervals = sorted(
        (at[i] + low, at[i] + high) for i, low, high in problem.rules[j] if at[i] >= 0
    )
    position, align = 0, problem.aligns[j]
    for low, high in intervals:
        if low >= position:
            break
        if position < high:
            position = -(-high // align) * align
    return position


def _first_fit(
    problem: Problem, order: Sequence[int], limit: int | None
) -> tuple[tuple[int, ...], int] | None:
    """Place buffers in order, each as low as it can be; None as soon as they exceed `limit`."""
    at = [-1] * len(order)
    top = 0
    for j in order:
        at[j] = _lowest(problem, j, at)
        top = max(top, at[j] + problem.sizes[j])
        if limit is not None and top > limit:
            return None
    return tuple(at), top


def _climb(problem: Problem, order: list[int], best: Placement, tries: int) -> Placement:
    """Move a buffer that reaches the top, or one in its way, to another place in the order.

    Equal results are kept too, so that the search drifts over plateaus. The generator is seeded and
    the tries are counted: the result is the same everywhere.
    """
    chance = random.Random(0)
    work = sum(map(len, problem.rules)) + len(order)
    start = best
    for number in range(1, min(tries, _WORK // max(work, 1)) + 1):
        if best.size <= problem.bound:
            break
        highest = [j for j in order if best.offsets[j] + problem.sizes[j] == best.size]
        moved = chance.choice(highest)
        if problem.rules[moved] and chance.random() < 0.5:
            moved = chance.choice(problem.rules[moved])[0]
        changed = list(order)
        index = changed.index(moved)
        changed.pop(index)
        earlier = chance.random() < 0.8
        changed.insert(chance.randrange(index + 1 if earlier else len(order)), moved)
        found = _first_fit(problem, changed, best.size)
        if found:
            order = changed
            smaller = found[1] < best.size
            best = Placement(*found, f"climbing, {number} tries" if smaller else best.strategy)
    return best if best.size < start.size else start


class _Search:
    """Branch and bound over the orders of ascending addresses.

    Without gaps in the forbidden intervals some optimal placement is first fit in the order of its
    own addresses, so the search is exact if it ends within its limit of states.
    """

    def __init__(self, problem: Problem, best: Placement) -> None:
        self.problem = problem
        self.best = best
        self.states = 0
        self.at = [-1] * len(problem.sizes)
        self.kind = [  # buffers that are alike need to be tried once only
            (problem.sizes[j], problem.aligns[j], problem.spans[j], self._others(j))
            for j in range(len(problem.sizes))
        ]

    def _others(self, j: int) -> tuple[tuple[int, int, int], ...]:
        return tuple(sorted(self.problem.rules[j]))

    def run(self) -> Placement:
        """Return the best placement found, the given one if there is no better."""
        self._extend(0, 0)
        return self.best

    def _done(self) -> bool:
        return self.best.size <= self.problem.bound or self.states > _EXACT_STATES

    def _extend(self, floor: int, top: int) -> None:
        self.states += 1
        left = [j for j, address in enumerate(self.at) if address < 0]
        if not left:
            self.best = Placement(tuple(self.at), top, "branch and bound")
            return
        lowest = {j: _lowest(self.problem, j, self.at) for j in left}
        if any(lowest[j] + self.problem.sizes[j] >= self.best.size for j in left):
            return
        tried = set()
        for j in sorted(left, key=lambda j: (lowest[j], -self.problem.sizes[j])):
            if self._done():
                return
            reached = max(top, lowest[j] + self.problem.sizes[j])
            if lowest[j] < floor or self.kind[j] in tried or reached >= self.best.size:
                continue
            tried.add(self.kind[j])
            self.at[j] = lowest[j]
            self._extend(lowest[j], reached)
            self.at[j] = -1
