"""The order of instructions: the same results, never more memory, optimal where all are tried."""

from __future__ import annotations

import random
from functools import cache

import numpy as np
import pytest
from random_functions import WIDEN, Mix, Reverse, Twist, Widen, random_feeds, random_function, u8

from glowmcu.core.order import best_order
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.evaluate import evaluate
from glowmcu.instr.function import Function
from glowmcu.instr.instruction import Instruction
from glowmcu.instr.verify import verify
from glowmcu.memory.plan import plan
from glowmcu.memory.reorder import reorder, steps_of
from glowmcu.memory.share import share_in_place


def tree(seed: int, count: int) -> Function:
    """Return instructions that read earlier results, in place or wider, some with scratch."""
    chance = random.Random(seed)
    inputs = tuple(Buffer(f"x{n}", u8(4 * chance.randint(1, 8)), "input") for n in range(2))
    values, instructions = list(inputs), []
    for number in range(count):
        x = chance.choice(values[-4:])
        same = [v for v in values if v.nbytes == x.nbytes]
        scratch = None
        if chance.random() < 0.4:
            scratch = Buffer(f"s{number}", u8(4 * chance.randint(1, 12)), "scratch")
        kind = chance.choice([Twist, Reverse, Mix, Widen])
        size = 2 * x.nbytes if kind is Widen else x.nbytes
        y = Buffer(f"y{number}", u8(size), "activation")
        if kind is Mix:
            made: Instruction = Mix(y=y, a=x, b=chance.choice(same), scratch=scratch)
        else:
            kernel = WIDEN if kind is Widen else None
            made = kind(y=y, x=x, kernel=kernel, scratch=scratch)
        instructions.append(made)
        values.append(y)
    read = {b for i in instructions for b in i.inputs()}
    ends = tuple(v for v in values if v not in read and v not in inputs)
    return Function("f", inputs, ends, tuple(b.name for b in ends), tuple(instructions))


def room(y: Buffer, x: Buffer, instruction: Instruction) -> int:
    """Return the least bytes that a result and a dying operand take, by trying every distance."""
    exact = (
        any(
            o.buffer is x and ("y", o.field) in instruction.shares() for o in instruction.operands()
        )
        and y.nbytes <= x.nbytes
    )
    found = []
    for distance in range(-y.nbytes, x.nbytes + 1):
        apart = distance in (-y.nbytes, x.nbytes)
        promised = any(not o.low < distance < o.high for o in instruction.overlaps())
        if apart or promised or (exact and distance == 0):
            found.append(max(x.nbytes, distance + y.nbytes) - min(0, distance))
    return min(found)


def least_peak(function: Function) -> int:
    """Return the least peak over all orders, from sets of instructions that have run."""
    instructions = function.instructions
    maker = {i.outputs()[0]: n for n, i in enumerate(instructions)}
    readers = {
        b: {n for n, i in enumerate(instructions) if b in i.inputs()}
        for b in (*function.inputs, *maker)
    }

    def is_live(buffer: Buffer, done: frozenset[int]) -> bool:
        is_made = maker.get(buffer, -1) in done or buffer in function.inputs
        return is_made and (buffer in function.outputs or bool(readers[buffer] - done))

    @cache
    def peak(done: frozenset[int]) -> int:
        live = [b for b in readers if is_live(b, done)]
        best = sum(b.nbytes for b in live) if len(done) == len(instructions) else 1 << 30
        for n, i in enumerate(instructions):
            if n in done or any(maker.get(b, -1) not in {*done, -1} for b in i.inputs()):
                continue
            after = done | {n}
            (y,) = i.outputs()
            dying = {b for b in i.inputs() if not is_live(b, after)}
            saved = max((y.nbytes + x.nbytes - room(y, x, i) for x in dying), default=0)
            during = sum(b.nbytes for b in live) + y.nbytes - saved
            during += i.scratch.nbytes if i.scratch else 0
            best = min(best, max(during, peak(after)))
        return best

    return peak(frozenset())


@pytest.mark.parametrize("seed", range(60))
def test_orders_are_as_good_as_the_best_of_all(seed: int) -> None:
    function = tree(seed, 4 + seed % 6)
    steps = steps_of(function)
    order = best_order(steps)
    assert steps.run(order)[0] == least_peak(function)


@pytest.mark.parametrize("seed", range(40))
def test_another_order_gives_the_same_results_in_no_more_memory(seed: int) -> None:
    function = tree(seed, 12) if seed % 2 else random_function(seed)
    changed = reorder(function)
    verify(changed)
    assert set(changed.instructions) == set(function.instructions)
    before, after = (plan(share_in_place(f), quick=True).size for f in (function, changed))
    assert after <= before
    feeds = random_feeds(function, seed)
    expected = evaluate(function, feeds)
    for name, array in evaluate(changed, feeds).items():
        np.testing.assert_array_equal(array, expected[name])


def test_some_orders_are_better_than_the_given_one() -> None:
    functions = [tree(seed, 12) for seed in range(30)]
    assert sum(reorder(function) is not function for function in functions) > 5
