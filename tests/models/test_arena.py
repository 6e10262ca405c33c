"""Arenas of real networks: golden sizes, and plans proved by poisoned evaluation and in C."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from branching_networks import squeeze, u_net

from glowmcu.core.types import Array
from glowmcu.driver import Compilation, compile_network
from glowmcu.emit.estimate import measure
from glowmcu.errors import DoesNotFitError, OptionError
from glowmcu.instr.evaluate import evaluate
from glowmcu.instr.striped import Striped, unrolled
from glowmcu.memory.check import check
from glowmcu.memory.lifetime import dead_ranges
from glowmcu.options import Options
from glowmcu.verify.host import HostLibrary

ARENAS = {
    ("kws", "size", "whole"): 3886,
    ("vww", "size", "whole"): 27756,
    ("ic", "size", "whole"): 10304,
    ("ad", "size", "whole"): 768,
    ("ww", "size", "whole"): 2992,
    ("kws", "size", "rows"): 3580,
    ("vww", "size", "rows"): 11332,
    ("ic", "size", "rows"): 9252,
    ("ww", "size", "rows"): 2596,
}
FLOAT = {"kws": 15720, "ic": 49664}
BRANCHES = {squeeze: (24608, 16600), u_net: (73736, 33900)}
"""Arenas without and with chains of rows."""
BALANCED = {"kws": 8900, "vww": 31000, "ic": 26500, "ad": 1450, "ww": 3900}
"""What a Cortex-M4 must not need more of; the kernels decide how much less it is."""


def compiled(shared: Path, name: str, **options: Any) -> Compilation:
    path = shared / "mlperf_tiny" / "models" / f"{name}_int8.onnx"
    return compile_network(path, Options(name=name, **options))


def random_feeds(compilation: Compilation, seed: int) -> dict[str, Array]:
    chance = np.random.default_rng(seed)
    return {
        s.name: chance.integers(-128, 128, s.type.shape).astype(s.type.dtype.numpy)
        for s in compilation.unit.inputs
    }


def assert_sound(compilation: Compilation) -> None:
    """Check the plan, then evaluate on it with garbage in every dead byte."""
    function, layout = compilation.function, compilation.plan
    check(function, layout)

    def poison(index: int, arena: Array) -> None:
        for start, stop in dead_ranges(function, layout, index):
            arena[start:stop] = 0xA5

    feeds = random_feeds(compilation, 0)
    expected = evaluate(unrolled(function), feeds)
    got = evaluate(function, feeds, layout.offsets, layout.extent, before=poison)
    for output, array in expected.items():
        np.testing.assert_array_equal(got[output], array)


@pytest.mark.cc
@pytest.mark.parametrize(("name", "optimize", "taken"), ARENAS)
def test_the_smallest_arena(shared: Path, name: str, optimize: str, taken: str) -> None:
    compilation = compiled(shared, name, target="cortex-m4", optimize=optimize, input=taken)
    assert compilation.plan.size == ARENAS[name, optimize, taken]
    assert_sound(compilation)
    library = HostLibrary(compilation.for_host().unit)
    feeds = random_feeds(compilation, 1)
    expected = evaluate(unrolled(compilation.function), feeds)
    for output, array in library.run(feeds).items():
        np.testing.assert_array_equal(array, expected[output])


@pytest.mark.parametrize("name", BALANCED)
def test_a_balanced_arena(shared: Path, name: str) -> None:
    compilation = compiled(shared, name, target="cortex-m4")
    assert compilation.plan.size <= BALANCED[name]
    assert_sound(compilation)


@pytest.mark.cc
@pytest.mark.parametrize("name", FLOAT)
def test_float_networks_run_by_rows_too(shared: Path, name: str) -> None:
    path = shared / "mlperf_tiny" / "models" / f"{name}_float.onnx"
    options = Options(name=name, target="cortex-m4", optimize="size")
    rows = compile_network(path, options)
    assert rows.plan.size == FLOAT[name]
    whole = compile_network(path, replace(options, stripe=False))
    assert rows.plan.size < 0.8 * whole.plan.size
    (slot,) = rows.unit.inputs
    feeds = {slot.name: np.random.default_rng(2).random(slot.type.shape, np.float32)}
    expected = HostLibrary(whole.for_host().unit).run(feeds)
    for output, array in HostLibrary(rows.for_host().unit).run(feeds).items():
        np.testing.assert_array_equal(array.view(np.int32), expected[output].view(np.int32))


@pytest.mark.cc
@pytest.mark.parametrize("network", BRANCHES, ids=lambda f: f.__name__)
def test_branches_meet_row_by_row(network: Callable[[], onnx.ModelProto]) -> None:
    model, chance = network(), np.random.default_rng(0)
    shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    samples = [{"x": chance.standard_normal(shape).astype(np.float32)} for _ in range(2)]
    options = Options(name="net", target="cortex-m4", quantize="int8")
    rows = compile_network(model, options, samples)
    whole = compile_network(model, replace(options, stripe=False), samples)
    assert (whole.plan.size, rows.plan.size) == BRANCHES[network]
    assert_sound(rows)
    feeds = random_feeds(rows, 1)
    expected = HostLibrary(whole.for_host().unit).run(feeds)
    for output, array in HostLibrary(rows.for_host().unit).run(feeds).items():
        np.testing.assert_array_equal(array, expected[output])


def test_rows_can_be_left_out(shared: Path) -> None:
    whole = compiled(shared, "kws", optimize="size", stripe=False)
    assert not any(isinstance(i, Striped) for i in whole.function.instructions)
    rows = compiled(shared, "kws", optimize="size")
    assert rows.plan.size < whole.plan.size
    feeds = random_feeds(whole, 1)
    expected = evaluate(whole.function, feeds)
    for output, array in evaluate(rows.function, feeds).items():
        np.testing.assert_array_equal(array, expected[output])


def test_a_limit_takes_the_fastest_way_within_it(shared: Path) -> None:
    loose = compiled(shared, "ic", ram_limit=40000, optimize="speed")
    tight = compiled(shared, "ic", ram_limit=20000, optimize="speed")
    assert not any(isinstance(i, Striped) for i in loose.function.instructions)
    assert 12000 < tight.plan.size <= 20000


def test_a_limit_that_nothing_meets_is_explained(shared: Path) -> None:
    with pytest.raises(DoesNotFitError) as caught:
        compiled(shared, "kws", ram_limit=3000, target="cortex-m4")
    text = str(caught.value)
    assert "smallest arena found has 3886 bytes, the limit is 3000" in text
    assert "layer 0, DepthwiseS8" in text
    assert "'rows of 320 bytes' 3200" in text
    assert "'input_1' 490" in text


def test_a_flat_input_has_no_rows(shared: Path) -> None:
    with pytest.raises(OptionError, match="not an image"):
        compiled(shared, "ad", input="rows")


@pytest.mark.cc
@pytest.mark.parametrize("name", ["kws", "ww"])
def test_rows_are_pushed_one_by_one(shared: Path, name: str) -> None:
    compilation = compiled(shared, name, input="rows")
    unit, library = compilation.unit, HostLibrary(compilation.unit)
    feeds = random_feeds(compilation, 4)
    expected = library.run(feeds)
    size = unit.arena_size
    memory = np.zeros(size + 16, np.uint8)
    arena = memory[-memory.ctypes.data % 16 :][:size]
    push, begin = (library.library[f"{name}_{f}"] for f in ("push_row", "begin"))
    push.argtypes, begin.argtypes = [ctypes.c_void_p, ctypes.c_void_p], [ctypes.c_void_p]
    rows = np.ascontiguousarray(next(iter(feeds.values()))[0])
    (slot,) = unit.outputs
    for given_up in (0, len(rows) - 2, 1, 0):
        begin(arena.ctypes.data)
        for row in rows[:given_up]:  # a frame that is not finished before the next begins
            assert push(arena.ctypes.data, row.ctypes.data) == 1
        begin(arena.ctypes.data)
        found = [push(arena.ctypes.data, row.ctypes.data) for row in rows]
        assert found == [1] * (len(rows) - 1) + [0]
        for row in rows:  # after the end, rows are refused and nothing changes
            before = arena.copy()
            assert push(arena.ctypes.data, row.ctypes.data) == -1
            np.testing.assert_array_equal(arena, before)
        got = arena[slot.offset : slot.offset + slot.type.nbytes].view(np.int8)
        np.testing.assert_array_equal(got, expected[slot.name].reshape(-1))


@pytest.mark.cross
@pytest.mark.parametrize("name", BALANCED)
def test_the_stack_is_low(shared: Path, arm_gcc: str, name: str) -> None:
    unit = compiled(shared, name, target="cortex-m4").unit
    found = max(measure(unit, optimize).stack for optimize in ("-Os", "-O3"))
    assert found <= unit.report["stack_bytes"] < 400


@pytest.mark.cross
@pytest.mark.parametrize(
    ("name", "machine", "optimize"),
    [
        ("kws", "cortex-m55", "balanced"),
        ("vww", "cortex-m55", "size"),
        ("ic", "cortex-m4", "speed"),
        ("ic", "cortex-m4", "size"),
        ("ww", "cortex-m0", "size"),
    ],
)
def test_the_stack_is_bounded(
    shared: Path, arm_gcc: str, name: str, machine: str, optimize: str
) -> None:
    unit = compiled(shared, name, target=machine, optimize=optimize).unit
    found = max(measure(unit, flag).stack for flag in ("-Os", "-O2", "-O3"))
    assert found <= unit.report["stack_bytes"] < 2 * found + 320
