"""Kernels whose output lies over their input as far as they promise that it may."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from kernel_program import Case, cases_of, compare, graph_of, run_cases
from test_linear_kernels import random_convolutions

from glowmcu.emit.emitter import emit
from glowmcu.emit.unit import ModelInfo
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.evaluate import evaluate
from glowmcu.instr.function import Function
from glowmcu.instr.instruction import Instruction
from glowmcu.lowering.lower import lower
from glowmcu.lowering.select import select_kernels
from glowmcu.memory.check import check
from glowmcu.memory.plan import MemoryPlan, plan
from glowmcu.ops.base import Example, bias_i32, f32, i8, weights_i8
from glowmcu.ops.concat import Concat
from glowmcu.ops.conv import Conv2D
from glowmcu.options import Options
from glowmcu.targets.target import target
from glowmcu.verify.host import HostLibrary

pytestmark = pytest.mark.cc
HOST = target("host")


def pointwise() -> list[Example]:
    """1x1 convolutions that widen, keep and narrow, with odd and even numbers of pixels."""
    found = []
    for inner, outer, width in ((3, 8, 5), (8, 3, 5), (4, 4, 3), (1, 6, 1), (5, 6, 4), (2, 3, 2)):
        found.append(
            Example((f32(2, 3, width, inner), f32(outer, 1, 1, inner), f32(outer)), {}, (1, 2))
        )
        x, w = i8(1, 3, width, inner), weights_i8(outer, 1, 1, inner)
        found.append(Example((x, w, bias_i32(x, w)), {}, (1, 2), i8(1, 3, width, outer)))
    return found


CASES: list[Case] = [
    *cases_of(Conv2D, Conv2D.examples, ("overlap", "turned")),
    *cases_of(Conv2D, random_convolutions(80), ("overlap", "turned"), seed=3),
    *cases_of(Conv2D, pointwise(), ("overlap", "turned"), seed=4),
]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    cases = {f"{n}-{case.label}": case for n, case in enumerate(CASES)}
    named = [Case(label, c.instruction, c.kernel, c.mode, c.arrays) for label, c in cases.items()]
    return run_cases(named, tmp_path_factory.mktemp("overlap"))


@pytest.mark.parametrize("number", range(len(CASES)))
def test_kernel_equals_reference_over_its_input(number: int, results: dict[str, Any]) -> None:
    case = CASES[number]
    compare(case, results[f"{number}-{case.label}"])


def alone(instruction: Instruction) -> Function:
    """Return a function of one instruction, whose inputs are the function's."""
    moving = [b for b in instruction.inputs() if b.root.kind != "constant"]
    inputs = {b: Buffer(f"x{n}", b.type, "input") for n, b in enumerate(dict.fromkeys(moving))}
    outputs = {
        b: Buffer(f"y{n}", b.type, "activation") for n, b in enumerate(instruction.outputs())
    }
    changed = instruction.with_buffers({**inputs, **outputs})
    names = tuple(b.name for b in outputs.values())
    return Function("f", tuple(inputs.values()), tuple(outputs.values()), names, (changed,))


def placements(function: Function) -> Iterator[MemoryPlan]:
    """Yield plans in which an output lies as close to an input as it is allowed to."""
    (instruction,) = function.instructions
    layout = plan(function, 16)
    for promise in instruction.overlaps():
        y = getattr(instruction, promise.output)
        found = getattr(instruction, promise.input)
        for x in found if isinstance(found, tuple) else (found,):
            step = max(x.type.dtype.nbytes, 1)
            low, high = promise.low // step * step, -(-promise.high // step) * step
            for distance in (low, high):
                if not -y.nbytes < distance < x.nbytes:
                    continue
                offsets, at = {}, max(x.nbytes, distance + y.nbytes) - min(0, distance)
                offsets[y], offsets[x] = max(0, distance), max(0, -distance)
                for buffer in layout.offsets:
                    if buffer not in offsets:
                        offsets[buffer] = at = -(-at // 16) * 16
                        at += buffer.nbytes
                yield replace(layout, offsets=offsets, size=at)


def rendered() -> Iterator[Function]:
    """Yield single instructions with rendered kernels that promise something, turned ones too."""
    for number, (op, examples) in enumerate(((Concat, Concat.examples), (Concat, sides()))):
        for example in examples:
            rng = np.random.default_rng(number)
            graph, _ = graph_of(op(**example.attributes), example, rng)
            function = lower(graph, graph.nodes(), "f")
            for instruction in select_kernels(function, HOST, "balanced").instructions:
                turned = instruction.turned()
                for one in (instruction, turned) if turned else (instruction,):
                    if one.kernel and one.kernel.template and one.overlaps():
                        yield alone(one)


def sides() -> list[Example]:
    """Concatenations of few and many channels, of two and more tensors."""
    return [
        Example(tuple(f32(1, 3, 5, c) for c in channels), {"axis": 3})
        for channels in ((1, 7), (7, 1), (4, 4), (2, 9, 3), (9, 1, 1), (1, 1, 1))
    ]


def test_rendered_kernels_equal_reference_over_their_inputs() -> None:
    count = 0
    for number, function in enumerate(rendered()):
        rng = np.random.default_rng(number)
        feeds = {
            b.name: rng.integers(-100, 100, b.type.shape).astype(b.type.dtype.numpy)
            for b in function.inputs
        }
        expected = evaluate(function, feeds)
        for layout in placements(function):
            check(function, layout)
            unit = emit(function, layout, HOST, Options(name="f"), ModelInfo("f"))
            for name, array in HostLibrary(unit).run(feeds).items():
                np.testing.assert_array_equal(array, expected[name], err_msg=str(number))
            count += 1
    assert count > 12
