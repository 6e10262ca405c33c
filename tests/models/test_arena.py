"""Arenas of real networks: sizes that must not grow, and plans proved by poisoned evaluation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from glowmcu import frontend
from glowmcu.core.types import Array
from glowmcu.instr.evaluate import evaluate
from glowmcu.instr.function import Function
from glowmcu.instr.verify import verify
from glowmcu.lowering.lower import lower
from glowmcu.lowering.schedule import schedule
from glowmcu.lowering.select import select_kernels
from glowmcu.lowering.stack import stack_maps
from glowmcu.memory import FUNCTION_PASSES
from glowmcu.memory.check import check
from glowmcu.memory.lifetime import dead_ranges
from glowmcu.memory.plan import plan
from glowmcu.passes import GRAPH_PASSES
from glowmcu.targets.target import target

ARENAS = {"kws_int8": 9344, "vww_int8": 39216, "ic_int8": 34400, "ww_int8": 3840, "ad_int8": 768}


def lowered(path: Path) -> Function:
    graph = frontend.load(path, {}).graph
    for item in GRAPH_PASSES:
        graph = item.run(graph)
    function = lower(graph, schedule(graph), path.stem)
    return select_kernels(stack_maps(function), target("cortex-m4"))


@pytest.mark.parametrize("name", ARENAS)
def test_the_arena_is_small_and_the_plan_sound(shared: Path, name: str) -> None:
    plain = lowered(shared / "mlperf_tiny" / "models" / f"{name}.onnx")
    function = plain
    for item in FUNCTION_PASSES:
        function = item.run(function)
        verify(function)
    layout = plan(function)
    check(function, layout)
    assert layout.size <= ARENAS[name]

    def poison(index: int, arena: Array) -> None:
        for start, stop in dead_ranges(function, layout, index):
            arena[start:stop] = 0xA5

    chance = np.random.default_rng(0)
    feeds = {
        b.name: chance.integers(-128, 128, b.type.shape).astype(b.type.dtype.numpy)
        for b in plain.inputs
    }
    expected = evaluate(plain, feeds)
    got = evaluate(function, feeds, layout.offsets, layout.size, before=poison)
    for output, array in expected.items():
        np.testing.assert_array_equal(got[output], array)
