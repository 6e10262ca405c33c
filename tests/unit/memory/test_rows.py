"""Chains that run row by row give the bits of whole layers: in numpy on the planned arena, in C."""

from __future__ import annotations

import html
import random
from dataclasses import replace

import numpy as np
import pytest
from random_images import random_function

from glowmcu.core.passes import IllFormedError
from glowmcu.core.types import Array
from glowmcu.emit.emitter import emit
from glowmcu.emit.unit import ModelInfo
from glowmcu.instr.evaluate import evaluate
from glowmcu.instr.function import Function
from glowmcu.instr.instruction import Instruction
from glowmcu.instr.printer import dump
from glowmcu.instr.striped import Striped, unrolled
from glowmcu.instr.verify import verify
from glowmcu.memory.chain import Chain, Offered, make_striped
from glowmcu.memory.check import check
from glowmcu.memory.draw import draw_svg, draw_text
from glowmcu.memory.plan import MemoryPlan, plan
from glowmcu.options import Options
from glowmcu.targets.board import board
from glowmcu.targets.kernel import Kernel
from glowmcu.targets.target import target
from glowmcu.verify.board import run_all_on_board
from glowmcu.verify.host import HostLibrary


def offered(kernel: Kernel, instruction: Instruction) -> bool:
    return not kernel.requires and not kernel.accepts(instruction)


def with_fpu(kernel: Kernel, instruction: Instruction) -> bool:
    return kernel.requires <= {"arm-fpu"} and not kernel.accepts(instruction)


def striped(function: Function, seed: int, usable: Offered = offered) -> Function:
    """Return the function with a random chain of it, most often the longest, run row by row."""
    chance = random.Random(seed)
    count = len(function.instructions)
    ranges = [(a, z) for a in range(count) for z in range(a + 1, count + 1)]
    chance.shuffle(ranges)
    if chance.random() < 0.7:
        ranges.sort(key=lambda r: r[0] - r[1])
    descending, lean = chance.random() < 0.3, chance.random() < 0.5
    for first, last in ranges:
        chain = Chain(function, first, last)
        for down in (descending, False):
            found = make_striped(chain, usable, 4, descending=down, lean=lean)
            if found is not None:
                before, after = function.instructions[:first], function.instructions[last:]
                return replace(function, instructions=(*before, found, *after))
    return function


def feeds(function: Function, seed: int) -> dict[str, Array]:
    chance = np.random.default_rng(seed)
    return {
        b.name: chance.standard_normal(b.type.shape).astype(np.float32)
        if b.type.dtype.is_float
        else chance.integers(-128, 128, b.type.shape, np.int8)
        for b in function.inputs
    }


@pytest.mark.parametrize("seed", range(40))
def test_rows_give_the_bits_of_whole_layers(seed: int) -> None:
    function = random_function(seed)
    assert_rows_give_the_bits(function, striped(function, seed), seed)


def assert_rows_give_the_bits(function: Function, changed: Function, seed: int) -> None:
    verify(changed)
    layout = plan(changed, 4)
    check(changed, layout)
    assert layout.size >= layout.lower_bound
    expected = evaluate(function, feeds(function, seed))
    got = evaluate(changed, feeds(function, seed), layout.offsets, layout.size)
    for name, array in expected.items():
        np.testing.assert_array_equal(got[name], array)


@pytest.mark.parametrize("seed", range(500, 540))
def test_rows_of_branches_give_the_bits_of_whole_layers(seed: int) -> None:
    function = random_function(seed, branches=True)
    assert_rows_give_the_bits(function, striped(function, seed), seed)


@pytest.mark.cc
@pytest.mark.parametrize("seed", [*range(100, 118), *range(500, 512)])
def test_rows_in_c_give_the_bits_of_whole_layers(seed: int) -> None:
    function = random_function(seed, branches=seed >= 500)
    changed = striped(function, seed)
    layout = plan(changed, 4)
    options = Options(name="net", specialize="all" if seed % 2 else "none")
    library = HostLibrary(emit(changed, layout, target("host"), options, ModelInfo("net")))
    for number in range(3):
        expected = evaluate(function, feeds(function, number))
        got = library.run(feeds(function, number))
        for name, array in expected.items():
            np.testing.assert_array_equal(got[name], array)


@pytest.mark.cc
@pytest.mark.parametrize("seed", range(300, 318))
def test_float_rows_in_c_give_the_bits_of_whole_layers(seed: int) -> None:
    function = random_function(seed, real=True)
    changed = striped(function, seed)
    layout = plan(changed, 4)
    check(changed, layout)
    options = Options(name="net", specialize="all" if seed % 2 else "none")
    whole, rows = (
        HostLibrary(emit(f, at, target("host"), options, ModelInfo("net")))
        for f, at in ((function, plan(function, 4)), (changed, layout))
    )
    for number in range(3):
        given = feeds(function, number)
        expected, by_rows = whole.run(given), rows.run(given)
        numpy = evaluate(changed, given, layout.offsets, layout.size)
        for name, array in expected.items():
            np.testing.assert_array_equal(by_rows[name].view(np.int32), array.view(np.int32))
            np.testing.assert_allclose(numpy[name], array, rtol=1e-3, atol=1e-3)


@pytest.mark.qemu
def test_float_rows_with_an_fpu_give_the_bits_of_whole_layers(qemu: None) -> None:
    machine = target("cortex-m4")
    units, given = [], []
    for seed in (300, 301, 305, 306, 329, 332):
        function = random_function(seed, real=True, machine="cortex-m4")
        for number, one in enumerate((function, striped(function, seed, with_fpu))):
            options = Options(name=f"net{seed}_{number}", target="cortex-m4")
            info = ModelInfo(options.name)
            units.append(emit(one, plan(one, 4), machine, options, info))
            given.append([feeds(function, seed)])
    files = {file for unit in units for file in unit.files}
    assert files >= {"gm_conv2d_f32_fpu_rows.h", "gm_depthwise_f32_fpu_rows.h"}
    runs = run_all_on_board(units, board("mps2-an386"), given, optimize="-O2", timeout=120)
    found = [run.outputs[0] for run in runs]
    for whole, rows in zip(found[::2], found[1::2], strict=True):
        for name, array in whole.items():
            np.testing.assert_array_equal(rows[name].view(np.int32), array.view(np.int32))


def test_members_can_be_taken_out_of_their_chain() -> None:
    function = random_function(3)
    changed = striped(function, 3)
    again = unrolled(changed)
    assert len(again.instructions) == len(function.instructions)
    expected = evaluate(function, feeds(function, 1))
    for name, array in evaluate(again, feeds(function, 1)).items():
        np.testing.assert_array_equal(array, expected[name])


def with_a_pool() -> tuple[Function, MemoryPlan, Striped]:
    """Return a function with a chain that has a pool of rows."""
    for seed in range(200, 240):
        changed = striped(random_function(seed), seed)
        for i in changed.instructions:
            if isinstance(i, Striped) and any(len(set(p.places)) > 1 for p in i.places.values()):
                return changed, plan(changed, 4), i
    raise AssertionError("no chain has a pool")


def test_a_moved_pool_is_found_out() -> None:
    function, layout, chain = with_a_pool()
    found = 0
    for pool in chain.pools:
        for buffer in layout.offsets:
            if buffer is not pool and buffer.nbytes:
                offsets = {**layout.offsets, pool: layout.offsets[buffer]}
                try:
                    check(function, replace(layout, offsets=offsets, size=1 << 16))
                except IllFormedError:
                    found += 1
    assert found


def test_rows_in_one_place_are_found_out() -> None:
    function, layout, chain = with_a_pool()
    tensor, pooled = next((t, p) for t, p in chain.places.items() if len(set(p.places)) > 1)
    places = {**chain.places, tensor: replace(pooled, places=(0,) * len(pooled.places))}
    broken = replace(chain, places=places)
    instructions = tuple(broken if i is chain else i for i in function.instructions)
    with pytest.raises(IllFormedError, match="row"):
        check(replace(function, instructions=instructions), layout)


def test_a_dump_shows_members_and_steps() -> None:
    function, layout, chain = with_a_pool()
    text = dump(function, layout.offsets, layout.lifetimes)
    assert f"steps={len(chain.steps)}" in text
    assert "members=[" in text


def test_pictures_say_what_a_pool_is_for_and_how_good_the_plan_is() -> None:
    function, layout, chain = with_a_pool()
    tensor, pooled = next(iter(chain.places.items()))
    count = pooled.pool.nbytes // pooled.pitch
    worse = replace(layout, size=layout.lower_bound * 2)
    for picture in (draw_text(function, worse, 400), html.unescape(draw_svg(function, worse))):
        assert f"({count} places for rows of " in picture
        assert tensor.name in picture
        assert f"100.0 % above the bound of {layout.lower_bound}" in picture


def test_the_report_shows_the_layers_of_a_chain() -> None:
    function, layout, chain = with_a_pool()
    unit = emit(function, layout, target("host"), Options(name="net"), ModelInfo("net"))
    layer = unit.report["layers"][function.instructions.index(chain)]
    members = layer["members"]
    assert [m["name"] for m in members] == [m.instruction.name for m in chain.members]
    assert sum(m["macs"] for m in members) == layer["macs"] > 0
    assert sum(m["rows"] for m in members) == len(chain.steps)
    assert [m["output_bytes"] for m in members] == [m.y.nbytes for m in chain.members]
    assert 0 < sum(m["cycles_estimate"] for m in members) < layer["cycles_estimate"]
    assert 0 < sum(m["weights_bytes"] for m in members) <= layer["weights_bytes"]
    page = unit.files["report.html"]
    assert all(html.escape(m["name"]) in page for m in members)
    assert 'class="member"' in page
