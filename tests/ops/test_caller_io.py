"""Every example of every card on tensors that stay in the caller's memory: plan, numpy and C."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from test_examples import CASES, FLAGS, FLOAT_TOLERANCE, assert_close, network

from glowmcu.core.types import Array
from glowmcu.emit.emitter import ModelInfo, emit
from glowmcu.emit.unit import CodeUnit
from glowmcu.instr.evaluate import evaluate
from glowmcu.instr.function import Function
from glowmcu.instr.verify import verify
from glowmcu.lowering.lower import lower
from glowmcu.lowering.outside import leave_tensors_outside
from glowmcu.lowering.select import select_kernels
from glowmcu.memory import FUNCTION_PASSES
from glowmcu.memory.check import check
from glowmcu.memory.lifetime import dead_ranges
from glowmcu.memory.plan import plan
from glowmcu.ops.base import Op
from glowmcu.options import Options
from glowmcu.targets.target import target
from glowmcu.verify.host import HostLibrary, build_library

IN_C = CASES[::6]
PER_LIBRARY = 40


@cache
def lowered(name: str, index: int) -> tuple[Function, dict[str, Array]]:
    graph, feeds = network(Op.registry[name], Op.registry[name].examples[index], "one")
    function = leave_tensors_outside(lower(graph, graph.nodes(), "one"))
    function = select_kernels(function, target("host"))
    for item in FUNCTION_PASSES:
        function = item.run(function)
        verify(function)
    return function, feeds


@cache
def unit_of(number: int) -> CodeUnit:
    name, index = IN_C[number]
    function, _ = lowered(name, index)
    options = Options(name=f"caller_{number}", specialize="none")
    return emit(function, plan(function), target("host"), options, ModelInfo(name))


@cache
def library(start: int) -> object:
    numbers = range(start, min(start + PER_LIBRARY, len(IN_C)))
    return build_library([unit_of(n) for n in numbers], flags=tuple(FLAGS))


@pytest.mark.parametrize(("name", "index"), CASES)
def test_nothing_of_the_caller_is_in_the_arena(name: str, index: int) -> None:
    function, feeds = lowered(name, index)
    layout = plan(function)
    check(function, layout)
    given = {b.name for b in (*function.inputs, *function.outputs)}
    assert {b.name for b in layout.outside} <= given
    assert all(b.root.kind in ("argument", "result") for b in function.inputs + function.outputs)

    def poison(number: int, memory: Array) -> None:
        for start, stop in dead_ranges(function, layout, number):
            memory[start:stop] = 0xA5

    expected = evaluate(function, feeds)
    got = evaluate(function, feeds, layout.offsets, layout.extent, before=poison)
    for output, array in expected.items():
        np.testing.assert_array_equal(got[output], array)


@pytest.mark.cc
@pytest.mark.parametrize("number", range(len(IN_C)))
def test_c_computes_in_the_memory_of_the_caller(
    number: int, capfd: pytest.CaptureFixture[str]
) -> None:
    function, feeds = lowered(*IN_C[number])
    built = library(number // PER_LIBRARY * PER_LIBRARY)
    host = HostLibrary(unit_of(number), library=built)  # type: ignore[arg-type]
    expected, got = evaluate(function, feeds), host.run(feeds)
    for output, array in expected.items():
        assert_close(got[output], array, 0, FLOAT_TOLERANCE)
    assert "runtime error" not in capfd.readouterr().err
