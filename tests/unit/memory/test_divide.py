"""Arenas that are divided between quick and slow memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from random_functions import Mix, Reverse, random_feeds, random_function, u8

from glowmcu.core.passes import IllFormedError
from glowmcu.core.types import Array
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.evaluate import evaluate
from glowmcu.instr.function import Function
from glowmcu.memory import FUNCTION_PASSES
from glowmcu.memory.check import check
from glowmcu.memory.divide import divide
from glowmcu.memory.draw import draw_svg, draw_text
from glowmcu.memory.lifetime import dead_ranges
from glowmcu.memory.plan import MemoryPlan, plan


def example() -> tuple[Function, MemoryPlan]:
    """Return a function of which a large buffer, used twice, goes to slow memory."""
    x, y = Buffer("x", u8(16), "input"), Buffer("y", u8(16), "activation")
    a, b = (Buffer(n, u8(64), "activation") for n in "ab")
    half = Buffer("half", u8(16), "activation", base=a)
    other = Buffer("other", u8(16), "activation", base=b)
    steps = (
        Reverse(y=half, x=x),
        Reverse(y=other, x=half),
        Reverse(y=half, x=other),
        Mix(y=y, a=half, b=other),
    )
    function = Function("net", (x,), (y,), ("y",), steps)
    layout = divide(function, 4, 96)
    assert layout is not None
    return function, layout


def test_what_is_used_least_goes_to_slow_memory() -> None:
    function, layout = example()
    check(function, layout)
    assert {b.name for b in layout.slow} == {"b"} and layout.slow_size == 64
    assert layout.size <= 96 and layout.total == layout.size + 64
    assert divide(function, 4, 8) is None  # the input alone is larger
    text = draw_text(function, layout, 100)
    assert f"arena of {layout.size} bytes, then 64 of slow memory" in text
    assert "b: 64 bytes" in draw_svg(function, layout)


def test_a_buffer_outside_its_memory_is_refused() -> None:
    function, layout = example()
    (slow,) = layout.slow
    for offsets, places in (
        ({**layout.offsets, slow: 0}, layout.slow),
        ({**layout.offsets, slow: layout.offsets[slow] + 4}, layout.slow),
        (layout.offsets, {slow: 4}),
    ):
        with pytest.raises(IllFormedError, match="leaves the slow memory"):
            check(function, replace(layout, offsets=offsets, slow=places))


@pytest.mark.parametrize("seed", range(30))
def test_random_functions_stay_right_with_garbage_in_dead_bytes(seed: int) -> None:
    function = random_function(seed)
    for item in FUNCTION_PASSES:
        function = item.run(function)
    whole = plan(function)
    layout = divide(function, 4, max(4, whole.size * 2 // 3 // 4 * 4))
    if layout is None:
        return  # inputs and outputs alone need more
    check(function, layout)
    assert layout.size <= max(4, whole.size * 2 // 3)

    def poison(index: int, memory: Array) -> None:
        for start, stop in dead_ranges(function, layout, index):
            memory[start:stop] = 0xA5

    feeds = random_feeds(function, seed)
    got = evaluate(function, feeds, layout.offsets, layout.extent, before=poison)
    for name, array in evaluate(function, feeds).items():
        np.testing.assert_array_equal(got[name], array)


def test_enough_random_functions_can_be_divided() -> None:
    found = 0
    for seed in range(30):
        function = random_function(seed)
        room = max(4, plan(function, quick=True).size * 2 // 3 // 4 * 4)
        found += divide(function, 4, room) is not None
    assert found >= 10
