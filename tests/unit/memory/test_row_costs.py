"""What one row of an image is said to cost is about its share of what the image costs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from random_images import random_function

from glowmcu.instr.instruction import Instruction
from glowmcu.instr.striped import height

CALL = 250
"""Cycles that a call may cost whatever it does; four pixels may cost as much as one."""


def layers(machine: str) -> Iterator[tuple[Instruction, Instruction, int]]:
    """Yield random layers, the same for one row, and how many rows there are."""
    for seed in range(400, 440):
        for real in (False, True):
            for whole in random_function(seed, real=real, machine=machine).instructions:
                (y,) = whole.outputs()
                rows = height(y) if y.type.rank == 4 else 1
                one = whole.at_row(rows // 2) if rows > 3 and whole.windows() else None
                if one is not None:
                    yield whole, one, rows


@pytest.mark.parametrize("machine", ["host", "cortex-m0", "cortex-m4", "cortex-m55"])
def test_a_row_costs_its_share(machine: str) -> None:
    seen = set()
    for whole, one, rows in layers(machine):
        assert one.macs * rows == whole.macs
        for kernel in whole.kernels:
            if kernel.cycles and not (kernel.accepts(whole) or kernel.accepts(one)):
                seen.add(kernel.symbol)
                each, share = kernel.cycles(one), kernel.cycles(whole) / rows
                assert 0.6 * share < each < 4 * share + CALL, kernel.symbol
    assert len(seen) > 8
