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
