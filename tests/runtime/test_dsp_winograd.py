"""Winograd convolutions of Arm's DSP extension: edges of tiles and extreme values, to the bit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dsp_cases import M4, Step, kernel_of, run_twins, steps_of, unit_of

from glowmcu.instr.buffer import Buffer
from glowmcu.instr.instruction import Instruction
from glowmcu.ops.base import Example, bias_i32, i8, weights_i8
from glowmcu.ops.conv import Conv2D
from glowmcu.targets.select import select
from glowmcu.verify.board import board, run_all_on_board

WINOGRAD = {"gm_conv2d_s8_winograd": 25, "gm_conv2d_s8_winograd2": 29}
"""Kernels, and the power of two that no sum may pass."""


def _example(
    rng: np.random.Generator,
    size: tuple[int, int, int],
    out: int,
    pads: tuple[int, ...] = (1, 1, 1, 1),
    scale: float = 0.04,
    batch: int = 1,
    clamp: tuple[float, float] | None = None,
) -> Example:
    x = i8(batch, *size, zero_point=int(rng.choice([-128, 127, 5])))
    weights = weights_i8(out, 3, 3, size[2])
    attributes = {"strides": (1, 1), "pads": pads, "clamp": clamp}
    shape = Conv2D(**attributes).infer(x, weights).shape
    y = i8(*shape, scale=scale * 3 * np.sqrt(size[2]), zero_point=int(rng.integers(-9, 9)))
    return Example((x, weights, bias_i32(x, weights)), attributes, (1, 2), y)


def examples() -> Iterator[Example]:
    rng = np.random.default_rng(5)
    yield _example(rng, (8, 8, 16), 16)
    yield _example(rng, (4, 16, 32), 8)
    yield _example(rng, (8, 8, 64), 4)
    yield _example(rng, (8, 8, 64), 4, scale=0.4)
    yield _example(rng, (12, 8, 4), 8, clamp=(-0.4, 0.9))
    yield _example(rng, (2, 2, 8), 4)
    yield _example(rng, (6, 4, 12), 12, (0, 0, 0, 0), scale=0.0004)
    yield _example(rng, (5, 40, 20), 4, (2, 1, 0, 2))
    yield _example(rng, (9, 50, 64), 4)
    for _ in range(14):
        c, out = 4 * int(rng.integers(1, 12)), 4 * int(rng.integers(1, 5))
        size = int(rng.integers(3, 14)), int(rng.integers(3, 20)), c
        pads = tuple(int(v) for v in rng.integers(0, 3, 4))
        scale = float(rng.choice([0.04, 0.3, 0.001]))
        clamp = (-0.5, 1.0) if rng.integers(4) == 0 else None
        yield _example(rng, size, out, pads, scale, int(rng.integers(1, 3)), clamp)


def accepted(symbol: str) -> list[Step]:
    found = [s for s in steps_of(Conv2D, examples(), "ConvS8") if kernel_of(s, symbol)]
    assert len(found) >= 20
    return found


every_kernel = pytest.mark.parametrize("symbol", WINOGRAD)


@pytest.mark.cc
@every_kernel
def test_twin_equals_reference(symbol: str, tmp_path: Path) -> None:
    calls = [(s, kernel_of(s, symbol), "plain") for s in accepted(symbol)]
    calls += [(s, k, "in_place") for s, k, _ in calls if k and k.in_place(s.instruction)]
    assert any(mode == "in_place" for _, _, mode in calls)
    results = run_twins(calls, tmp_path)  # type: ignore[arg-type]
    for (step, _, mode), found in zip(calls, results, strict=True):
        (y,) = step.instruction.outputs()
        np.testing.assert_array_equal(found, step.arrays[y], f"{step.label} {mode}")


@pytest.mark.qemu
@every_kernel
def test_assembly_equals_reference(symbol: str, qemu: None) -> None:
    steps = accepted(symbol)
    units = [unit_of(s, symbol) for s in steps]
    runs = run_all_on_board(units, board("mps2-an386"), [[s.feeds] for s in steps])
    for step, run in zip(steps, runs, strict=True):
        ((_, found),) = run.outputs[0].items()
        (y,) = step.instruction.outputs()
        np.testing.assert_array_equal(found.reshape(-1), step.arrays[y].reshape(-1), step.label)


def _with_bias(step: Step, value: int) -> Instruction:
    i: Any = step.instruction
    data = np.full(i.bias.type.shape, value, np.int32)
    return replace(i, bias=Buffer("bias", i.bias.type, "constant", data=data))


@every_kernel
def test_sums_that_could_pass_the_bound_are_refused(symbol: str) -> None:
    rng = np.random.default_rng(6)
    far = _example(rng, (8, 8, 64), 4, scale=200.0)
    (step,) = steps_of(Conv2D, [far], "ConvS8")
    assert kernel_of(step, symbol)
    limit = WINOGRAD[symbol]
    heavy = _with_bias(step, (1 << limit) - 9 * 64 * 128 * 127 - 1), _with_bias(step, 1 << limit)
    (kernel,) = (k for k in step.instruction.kernels if k.symbol == symbol)
    assert kernel.accepts(heavy[0]) == ""
    assert f"could pass 2^{limit}" in kernel.accepts(heavy[1])


def test_a_layer_that_is_refused_takes_the_next_kernel() -> None:
    (step,) = steps_of(Conv2D, [_example(np.random.default_rng(6), (8, 8, 64), 4)], "ConvS8")
    first, second = WINOGRAD
    for bias, symbol in ((0, first), (1 << 25, second), (1 << 29, "gm_conv2d_s8")):
        assert select(_with_bias(step, bias), M4, "speed").symbol == symbol


def _adversarial(step: Step, weights: str) -> Step:
    """The same layer with weights at their bounds, and inputs that add up to the largest sums."""
    i: Any = step.instruction
    shape = i.w.type.shape
    signs = (
        np.random.default_rng(7).choice([-1, 1], shape) if weights == "mixed" else np.ones(shape)
    )
    data = np.where(signs > 0, -128, 127).astype(np.int8)
    changed = replace(i, w=Buffer("w", i.w.type, "constant", data=data))
    rows = signs[0].reshape(3, 3, -1)
    x = np.where(np.resize(rows, i.x.type.shape) > 0, -128, 127).astype(np.int8)
    arrays = {**step.arrays, changed.w: data, i.x: x}
    memory = {b: a.copy() for b, a in arrays.items()}
    changed.run(memory)
    arrays[changed.y] = memory[changed.y]
    return replace(step, instruction=changed, arrays=arrays)


@pytest.mark.cc
@every_kernel
def test_weights_at_their_bounds_are_exact(symbol: str, tmp_path: Path) -> None:
    steps = [_adversarial(s, w) for s in accepted(symbol)[:9] for w in ("least", "mixed")]
    calls = [(s, kernel_of(s, symbol), "plain") for s in steps]
    assert all(kernel for _, kernel, _ in calls)
    for (step, _, _), found in zip(calls, run_twins(calls, tmp_path), strict=True):  # type: ignore[arg-type]
        (y,) = step.instruction.outputs()
        np.testing.assert_array_equal(found, step.arrays[y], step.label)
