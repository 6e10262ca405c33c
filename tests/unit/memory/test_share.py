"""The memory passes keep the meaning of functions, and save what they promise to save."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from random_functions import (
    WIDEN,
    Bump,
    Copy,
    Mix,
    Reverse,
    Shrink,
    Twist,
    Widen,
    random_feeds,
    random_function,
    u8,
)

from glowmcu.core.types import Array
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.evaluate import evaluate
from glowmcu.instr.function import Function
from glowmcu.instr.instruction import Instruction
from glowmcu.instr.verify import verify
from glowmcu.memory import FUNCTION_PASSES
from glowmcu.memory.check import check
from glowmcu.memory.direction import choose_directions
from glowmcu.memory.lifetime import dead_ranges
from glowmcu.memory.plan import plan
from glowmcu.memory.share import eliminate_copies, eliminate_dead_stores, share_in_place
from glowmcu.targets.kernel import Kernel, Overlap


def shared(function: Function) -> Function:
    for item in FUNCTION_PASSES:
        function = item.run(function)
        verify(function)
    return function


def run_planned(function: Function, feeds: dict[str, Array], align: int = 4) -> dict[str, Array]:
    """Evaluate with a checked plan, every byte that holds nothing overwritten before each step."""
    layout = plan(function, align)
    check(function, layout)

    def poison(index: int, arena: Array) -> None:
        for start, stop in dead_ranges(function, layout, index):
            arena[start:stop] = 0xA5

    return evaluate(function, feeds, layout.offsets, layout.extent, before=poison)


@pytest.mark.parametrize("block", range(8))
def test_random_functions_mean_the_same_after_each_pass_and_with_a_plan(block: int) -> None:
    for seed in range(block * 100, block * 100 + 100):
        function = random_function(seed)
        feeds = random_feeds(function, seed)
        expected = evaluate(function, feeds)
        stages = [function]
        for item in FUNCTION_PASSES:
            stages.append(item.run(stages[-1]))
        for stage in stages:
            verify(stage)
            for got in (evaluate(stage, feeds), run_planned(stage, feeds)):
                for name, array in expected.items():
                    np.testing.assert_array_equal(got[name], array, err_msg=f"{seed} {name}")


def test_passes_never_make_random_arenas_larger_on_the_whole() -> None:
    before = after = 0
    for seed in range(200):
        function = random_function(seed)
        before += plan(function).size
        after += plan(shared(function)).size
    assert after < 0.85 * before


def network(
    *instructions: Instruction, inputs: tuple[Buffer, ...], outputs: tuple[Buffer, ...]
) -> Function:
    names = tuple(f"out{n}" for n in range(len(outputs)))
    return Function("net", inputs, outputs, names, instructions)


def buffer(name: str, size: int = 16) -> Buffer:
    return Buffer(name, u8(size), "activation")


def source(size: int = 16) -> Buffer:
    return Buffer("x", u8(size), "input")


def test_dead_stores_go_and_what_they_needed_too() -> None:
    x, a, b, c = source(), buffer("a"), buffer("b"), buffer("c")
    function = network(Twist(y=a, x=x), Twist(y=b, x=a), Twist(y=c, x=x), inputs=(x,), outputs=(c,))
    assert len(eliminate_dead_stores(function).instructions) == 1


def test_a_chain_of_in_place_instructions_needs_one_buffer() -> None:
    x, a, b, c = source(), buffer("a"), buffer("b"), buffer("c")
    function = network(Twist(y=a, x=x), Twist(y=b, x=a), Twist(y=c, x=b), inputs=(x,), outputs=(c,))
    assert plan(shared(function)).size == 16


def test_an_input_that_is_also_an_output_is_not_overwritten() -> None:
    x, a = source(), buffer("a")
    function = network(Twist(y=a, x=x), inputs=(x,), outputs=(x, a))
    assert plan(shared(function)).size == 32


def test_an_operand_still_needed_through_a_view_is_not_overwritten() -> None:
    x, a, b = source(), buffer("a"), buffer("b", 4)
    part = Buffer("x.part", u8(4), "activation", None, x, 4)
    function = network(Twist(y=a, x=x), Reverse(y=b, x=part), inputs=(x,), outputs=(a, b))
    result = share_in_place(function)
    assert result.instructions[0].outputs()[0].root is not x


def test_views_follow_a_buffer_that_became_a_view() -> None:
    x, a, b = source(), buffer("a"), buffer("b", 4)
    part = Buffer("a.part", u8(4), "activation", None, a, 8)
    function = network(Twist(y=a, x=x), Reverse(y=b, x=part), inputs=(x,), outputs=(b,))
    read = share_in_place(function).instructions[1].inputs()[0]
    assert (read.root, read.root_offset) == (x, 8)


def test_both_operands_of_one_buffer_may_be_overwritten_where_both_pairs_are_declared() -> None:
    x, a = source(), buffer("a")
    function = network(Mix(y=a, a=x, b=x), inputs=(x,), outputs=(a,))
    assert plan(shared(function)).size == 16


class OverA(Mix):
    """Allows its first operand only."""

    may_share = (("y", "a"),)


def test_the_second_operand_of_the_same_buffer_must_be_declared_too() -> None:
    x, a = source(), buffer("a")
    function = network(OverA(y=a, a=x, b=x), inputs=(x,), outputs=(a,))
    assert plan(shared(function)).size == 32


def test_parts_are_computed_where_they_are_joined() -> None:
    x = source()
    a, b, whole = buffer("a"), buffer("b", 8), buffer("whole", 24)
    first = Buffer("first", u8(16), "activation", None, whole, 0)
    second = Buffer("second", u8(8), "activation", None, whole, 16)
    function = network(
        Reverse(y=a, x=x),
        Shrink(y=b, x=x),
        Copy(y=first, x=a),
        Copy(y=second, x=b),
        inputs=(x,),
        outputs=(whole,),
    )
    result = eliminate_copies(function)
    assert [type(i) for i in result.instructions] == [Reverse, Shrink]
    assert result.instructions[1].outputs()[0].root_offset == 16
    assert plan(result).size == 40


def test_one_value_joined_twice_is_copied_once() -> None:
    x, a, whole = source(), buffer("a"), buffer("whole", 32)
    parts = [Buffer(f"p{n}", u8(16), "activation", None, whole, 16 * n) for n in range(2)]
    function = network(
        Reverse(y=a, x=x),
        *(Copy(y=p, x=a) for p in parts),
        inputs=(x,),
        outputs=(whole,),
    )
    assert len(eliminate_copies(function).instructions) == 2


def test_a_copy_that_is_changed_while_the_original_lives_stays() -> None:
    x, a, y, z = source(), buffer("a"), buffer("y"), buffer("z")
    instructions = (
        Reverse(y=a, x=x),
        Copy(y=y, x=a),
        Bump(x=y, by=x),
        Mix(y=z, a=a, b=y),
    )
    kept = network(*instructions, inputs=(x,), outputs=(z,))
    assert len(eliminate_copies(kept).instructions) == 4
    dropped = network(*instructions[:3], inputs=(x,), outputs=(y,))
    assert len(eliminate_copies(dropped).instructions) == 2


def test_a_copy_of_an_input_that_is_not_changed_is_forwarded() -> None:
    x, a, y = source(), buffer("a"), buffer("y")
    function = network(Copy(y=a, x=x), Reverse(y=y, x=a), inputs=(x,), outputs=(y,))
    assert [type(i) for i in eliminate_copies(function).instructions] == [Reverse]


def test_a_smaller_result_lies_over_its_operand_and_frees_the_rest() -> None:
    x, a, b, c = source(64), buffer("a", 32), buffer("b", 16), buffer("c", 40)
    function = network(
        Shrink(y=a, x=x),
        Shrink(y=b, x=a),
        Copy(y=Buffer("c.p", u8(16), "activation", None, c, 0), x=b),
        Reverse(y=Buffer("c.q", u8(16), "activation", None, c, 16), x=b),
        inputs=(x,),
        outputs=(c, b),
    )
    layout = plan(shared(function))
    check(shared(function), plan(shared(function)))
    assert layout.size == layout.lower_bound == 64


def test_a_wider_result_trails_behind_its_operand() -> None:
    x, y = source(16), buffer("y", 32)
    function = network(Widen(y=y, x=x, kernel=WIDEN), inputs=(x,), outputs=(y,))
    layout = plan(function)
    check(function, layout)
    assert layout.size == layout.lower_bound == 32
    assert layout.offsets[x] - layout.offsets[y] == 16


DOWN = Kernel(
    "down",
    overlap=lambda i: (Overlap("y", "x", -i.y.nbytes, 0),),
    turned=lambda i: replace(i, kernel=UP),
)
UP = Kernel(
    "up",
    overlap=lambda i: (Overlap("y", "x", -i.x.nbytes, i.x.nbytes),),
    turned=lambda i: replace(i, kernel=DOWN),
)


def test_directions_alternate_where_that_saves_memory() -> None:
    x, a, y = source(32), buffer("a", 16), buffer("y", 32)
    shrink = Kernel("shrink", overlap=lambda _i: (Overlap("y", "x", 0, 32),))
    function = network(
        Shrink(y=a, x=x, kernel=shrink), Widen(y=y, x=a, kernel=UP), inputs=(x,), outputs=(y,)
    )
    assert plan(function).size == 48
    changed = choose_directions(function)
    assert changed.instructions[1].kernel is DOWN
    check(changed, plan(changed))
    assert plan(changed).size == 32
