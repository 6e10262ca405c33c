"""Tensors in the caller's memory: what the proof refuses, what sharing must not do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from random_functions import Copy, Reverse, Twist, random_feeds, random_function, u8

from glowmcu.core import dtypes
from glowmcu.core.passes import IllFormedError
from glowmcu.core.types import Array, TensorType
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.evaluate import evaluate
from glowmcu.instr.function import Function
from glowmcu.instr.verify import verify
from glowmcu.lowering.outside import leave_tensors_outside
from glowmcu.memory import FUNCTION_PASSES
from glowmcu.memory.check import check
from glowmcu.memory.lifetime import dead_ranges
from glowmcu.memory.plan import MemoryPlan, plan
from glowmcu.memory.share import eliminate_copies, share_in_place


def example() -> tuple[Function, MemoryPlan]:
    x, y = Buffer("x", u8(16), "argument"), Buffer("y", u8(16), "result")
    a, b = (Buffer(n, u8(16), "activation") for n in "ab")
    steps = (Reverse(y=a, x=x), Reverse(y=b, x=a), Reverse(y=y, x=b))
    function = Function("net", (x,), (y,), ("y",), steps)
    return function, plan(function)


def at(layout: MemoryPlan, name: str, address: int) -> MemoryPlan:
    offsets = {b: address if b.name == name else a for b, a in layout.offsets.items()}
    return replace(layout, offsets=offsets)


def test_the_arena_does_not_count_them() -> None:
    function, layout = example()
    check(function, layout)
    assert (layout.size, layout.lower_bound, layout.extent) == (32, 32, 64)
    assert {b.name: n for b, n in layout.outside.items()} == {"x": 4, "y": 4}


@pytest.mark.parametrize(
    ("name", "address", "message"),
    [
        ("y", 16, "does not lie by itself outside"),
        ("y", 32, "does not lie by itself outside"),
        ("a", 40, "leaves the arena of 32 bytes"),
    ],
)
def test_plans_that_mix_them_with_the_arena_are_refused(
    name: str, address: int, message: str
) -> None:
    function, layout = example()
    fixed = replace(at(layout, name, address))
    with pytest.raises(IllFormedError, match=message):
        check(function, fixed)


def test_an_alignment_that_is_not_asked_for_is_refused() -> None:
    x, y = Buffer("x", u8(16), "argument"), Buffer("y", u8(16), "result")
    function = Function("net", (x,), (y,), ("y",), (Reverse(y=y, x=x),))
    wide = Buffer("wide", TensorType(dtypes.I32, (4,)), "activation", base=y)
    function = replace(function, outputs=(wide,), instructions=(Reverse(y=wide, x=x),))
    layout = plan(function)
    check(function, layout)
    with pytest.raises(IllFormedError, match="not aligned to 4"):
        check(function, replace(layout, outside={b: 1 for b in layout.outside}))


def test_an_instruction_that_writes_an_input_is_refused() -> None:
    x, y = Buffer("x", u8(16), "argument"), Buffer("y", u8(16), "result")
    steps = (Reverse(y=y, x=x), Reverse(y=x, x=y), Reverse(y=y, x=x))
    function = Function("net", (x,), (y,), ("y",), steps)
    with pytest.raises(IllFormedError, match="writes the caller's"):
        verify(function)
    with pytest.raises(IllFormedError, match="writes the caller's"):
        check(function, plan(function))


def test_nothing_is_computed_in_place_of_an_input() -> None:
    x, y = Buffer("x", u8(16), "argument"), Buffer("y", u8(16), "result")
    a = Buffer("a", u8(16), "activation")
    function = Function("net", (x,), (y,), ("y",), (Twist(y=a, x=x), Twist(y=y, x=a)))
    shared = share_in_place(function)
    verify(shared)
    first, second = shared.instructions
    assert first.outputs()[0].root.name == "y" and second.inputs()[0].root.name == "y"
    assert plan(shared).size == 0


def test_a_copy_of_an_input_that_changes_stays() -> None:
    x, y = Buffer("x", u8(16), "argument"), Buffer("y", u8(16), "result")
    a, b = (Buffer(n, u8(16), "activation") for n in "ab")
    kept = (Copy(y=a, x=x), Twist(y=a, x=a), Reverse(y=y, x=a))
    function = Function("net", (x,), (y,), ("y",), kept)
    assert len(eliminate_copies(function).instructions) == 3
    read = (Copy(y=b, x=x), Twist(y=y, x=b))
    function = eliminate_copies(Function("net", (x,), (y,), ("y",), read))
    assert len(function.instructions) == 1
    assert function.instructions[0].inputs()[0].root.name == "x"


@pytest.mark.parametrize("seed", range(60))
def test_random_functions_stay_right_with_garbage_in_dead_bytes(seed: int) -> None:
    before = random_function(seed)
    function = leave_tensors_outside(before)
    for item in FUNCTION_PASSES:
        function = item.run(function)
        verify(function)
    layout = plan(function)
    check(function, layout)

    def poison(index: int, memory: Array) -> None:
        for start, stop in dead_ranges(function, layout, index):
            memory[start:stop] = 0xA5

    feeds = random_feeds(before, seed)
    got = evaluate(function, feeds, layout.offsets, layout.extent, before=poison)
    for name, array in evaluate(before, feeds).items():
        np.testing.assert_array_equal(got[name], array)
