"""Depthwise kernels of Arm's DSP extension: odd shapes and extreme values against numpy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from dsp_cases import Step, kernel_of, run_twins, steps_of, unit_of

from glowmcu.ops.base import Example, bias_i32, i8, weights_i8
from glowmcu.ops.conv import Conv2D
from glowmcu.verify.board import board, run_all_on_board

PLANAR, COLUMN = "gm_depthwise_s8_planar", "gm_depthwise_s8_column"


def _example(
    rng: np.random.Generator,
    size: tuple[int, int],
    kernel: tuple[int, int],
    strides: tuple[int, int],
    pads: tuple[int, ...],
    channels: int,
    batch: int = 1,
    clamp: tuple[float, float] | None = None,
) -> Example:
    x = i8(batch, *size, channels, zero_point=int(rng.choice([-128, 127, 5])))
    weights = weights_i8(channels, *kernel, 1)
    attributes = {"strides": strides, "pads": pads, "groups": channels, "clamp": clamp}
    shape = Conv2D(**attributes).infer(x, weights).shape
    scale = float(rng.choice([0.02, 0.06, 0.0004])) * np.sqrt(kernel[0] * kernel[1])
    y = i8(*shape, scale=scale, zero_point=int(rng.integers(-9, 9)))
    return Example((x, weights, bias_i32(x, weights)), attributes, (1, 2), y)


def examples() -> Iterator[Example]:
    rng = np.random.default_rng(3)
    three = ((3, 3), (1, 1), (1, 1, 1, 1))
    yield _example(rng, (25, 5), *three, 8)
    yield _example(rng, (3, 3), *three, 12)
    yield _example(rng, (48, 48), *three, 4)
    yield _example(rng, (31, 17), *three, 6)
    yield _example(rng, (48, 48), (3, 3), (2, 2), (0, 0, 1, 1), 4)
    yield _example(rng, (6, 6), (3, 3), (2, 2), (0, 0, 1, 1), 8)
    yield _example(rng, (12, 16), (5, 5), (1, 1), (2, 2, 2, 2), 5)
    yield _example(rng, (13, 11), (5, 5), (2, 2), (2, 1, 2, 2), 4, batch=2)
    yield _example(rng, (7, 7), (7, 7), (1, 1), (0, 0, 0, 0), 4)
    yield _example(rng, (12, 12), (11, 11), (1, 1), (5, 5, 5, 5), 4)
    for taps in (3, 5, 10, 15):
        yield _example(rng, (28, 1), (taps, 1), (1, 1), (0, 0, 0, 0), 8)
    yield _example(rng, (30, 1), (4, 1), (2, 1), (1, 0, 2, 0), 9)
    yield _example(rng, (1, 90), (1, 3), (1, 1), (0, 2, 0, 1), 4)
    yield _example(rng, (5, 3), *three, 1030)
    yield _example(rng, (3, 39), (3, 3), (1, 1), (0, 1, 0, 1), 4)
    yield _example(rng, (3, 40), (3, 3), (2, 2), (0, 1, 0, 1), 5)
    yield _example(rng, (9, 130), *three, 40, clamp=(-1.0, 2.0))
    for _ in range(30):
        kh, kw, sh, sw = (int(v) for v in rng.integers(1, [7, 9, 4, 4]))
        pads = tuple(int(v) for v in rng.integers(0, (kh, kw, kh, kw)))
        h = max(kh - pads[0] - pads[2], 1) + int(rng.integers(0, 14))
        w = max(kw - pads[1] - pads[3], 1) + int(rng.integers(0, 18))
        clamp = (-0.5, 1.0) if rng.integers(4) == 0 else None
        c, n = int(rng.integers(1, 11)), int(rng.integers(1, 3))
        yield _example(rng, (h, w), (kh, kw), (sh, sw), pads, c, n, clamp)


def accepted() -> list[tuple[Step, str]]:
    steps = list(steps_of(Conv2D, examples(), "DepthwiseS8"))
    found = [(s, k) for s in steps for k in (PLANAR, COLUMN) if kernel_of(s, k)]
    for symbol, least in ((PLANAR, 30), (COLUMN, 5)):
        assert sum(k == symbol for _, k in found) >= least
    return found


@pytest.mark.cc
def test_twins_equal_reference(tmp_path: Path) -> None:
    """Whole images, in place, and row by row."""
    plain = [(s, k) for s, name in accepted() if (k := kernel_of(s, name))]
    calls = [(s, k, "plain") for s, k in plain]
    calls += [(s, k, "in_place") for s, k in plain if k.in_place(s.instruction)]
    assert len(calls) > len(plain) + 10
    one = [(s, k) for s, k in plain if s.instruction.attributes()["batch"] == 1]
    calls += [(s, k, "rows") for s, k in one if k.row]
    results = run_twins(calls, tmp_path)
    for (step, _, mode), found in zip(calls, results, strict=True):
        (y,) = step.instruction.outputs()
        np.testing.assert_array_equal(found, step.arrays[y], f"{step.label} {mode}")


@pytest.mark.qemu
def test_assembly_equals_reference(qemu: None) -> None:
    steps = accepted()
    units = [unit_of(s, k) for s, k in steps]
    runs = run_all_on_board(units, board("mps2-an386"), [[s.feeds] for s, _ in steps])
    for (step, _), run in zip(steps, runs, strict=True):
        ((_, found),) = run.outputs[0].items()
        (y,) = step.instruction.outputs()
        np.testing.assert_array_equal(found.reshape(-1), step.arrays[y].reshape(-1), step.label)
