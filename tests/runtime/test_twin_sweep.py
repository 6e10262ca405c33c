"""Kernels of every instruction set are exact over all small shapes, strides and pads, and write
nothing but their output: guard bytes lie before and after every buffer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pytest
from dsp_layers import Layer, bound, conv, dense, expected_of, feeds_of, function_of
from vector_layers import depthwise

from glowmcu.core import dtypes
from glowmcu.core.types import Array, TensorType
from glowmcu.emit.emitter import emit
from glowmcu.emit.unit import CodeUnit, ModelInfo
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Function
from glowmcu.memory.check import check
from glowmcu.memory.plan import MemoryPlan, plan
from glowmcu.options import Options
from glowmcu.targets.board import board
from glowmcu.targets.kernel import Kernel
from glowmcu.targets.target import Target, target
from glowmcu.verify.board import run_all_on_board
from glowmcu.verify.host import HostLibrary, build_library, this_machine

SIZES = range(1, 18)
GUARD = 32
EMULATED = [
    ("cortex-m4", "arm_dsp", "mps2-an386"),
    ("cortex-m55", "arm_mve", "mps3-an547"),
    ("cortex-m0", "armv6m", "mps2-an385"),
]


def window(rng: Any, layer: Callable[..., Layer], image: Sequence[int], *out: int) -> Layer:
    """Return a layer with a random window that fits its image, strides 1 to 3, any pads."""
    height, width, _ = image
    high, wide = int(rng.integers(1, 6)), int(rng.integers(1, 6))
    pads = [int(rng.integers(0, side)) for side in (high, wide, high, wide)]
    pads[2] += max(0, high - height - pads[0] - pads[2])
    pads[3] += max(0, wide - width - pads[1] - pads[3])
    strides = (int(rng.integers(1, 4)), int(rng.integers(1, 4)))
    weights = ("random", "extreme", "small")[int(rng.integers(0, 3))]
    return layer(
        tuple(image),
        *out,
        kernel=(high, wide),
        strides=strides,
        pads=tuple(pads),
        weights=weights,
        zero_point=int(rng.integers(-128, 128)),
    )


def layers() -> Iterator[Layer]:
    """Yield layers in which every size from 1 to 17 stands in every place, int8 and int16."""
    for number, layer in enumerate(layers_s8()):
        yield layer
        if number % 3:
            continue
        zero = layer.zero_point if layer.zero_point % 5 == 0 else 0
        yield replace(layer, dtype=dtypes.I16, zero_point=zero)


def layers_s8() -> Iterator[Layer]:
    """Yield layers of int8."""
    rng = np.random.default_rng(17)

    def orders(places: int) -> Iterator[list[int]]:
        yield from np.stack([rng.permutation(SIZES) for _ in range(places)], axis=1).tolist()

    for _ in range(2):
        for *image, out in orders(4):
            yield window(rng, conv, image, out)
        for image in orders(3):
            yield window(rng, depthwise, image)
    for height, width, channels, out in orders(4):
        yield conv((height, width, channels), out, zero_point=int(rng.integers(-128, 128)))
    for rows, inner, cols in orders(3):
        yield dense(rows, inner, cols, weights="extreme" if rows % 2 else "random")


def guarded(function: Function, name: str, processor: Target, specialize: Any) -> CodeUnit:
    """Return the C of a function with guards around every buffer, which are outputs of it."""
    bare = plan(function, processor.align)
    order = sorted(bare.offsets, key=lambda b: bare.offsets[b])
    guards = [
        Buffer(f"guard{n}", TensorType(dtypes.U8, (GUARD,)), "state") for n in range(len(order) + 1)
    ]
    offsets: dict[Buffer, int] = {guards[0]: 0}
    end = GUARD
    for buffer, guard in zip(order, guards[1:], strict=True):
        offsets[buffer], offsets[guard] = end, -(-(end + buffer.nbytes) // 4) * 4
        end = -(-(offsets[guard] + GUARD) // processor.align) * processor.align
    whole = replace(
        function,
        states=tuple(guards),
        outputs=(*function.outputs, *guards),
        output_names=(*function.output_names, *(g.name for g in guards)),
    )
    last = len(function.instructions)
    lives = {**bare.lifetimes, **dict.fromkeys(guards, (-1, last))}
    layout = MemoryPlan(offsets, end, bare.align, bare.lower_bound, lives, "guards")
    check(whole, layout)
    options = Options(name=name, specialize=specialize)
    return emit(whole, layout, processor, options, ModelInfo(name))


def trials(processor: Target, folder: str) -> tuple[list[CodeUnit], list[Any], list[Any]]:
    """Return C, inputs and outputs of layers, each with one of the kernels that accept it."""
    units, feeds, expected = [], [], []
    used: Counter[str] = Counter()
    for number, layer in zip(count(), layers()):
        function = function_of(layer, number)
        (instruction,) = function.instructions
        fitting: list[Kernel] = [
            k
            for k in instruction.kernels
            if k.folder == folder
            and k.requires <= processor.capabilities
            and not k.accepts(instruction)
        ]
        if not fitting:
            continue
        kernel = min(fitting, key=lambda k: used[k.symbol])
        used[kernel.symbol] += 1
        given = feeds_of(layer, number)[number % 3 :: 3]
        how = "all" if number % 8 == 0 else "none"
        units.append(guarded(bound(function, kernel), f"n{number}_{kernel.symbol}", processor, how))
        feeds.append(given)
        expected.append(expected_of(function, given))
    assert sum(used.values()) >= 40 and min(used.values()) > 1, used
    return units, feeds, expected


def compare(unit: CodeUnit, outputs: Sequence[dict[str, Array]], wanted: Sequence[Array]) -> None:
    for found, want in zip(outputs, wanted, strict=True):
        np.testing.assert_array_equal(found["y"], want, err_msg=unit.name)
        for slot in unit.outputs[1:]:
            assert not found[slot.name].any(), f"{unit.name} wrote on {slot.name}"


@pytest.mark.qemu
@pytest.mark.parametrize(("processor", "folder", "place"), EMULATED)
def test_kernels_are_exact_on_their_processor(
    processor: str, folder: str, place: str, qemu: None
) -> None:
    units, feeds, expected = trials(target(processor), folder)
    runs = run_all_on_board(units, board(place), feeds, optimize="-O1", timeout=240)
    for unit, run, wanted in zip(units, runs, expected, strict=True):
        compare(unit, run.outputs, wanted)


@pytest.mark.cc
@pytest.mark.parametrize(("processor", "folder"), [("x86-avx2", "x86_avx2"), ("host", "c99")])
def test_kernels_are_exact_on_this_machine(processor: str, folder: str) -> None:
    if not target(processor).capabilities <= this_machine().capabilities:
        pytest.skip(f"this machine has no {processor}")
    units, feeds, expected = trials(target(processor), folder)
    library = build_library(units)
    for unit, given, wanted in zip(units, feeds, expected, strict=True):
        found = []
        for feed in given:
            found.append(HostLibrary(unit, library=library).run(feed))
        compare(unit, found, wanted)
