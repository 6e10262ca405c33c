"""Kernels of Arm's DSP extension compute what the instructions say, to the bit, and stay in their
memory; weights that would make them wrong are refused."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from dsp_layers import (
    LAYERS,
    M4,
    Layer,
    bound,
    conv,
    dense,
    expected_of,
    feeds_of,
    function_of,
    offered,
    raw_kernels,
    unit_of,
)

from glowmcu.emit.unit import CodeUnit
from glowmcu.targets.board import board
from glowmcu.targets.select import select, verdicts
from glowmcu.targets.target import Target
from glowmcu.verify.board import run_all_on_board


@cache
def every_unit(processor: Target, step: int) -> tuple[list[CodeUnit], list[Any], list[Any]]:
    """Return C, inputs, expected outputs of layers with every kernel that accepts them."""
    units, feeds, expected = [], [], []
    for number, layer in list(enumerate(LAYERS))[::step]:
        function = function_of(layer, number)
        kernels = list(offered(function, processor))
        assert kernels, layer
        given = feeds_of(layer, number)
        for kernel in kernels:
            name = f"n{number}_{kernel.symbol}"
            share = number % 2 == 0
            units.append(unit_of(bound(function, kernel), name, share, processor))
            feeds.append(given)
            expected.append(expected_of(function, given))
    return units, feeds, expected


def with_first_line(unit: CodeUnit, line: str) -> CodeUnit:
    source = f"{unit.name}.c"
    return replace(unit, files={**unit.files, source: f"{line}\n{unit.files[source]}"})


def check_on_board(
    optimize: str, change: Any = lambda unit: unit, processor: Target = M4, step: int = 1
) -> None:
    units, feeds, expected = every_unit(processor, step)
    runs = run_all_on_board(
        [change(u) for u in units], board("mps2-an386"), feeds, optimize=optimize, timeout=120
    )
    wrong = [
        unit.name
        for unit, run, wants in zip(units, runs, expected, strict=True)
        for found, want in zip(run.outputs, wants, strict=True)
        if not np.array_equal(found["y"], want)
    ]
    assert not wrong


@pytest.mark.qemu
@pytest.mark.parametrize(("optimize", "step"), [("-O3", 1), ("-O0", 4)])
def test_assembly_is_exact(optimize: str, step: int, qemu: None) -> None:
    check_on_board(optimize, step=step)


@pytest.mark.qemu
def test_intrinsics_are_exact(qemu: None) -> None:
    check_on_board("-O1", lambda unit: with_first_line(unit, "#define GM_NO_ASM"), step=2)


@pytest.mark.qemu
def test_a_processor_without_fpu_keeps_its_values_on_the_stack(qemu: None) -> None:
    """The same assembly, compiled for software floating point."""
    flags = ("-mthumb", "-mcpu=cortex-m4", "-mfloat-abi=soft")
    soft = replace(M4, flags=flags, capabilities=frozenset({"arm-dsp"}))
    check_on_board("-O1", processor=soft, step=3)


@pytest.mark.parametrize(
    "layer",
    [
        replace(conv((3, 3, 16), 8), weights="both"),
        conv((3, 3, 600), 8, weights="extreme"),
        conv((5, 5, 64), 8, 3, weights="extreme"),
        dense(1, 700, 12, weights="extreme"),
        dense(1, 16, 4, weights="both"),
    ],
)
def test_weights_that_could_be_wrong_are_refused(layer: Layer) -> None:
    function = function_of(layer, 1)
    assert not raw_kernels(function)
    (instruction,) = function.instructions
    chosen = select(instruction, M4)
    assert chosen.folder == "c99"
    assert "-128" in " ".join(reason for _, reason in verdicts(instruction, M4, "balanced", chosen))


def test_a_sum_just_below_the_bound_is_taken() -> None:
    """|A| < 2^23 is proved with the bias and the real range of x: 127 below, 128 above."""
    for inner, taken in ((500, True), (530, False)):
        assert bool(raw_kernels(function_of(dense(1, inner, 4, weights="extreme"), 3))) == taken
