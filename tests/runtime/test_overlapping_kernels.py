"""Kernels whose output lies over their input as far as they promise that it may."""

from __future__ import annotations

from typing import Any

import pytest
from kernel_program import Case, cases_of, compare, run_cases
from test_linear_kernels import random_convolutions

from glowmcu.ops.base import Example, bias_i32, f32, i8, weights_i8
from glowmcu.ops.conv import Conv2D

pytestmark = pytest.mark.cc


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
