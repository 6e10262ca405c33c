"""Sums and pools of Arm's DSP extension, four elements at a time, against numpy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from dsp_cases import Step, kernel_of, run_twins, steps_of, unit_of

from glowmcu.ops.base import Example, i8
from glowmcu.ops.elementwise import Elementwise
from glowmcu.ops.pool import Pool2D
from glowmcu.verify.board import board, run_all_on_board

ADD, MUL = "gm_add_s8_four", "gm_mul_s8_four"
AVERAGE, MAXIMUM = "gm_average_pool_s8_four", "gm_max_pool_s8_four"


def binaries() -> Iterator[Example]:
    rng = np.random.default_rng(1)
    one = ((1, 4, 4, 16), (1, 1, 3, 5), (3,), (1, 2, 3, 4), (1, 64), (7, 9))
    shapes = [(s, s) for s in one]
    shapes += [
        ((1, 3, 4, 12), (1, 1, 1, 12)),
        ((1, 3, 2, 7), (7,)),
        ((4, 13), (4, 1)),
        ((5, 6), (1,)),
    ]
    for a_shape, b_shape in shapes:
        for fn in ("add", "sub", "mul"):
            scales = rng.uniform(0.01, 0.1, 3)
            zeros = (int(v) for v in rng.integers(-128, 128, 3))
            quants = [
                {"scale": float(s), "zero_point": z} for s, z in zip(scales, zeros, strict=True)
            ]
            a, b, y = (
                i8(*s, **q) for s, q in zip((a_shape, b_shape, a_shape), quants, strict=True)
            )
            y = i8(*a_shape, scale=0.01, zero_point=-3) if fn == "mul" else y
            yield Example((a, b), {"fn": fn}, (), y)


def pools() -> Iterator[Example]:
    rng = np.random.default_rng(2)
    whole = [((25, 5), 8), ((1, 300), 4), ((8, 8), 13), ((2, 2), 6)]
    for size, channels in whole:
        x = i8(1, *size, channels, zero_point=int(rng.integers(-128, 128)))
        attributes = {"kind": "average", "kernel": size}
        yield Example((x,), attributes, (), i8(1, 1, 1, channels, scale=0.03))
    for number in range(40):
        kh, kw, sh, sw, dh, dw = (int(v) for v in rng.integers(1, [4, 6, 4, 4, 3, 3]))
        average = number % 2 == 0
        pads = (0, 0, 0, 0) if average else tuple(int(v) for v in rng.integers(0, (kh, kw, kh, kw)))
        h, w = (kh - 1) * dh + 1 + int(rng.integers(0, 9)), (kw - 1) * dw + 1 + int(rng.integers(9))
        n, c = int(rng.integers(1, 3)), int(rng.integers(4, 14))
        attributes = {
            "kind": "average" if average else "max",
            "kernel": (kh, kw),
            "strides": (sh, sw),
            "dilations": (dh, dw),
            "pads": pads,
        }
        x = i8(n, h, w, c, zero_point=int(rng.integers(-128, 128)))
        yield Example((x,), attributes, (), x.with_shape(Pool2D(**attributes).infer(x).shape))


def accepted() -> list[tuple[Step, str]]:
    found = [(s, ADD) for s in steps_of(Elementwise, binaries(), "AddS8")]
    found += [(s, MUL) for s in steps_of(Elementwise, binaries(), "MulS8")]
    every = list(pools())
    found += [(s, AVERAGE) for s in steps_of(Pool2D, every, "AveragePool")]
    found += [(s, MAXIMUM) for s in steps_of(Pool2D, every, "MaxPool")]
    taken = [(s, k) for s, k in found if kernel_of(s, k)]
    for symbol, least in ((ADD, 15), (MUL, 9), (AVERAGE, 20), (MAXIMUM, 15)):
        assert sum(k == symbol for _, k in taken) >= least, symbol
    return taken


@pytest.mark.cc
def test_twins_equal_reference(tmp_path: Path) -> None:
    calls = [(s, kernel_of(s, k), "plain") for s, k in accepted()]
    calls += [
        (s, k, "in_place")
        for s, k, _ in calls
        if k and (s.instruction.may_share or k.in_place(s.instruction))
    ]
    results = run_twins(calls, tmp_path)  # type: ignore[arg-type]
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
