"""The demo network compiles for the processor of every board, and fits; also without an image."""

from __future__ import annotations

import pytest

from glowmcu import demo
from glowmcu.driver import compile_network
from glowmcu.emit.estimate import measure
from glowmcu.options import Options
from glowmcu.targets.board import Board, list_boards


@pytest.mark.cross
@pytest.mark.parametrize("board", list_boards(), ids=lambda b: b.name)
def test_the_demo_network_compiles_and_fits(board: Board, arm_gcc: str, riscv_gcc: str) -> None:
    options = Options(target=board.target, quantize="int8")
    unit = compile_network(demo.model_path(), options, demo.calibration_path()).unit
    measured = measure(unit, "-O2")
    assert measured.code > 0
    assert measured.code + measured.data < board.memory["flash"].length
    assert unit.arena_size + measured.stack < board.memory["ram"].length
