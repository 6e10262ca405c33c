"""The proof refuses plans that are wrong, and says why."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from random_functions import Mix, Reverse, Twist, random_feeds, random_function, u8

from glowmcu.core.passes import IllFormedError
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.evaluate import evaluate
from glowmcu.instr.function import Function
from glowmcu.memory import FUNCTION_PASSES
from glowmcu.memory.check import check
from glowmcu.memory.plan import MemoryPlan, plan


def two_operands() -> tuple[Function, MemoryPlan]:
    x = Buffer("x", u8(16), "input")
    a, b, y = (Buffer(n, u8(16), "activation") for n in "aby")
    scratch = Buffer("s", u8(8), "scratch")
    function = Function(
        "net",
        (x,),
        (y,),
        ("y",),
        (
            Reverse(y=a, x=x),
            Twist(y=b, x=x),
            Reverse(y=y, x=a, scratch=scratch),
            Mix(y=y, a=y, b=b),
        ),
    )
    return function, plan(function)


def moved(layout: MemoryPlan, name: str, address: int) -> MemoryPlan:
    offsets = {b: address if b.name == name else at for b, at in layout.offsets.items()}
    return replace(layout, offsets=offsets)


def address(layout: MemoryPlan, name: str) -> int:
    return next(at for b, at in layout.offsets.items() if b.name == name)


def test_a_buffer_on_a_live_one_is_refused_with_names_and_addresses() -> None:
    function, layout = two_operands()
    check(function, layout)
    bad = moved(layout, "b", address(layout, "a"))
    with pytest.raises(IllFormedError, match=r"a \[\d+, \d+\) and b \[\d+, \d+\) overlap"):
        check(function, bad)


@pytest.mark.parametrize("size", [4, 1 << 30])
def test_proofs_take_no_longer_for_large_tensors(size: int) -> None:
    x = Buffer("x", u8(size), "input")
    a, y = (Buffer(n, u8(size), "activation") for n in "ay")
    halves = tuple(
        Buffer(f"a{n}", u8(size // 2), "activation", base=a, offset=n * size // 2) for n in (0, 1)
    )
    half = Buffer("b", u8(size // 2), "activation")
    function = Function(
        "net",
        (x,),
        (y, half),
        ("y", "b"),
        (
            Twist(y=a, x=x),
            Twist(y=half, x=halves[0]),
            Twist(y=halves[0], x=halves[1]),
            Twist(y=y, x=a),
        ),
    )
    layout = plan(function)
    check(function, layout)
    before = replace(function, instructions=function.instructions[:2] + function.instructions[3:])
    check(before, layout)
    own = moved(layout, "b", address(layout, "a") + size // 2)
    with pytest.raises(IllFormedError, match="overlap"):
        check(function, own)


def test_operands_that_may_not_share_are_refused() -> None:
    x, y = Buffer("x", u8(16), "input"), Buffer("y", u8(16), "activation")
    function = Function("net", (x,), (y,), ("y",), (Reverse(y=y, x=x, name="rev"),))
    layout = plan(function)
    with pytest.raises(IllFormedError, match="Reverse 'rev' does not allow y"):
        check(function, moved(layout, "y", address(layout, "x")))


def test_scratch_over_an_operand_is_refused() -> None:
    function, layout = two_operands()
    with pytest.raises(IllFormedError, match=r"scratch s \[|and s \["):
        check(function, moved(layout, "s", address(layout, "y")))


def test_addresses_outside_the_arena_or_not_aligned_are_refused() -> None:
    function, layout = two_operands()
    with pytest.raises(IllFormedError, match="leaves the arena"):
        check(function, replace(layout, size=layout.size - 1))
    with pytest.raises(IllFormedError, match="leaves the arena"):
        check(function, moved(layout, "x", -4))
    with pytest.raises(IllFormedError, match="not aligned"):
        check(function, replace(moved(layout, "s", address(layout, "s") + 2), size=layout.size + 4))
    offsets = dict(layout.offsets)
    offsets.pop(function.inputs[0])
    with pytest.raises(IllFormedError, match="no address for x"):
        check(function, replace(layout, offsets=offsets))


def test_a_moved_buffer_is_refused_or_harmless() -> None:
    """Of every random move either the check complains, or the results are still right."""
    refused = accepted = 0
    for seed in range(150):
        function = random_function(seed)
        for item in FUNCTION_PASSES:
            function = item.run(function)
        layout = plan(function)
        feeds = random_feeds(function, seed)
        expected = evaluate(function, feeds)
        for buffer in layout.offsets:
            for delta in (-8, -4, 4, 8):
                at = layout.offsets[buffer] + delta
                bad = replace(layout, offsets={**layout.offsets, buffer: at}, size=layout.size + 8)
                try:
                    check(function, bad)
                except IllFormedError:
                    refused += 1
                    continue
                accepted += 1
                got = evaluate(function, feeds, bad.offsets, bad.size)
                for name, array in expected.items():
                    np.testing.assert_array_equal(got[name], array)
    assert refused > 100
    assert accepted > 100
