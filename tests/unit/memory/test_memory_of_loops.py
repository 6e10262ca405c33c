"""Loops keep their meaning through the memory passes and on planned, poisoned arenas."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from random_functions import Bump, Copy, Reverse, Twist, random_feeds, u8
from random_loops import random_loops

from glowmcu.core import dtypes
from glowmcu.core.passes import IllFormedError
from glowmcu.core.types import Array, TensorType
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.evaluate import evaluate
from glowmcu.instr.function import Function
from glowmcu.instr.instruction import Instruction
from glowmcu.instr.loop import Loop, loop_spans
from glowmcu.instr.loop_head import LoopHead
from glowmcu.instr.verify import verify
from glowmcu.memory import FUNCTION_PASSES
from glowmcu.memory.check import check
from glowmcu.memory.lifetime import dead_ranges, lifetimes
from glowmcu.memory.plan import MemoryPlan, plan


def run_poisoned(
    function: Function, layout: MemoryPlan, feeds: dict[str, Array]
) -> dict[str, Array]:
    def poison(index: int, arena: Array) -> None:
        for start, stop in dead_ranges(function, layout, index):
            arena[start:stop] = 0xA5

    return evaluate(function, feeds, layout.offsets, layout.size, before=poison)


@pytest.mark.parametrize("block", range(6))
def test_random_loops_mean_the_same_after_each_pass_and_with_a_plan(block: int) -> None:
    for seed in range(block * 25, block * 25 + 25):
        function = random_loops(seed)
        feeds = random_feeds(function, seed)
        expected = evaluate(function, feeds)
        stages = [function]
        for item in FUNCTION_PASSES:
            stages.append(item.run(stages[-1]))
        for stage in stages:
            verify(stage)
            layout = plan(stage, quick=True)
            check(stage, layout)
            for got in (evaluate(stage, feeds), run_poisoned(stage, layout, feeds)):
                for name, array in expected.items():
                    np.testing.assert_array_equal(got[name], array, err_msg=f"{seed} {name}")


def test_random_loops_are_loops() -> None:
    found = [loop_spans(random_loops(seed).instructions) for seed in range(60)]
    assert all(found)
    assert any(loop.outer is not None for spans in found for loop in spans)


def test_passes_make_random_loops_smaller_on_the_whole() -> None:
    before = after = copies = 0
    for seed in range(60):
        function = random_loops(seed)
        before += plan(function, quick=True).size
        copies += len(function.instructions)
        for item in FUNCTION_PASSES:
            function = item.run(function)
        after += plan(function, quick=True).size
        copies -= len(function.instructions)
    assert after < 0.85 * before
    assert copies > 300


def value(name: str, size: int = 8) -> Buffer:
    return Buffer(name, u8(size), "activation")


def counting(**changes: Buffer) -> tuple[Function, dict[str, Buffer]]:
    """Return a loop that reads `kept` from outside, carries `state`, and writes `local` last."""
    x = Buffer("x", u8(8), "input")
    b = {name: value(name) for name in ("kept", "state", "inner", "local")}
    b |= {"number": Buffer("number", TensorType(dtypes.I32, ()), "activation"), "x": x} | changes
    loop = Loop("loop", 3)
    inside: list[Instruction] = [
        LoopHead(y=b["number"], name="head"),
        Twist(y=b["inner"], x=b["kept"], name="first"),
        Bump(x=b["state"], by=b["inner"], name="carry"),
        Reverse(y=b["local"], x=b["kept"], name="last"),
    ]
    instructions = (
        Twist(y=b["kept"], x=x, name="outer"),
        Copy(y=b["state"], x=x, name="init"),
        *(replace(i, loop=loop) for i in inside),  # type: ignore[type-var]
        Twist(y=value("y"), x=b["state"], name="after"),
    )
    y = instructions[-1].outputs()[0]
    return Function("counting", (x,), (y,), ("y",), instructions), b


def test_what_a_loop_shares_with_the_outside_lives_through_it() -> None:
    function, b = counting()
    spans = lifetimes(function)
    assert spans[b["kept"]] == (0, 5)
    assert spans[b["state"]] == (1, 6)
    assert spans[b["inner"]] == (3, 4)
    assert spans[b["local"]] == (5, 5)
    layout = plan(function)
    check(function, layout)


@pytest.mark.parametrize(
    ("one", "other"),
    [("inner", "kept"), ("local", "kept"), ("local", "state"), ("number", "state")],
)
def test_the_check_refuses_what_the_next_turn_would_miss(one: str, other: str) -> None:
    function, b = counting()
    layout = plan(function)
    offsets = {**layout.offsets, b[one]: layout.offsets[b[other]]}
    with pytest.raises(IllFormedError, match=r"both in use|does not allow|was overwritten by"):
        check(function, replace(layout, offsets=offsets))


def test_results_of_a_loop_that_makes_no_turn_are_not_read() -> None:
    function, b = counting()
    after = replace(function.instructions[-1], x=b["local"])  # type: ignore[call-arg]
    changed = replace(function, instructions=(*function.instructions[:-1], after))
    with pytest.raises(IllFormedError, match="reads local before it is written"):
        verify(changed)


@pytest.mark.parametrize(("drop", "message"), [(2, "has no head"), (None, "is interrupted")])
def test_loops_are_whole(drop: int | None, message: str) -> None:
    function, _ = counting()
    instructions = list(function.instructions)
    if drop is None:
        instructions[3] = replace(instructions[3], loop=None)  # type: ignore[type-var]
    else:
        del instructions[drop]
    with pytest.raises(IllFormedError, match=message):
        verify(replace(function, instructions=tuple(instructions)))
