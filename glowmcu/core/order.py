"""Search for an order of steps in which the fewest bytes are live at once."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

_WIDTH = 512
_NARROWEST = 8
_BEAM_WORK = 400_000  # limits count steps tried, not seconds: the same result on every machine
_EXACT_WORK = 60_000


@dataclass(frozen=True)
class Step:
    """What runs without interruption: a node, or a chain of nodes.

    reads, writes  numbers of the tensors that go in, and of those that come out
    first          bytes written while all that is read is still there
    inner          for a chain, most bytes inside it after what it alone reads is gone
    over           (tensor that is read, bytes) that what is written may take of a tensor when this
                   step is the last that reads it
    """

    reads: tuple[int, ...]
    writes: tuple[int, ...]
    first: int
    inner: int = 0
    over: tuple[tuple[int, int], ...] = ()


_Path = tuple["_Path", int] | None
_State = tuple[int, int, int, _Path]  # peak so far, bytes live now, steps ready, steps taken


class Steps:
    """Steps, given in a valid order, and what each one does to the bytes that are live.

    Sets of steps are bits of an integer. `kept` are the tensors that live to the end; of `pairs`
    of steps the first one runs before the second one, whatever they read and write.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        sizes: Sequence[int],
        kept: frozenset[int],
        pairs: Iterable[tuple[int, int]] = (),
    ) -> None:
        self.steps = tuple(steps)
        writer = {t: n for n, step in enumerate(steps) for t in step.writes}
        readers: dict[int, int] = {}
        self.before = [0] * len(steps)
        self.after = [0] * len(steps)
        for number, step in enumerate(steps):
            for tensor in step.reads:
                readers[tensor] = readers.get(tensor, 0) | 1 << number
                if tensor in writer:
                    self.before[number] |= 1 << writer[tensor]
                    self.after[writer[tensor]] |= 1 << number
        for first, second in pairs:
            self.before[second] |= 1 << first
            self.after[first] |= 1 << second
        self.followers = [tuple(_members(mask)) for mask in self.after]
        self.live = sum(sizes[t] for t in readers.keys() - writer.keys())
        self.growth = [
            sum(sizes[t] for t in step.writes if t in kept or t in readers) for step in steps
        ]
        self.frees = [
            [(readers[t] & ~(1 << n), sizes[t]) for t in step.reads if t not in kept]
            for n, step in enumerate(steps)
        ]
        self.over = [
            [(readers[t] & ~(1 << n), size) for t, size in step.over if t not in kept]
            for n, step in enumerate(steps)
        ]
        self.floor = max((self._least(step, sizes) for step in steps), default=0)

    def _least(self, step: Step, sizes: Sequence[int]) -> int:
        saved = max((size for _, size in step.over), default=0)
        return step.first + sum(sizes[t] for t in step.reads) - saved

    def take(self, number: int, done: int, live: int) -> tuple[int, int]:
        """Return the bytes live during a step and after it; `done` are the steps before it."""
        step, remain = self.steps[number], live
        for others, size in self.frees[number]:
            if not others & ~done:
                remain -= size
        saved = max((size for others, size in self.over[number] if not others & ~done), default=0)
        during = max(live + step.first - saved, remain + step.inner)
        return during, remain + self.growth[number]

    def run(self, order: Iterable[int], done: int = 0, live: int | None = None) -> tuple[int, int]:
        """Return the most bytes live while steps run in an order, and those live after it."""
        live = self.live if live is None else live
        peak = live
        for number in order:
            during, live = self.take(number, done, live)
            done |= 1 << number
            peak = max(peak, during)
        return peak, live

    def ready_after(self, number: int, done: int) -> int:
        """Return the steps that can run for the first time after a step, the last one of `done`."""
        found = 0
        for other in self.followers[number]:
            if not self.before[other] & ~done:
                found |= 1 << other
        return found


def _members(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def best_order(steps: Steps) -> tuple[int, ...]:
    """Return an order that is never worse than the given one, and best or nearly best.

    A step that is before or after every other one cuts the problem in two. The stretches between
    such steps are searched on their own, the worst first, while that can lower the peak.
    """
    stretches = _stretches(steps)
    starts: list[tuple[int, int]] = []
    peaks: list[int] = []
    done, live = 0, steps.live
    for stretch in stretches:
        starts.append((done, live))
        peak, live = steps.run(stretch, done, live)
        peaks.append(peak)
        done |= _mask(stretch)
    settled = steps.floor
    work = [_BEAM_WORK, _EXACT_WORK]
    for number in sorted(range(len(stretches)), key=lambda n: (-peaks[n], n)):
        if peaks[number] <= settled:
            break
        search = _Search(steps, stretches[number], *starts[number], peaks[number])
        work[0] -= search.beam(work[0])
        if search.peak > settled:
            work[1] -= search.exact(work[1])
        stretches[number] = search.order
        settled = max(settled, search.peak)
    return tuple(number for stretch in stretches for number in stretch)


def _mask(numbers: Iterable[int]) -> int:
    mask = 0
    for number in numbers:
        mask |= 1 << number
    return mask


def _stretches(steps: Steps) -> list[tuple[int, ...]]:
    """Cut the steps after each one that is comparable with all others."""
    count = len(steps.steps)
    earlier, later = [0] * count, [0] * count
    for number in range(count):
        for other in _members(steps.before[number]):
            earlier[number] |= earlier[other] | 1 << other
    for number in reversed(range(count)):
        for other in _members(steps.after[number]):
            later[number] |= later[other] | 1 << other
    found: list[tuple[int, ...]] = []
    start = 0
    for number in range(count):
        if earlier[number].bit_count() + later[number].bit_count() == count - 1:
            found.append(tuple(range(start, number + 1)))
            start = number + 1
    return [*found, tuple(range(start, count))] if start < count else found


class _Search:
    """The search for an order of some steps, beginning with given steps done and bytes live.

    `order` and `peak` are the best that is known; only what is better is looked for. A state is a
    set of steps done, with the least peak that leads there.
    """

    def __init__(
        self, steps: Steps, order: tuple[int, ...], done: int, live: int, peak: int
    ) -> None:
        self.steps = steps
        self.order = order
        self.peak = peak
        self.work = 0
        self.wanted = _mask(order)
        ready = _mask(n for n in order if not steps.before[n] & ~done)
        self.start = self._free(done, (live, live, ready, None))

    def beam(self, work: int) -> int:
        """Go on, step by step, with the states of least peak and live bytes; return the work done.

        The more work is left the more states are kept.
        """
        self.work = 0
        count = len(self.order)
        levels: list[dict[int, _State]] = [{} for _ in range(count + 1)]
        base = (self.start[0] & ~self.wanted).bit_count()

        def offer(done: int, state: _State) -> None:
            level = levels[done.bit_count() - base]
            if done not in level or state[:2] < level[done][:2]:
                level[done] = state

        offer(*self.start)
        for number, level in enumerate(levels[:-1]):
            limit = self.work + max(0, work - self.work) // (count - number)
            ranked = sorted(level.items(), key=lambda item: (item[1][:2], item[0]))
            for rank, (done, state) in enumerate(ranked[:_WIDTH]):
                if rank >= _NARROWEST and self.work > limit:
                    break
                for move in self._moves(done, state):
                    offer(*move)
            level.clear()
        for state in levels[-1].values():
            self._keep(state)
        return self.work

    def exact(self, work: int) -> int:
        """Visit states by rising peak, the first complete one is optimal; return the work done."""
        self.work = 0
        done, state = self.start
        best = {done: state[0]}
        queue: list[tuple[int, int, int, int, _State]] = [(state[0], 0, 0, done, state)]
        pushed = 0
        while queue and self.work <= work:
            peak, _, _, done, state = heapq.heappop(queue)
            if done & self.wanted == self.wanted:
                self._keep(state)
                break
            if best[done] < peak:
                continue
            for next_done, next_state in self._moves(done, state):
                if next_state[0] < best.get(next_done, self.peak):
                    best[next_done] = next_state[0]
                    pushed += 1
                    entry = (next_state[0], -next_done.bit_count(), pushed, next_done, next_state)
                    heapq.heappush(queue, entry)
        return self.work

    def _keep(self, state: _State) -> None:
        self.peak, _, _, path = state
        order: list[int] = []
        while path:
            path, number = path
            order.append(number)
        self.order = tuple(reversed(order))

    def _moves(self, done: int, state: _State) -> Iterator[tuple[int, _State]]:
        """Yield what can follow a state below the best known peak."""
        peak, live, ready, _ = state
        for number in _members(ready):
            self.work += 1
            during, after = self.steps.take(number, done, live)
            if during < self.peak:
                yield self._free(*self._taken(number, done, state, max(peak, during), after))

    def _taken(
        self, number: int, done: int, state: _State, peak: int, live: int
    ) -> tuple[int, _State]:
        done |= 1 << number
        new = self.steps.ready_after(number, done) & self.wanted
        return done, (peak, live, state[2] & ~(1 << number) | new, (state[3], number))

    def _free(self, done: int, state: _State) -> tuple[int, _State]:
        """Take every step at once that raises neither the peak nor what stays live."""
        again = True
        while again:
            again = False
            for number in _members(state[2]):
                self.work += 1
                during, after = self.steps.take(number, done, state[1])
                if after <= state[1] and during <= state[0]:
                    done, state = self._taken(number, done, state, state[0], after)
                    again = True
                    break
        return done, state
