"""Kernels of convolutions, pools and matrix products against their numpy references."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from kernel_program import Case, cases_of, compare, run_cases

from glowmcu.core.types import Quant
from glowmcu.ops.base import Example, bias_i32, f32, i8, i16, weights_i8
from glowmcu.ops.conv import Conv2D
from glowmcu.ops.conv_transpose import ConvTranspose2D
from glowmcu.ops.dense import Dense
from glowmcu.ops.matmul import MatMul
from glowmcu.ops.pool import MaxPoolIndices2D, Pool2D

pytestmark = pytest.mark.cc

MODES = ("general", "constant", "in_place")


def random_convolutions(count: int) -> Iterator[Example]:
    """Yield convolutions of odd shapes, float, int8 and int16, some of them depthwise."""
    rng = np.random.default_rng(20)
    for number in range(count):
        groups, inner, outer = (int(v) for v in rng.integers(1, 5, 3))
        if number % 3 == 0:
            inner = outer = 1
        groups = groups if number % 2 else 1
        kh, kw, sh, sw, dh, dw = (int(v) for v in rng.integers(1, [6, 6, 4, 4, 3, 3]))
        pads = tuple(int(v) for v in rng.integers(0, 3, 4))
        h, w = (kh - 1) * dh + 1 + int(rng.integers(0, 9)), (kw - 1) * dw + 1 + int(rng.integers(9))
        attributes = {"strides": (sh, sw), "dilations": (dh, dw), "pads": pads, "groups": groups}
        n = int(rng.integers(1, 3))
        if number % 4 < 2:
            shapes = (f32(n, h, w, groups * inner), f32(groups * outer, kh, kw, inner))
            yield Example((*shapes, f32(groups * outer)), attributes, (1, 2))
            continue
        stored, scale = (i8, 0.05) if number % 8 < 4 else (i16, 2e-4)
        x = stored(n, h, w, groups * inner, zero_point=int(rng.integers(-128, 128)))
        if number % 16 > 7:
            x = x.with_quant(Quant.per_tensor(scale))
        weights = weights_i8(groups * outer, kh, kw, inner)
        shape = Conv2D(**attributes).infer(x, weights).shape
        zero = int(rng.integers(-9, 9))
        y = stored(*shape, scale=scale * np.sqrt(kh * kw * inner), zero_point=zero)
        yield Example((x, weights, bias_i32(x, weights)), attributes, (1, 2), y)


def random_pools(count: int) -> Iterator[Example]:
    """Yield pools of odd shapes, float and int8 by turns."""
    rng = np.random.default_rng(21)
    for number in range(count):
        kh, kw, sh, sw, dh, dw = (int(v) for v in rng.integers(1, [6, 6, 4, 4, 3, 3]))
        pads = tuple(int(v) for v in rng.integers(0, (kh, kw, kh, kw)))
        h, w = (kh - 1) * dh + 1 + int(rng.integers(0, 9)), (kw - 1) * dw + 1 + int(rng.integers(9))
        n, c = int(rng.integers(1, 3)), int(rng.integers(1, 8))
        attributes = {
            "kind": "max" if number % 2 else "average",
            "kernel": (kh, kw),
            "strides": (sh, sw),
            "dilations": (dh, dw),
            "pads": pads,
            "count_include_pad": bool(rng.integers(2)),
        }
        if number % 4 < 2:
            yield Example((f32(n, h, w, c),), attributes)
            continue
        x = i8(n, h, w, c, zero_point=int(rng.integers(-128, 128)))
        y = x.with_shape(Pool2D(**attributes).infer(x).shape)
        yield Example((x,), attributes, output=y)


def all_cases() -> Iterator[Case]:
    yield from cases_of(Dense, Dense.examples, MODES)
    yield from cases_of(ConvTranspose2D, ConvTranspose2D.examples, MODES)
    yield from cases_of(MatMul, MatMul.examples, MODES)
    yield from cases_of(MaxPoolIndices2D, MaxPoolIndices2D.examples, MODES)
    yield from cases_of(Pool2D, Pool2D.examples, MODES)
    yield from cases_of(Pool2D, random_pools(60), ("general", "in_place"), seed=9)
    yield from cases_of(Conv2D, Conv2D.examples, MODES)
    yield from cases_of(Conv2D, random_convolutions(100), ("general", "in_place"), seed=8)


CASES = {}
for case in all_cases():
    label = case.label
    for suffix in itertools.count(2):
        if label not in CASES:
            break
        label = f"{case.label}~{suffix}"
    CASES[label] = Case(label, case.instruction, case.kernel, case.mode, case.arrays)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run_cases(list(CASES.values()), tmp_path_factory.mktemp("kernels"))


@pytest.mark.parametrize("label", CASES)
def test_kernel_equals_reference(label: str, results: dict[str, Any]) -> None:
    compare(CASES[label], results[label])
