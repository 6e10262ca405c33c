"""Every example of every card on emulated boards: the C computes what the instructions say."""

from __future__ import annotations

import pytest
from test_examples import CASES, FLOAT_TOLERANCE, Compiled, assert_close, compiled

from glowmcu.instr import evaluate as instr_level
from glowmcu.verify.board import board, run_all_on_board

BOARDS = ["mps2-an386", "mps3-an547", "riscv32"]
"""The instruction sets that have kernels of their own, and one without Arm's habits."""


def examples_for(machine: str) -> list[Compiled]:
    found = []
    for case in CASES:
        try:
            found.append(compiled(*case, machine))
        except Exception:  # the example's own test reports it
            continue
    return found


@pytest.mark.qemu
@pytest.mark.parametrize("name", BOARDS)
def test_boards_compute_what_the_instructions_say(name: str, qemu: None) -> None:
    examples = examples_for(board(name).target)
    assert len(examples) > len(CASES) / 2
    units, feeds = [e.unit for e in examples], [[e.feeds] for e in examples]
    runs = run_all_on_board(units, board(name), feeds, optimize="-O1")
    wrong = []
    for example, run in zip(examples, runs, strict=True):
        expected = instr_level.evaluate(example.function, example.feeds)
        for key, found in run.outputs[0].items():
            try:
                assert_close(found, expected[key], 0, FLOAT_TOLERANCE)
            except AssertionError as error:
                wrong.append(f"{example.unit.name}: {error}")
    assert not wrong, "\n".join(wrong)
