"""Boards: every one runs a network, and whatever goes wrong there ends as a sentence."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from glowmcu.emit.unit import CodeUnit
from glowmcu.errors import (
    DoesNotFitError,
    InvalidModelError,
    OptionError,
    ToolMissingError,
    VerificationError,
)
from glowmcu.targets.board import common_folder
from glowmcu.targets.target import target
from glowmcu.verify.board import board, emulated_boards, list_boards, run_all_on_board, run_on_board
from glowmcu.verify.image import STARTUP, compiler_flags

MakeToy = Callable[..., CodeUnit]
Feed = dict[str, np.ndarray]

every_board = pytest.mark.parametrize("name", [b.name for b in emulated_boards()])


def feeds(count: int) -> list[Feed]:
    rng = np.random.default_rng(3)
    return [
        {
            "x": rng.normal(size=(2, 2)).astype(np.float32),
            "q": rng.integers(-128, 128, 5).astype(np.int8),
        }
        for _ in range(count)
    ]


def test_the_boards_have_the_names_that_users_type() -> None:
    names = [b.name for b in list_boards()]
    assert {"microbit", "mps2-an386", "mps3-an547", "riscv32"} <= set(names)
    assert board("mps2_an386") is board("mps2-an386")


def test_an_unknown_board_is_answered_with_the_list() -> None:
    with pytest.raises(OptionError, match=r"no board 'arduino'[\s\S]*microbit, mps2-an385"):
        board("arduino")


@pytest.mark.qemu
@every_board
def test_runs_every_sample(name: str, toy: MakeToy, qemu: None) -> None:
    samples = feeds(3)
    result = run_on_board(toy(), board(name), samples, trace=True)
    for feed, outputs, trace in zip(samples, result.outputs, result.trace, strict=True):
        offsets = np.float32([[0.25, -1.5], [3.0, 1e-7]])
        np.testing.assert_allclose(outputs["y"], np.exp(feed["x"]) + offsets, rtol=3e-7)
        assert outputs["total"] == feed["q"].sum(dtype=np.int32) + 42
        np.testing.assert_array_equal(trace[0][0], outputs["y"])
        np.testing.assert_array_equal(trace[1][0], outputs["total"])
    assert 64 <= result.stack < board(name).stack
    assert 1000 < result.footprint.flash < 10000
    assert board(name).stack + 64 < result.footprint.ram < board(name).stack + 2000


@pytest.mark.qemu
@every_board
@pytest.mark.parametrize("rounds", [1000, 6_000_000])
def test_counts_the_instructions_of_a_layer(
    name: str, rounds: int, toy: MakeToy, qemu: None
) -> None:
    loop = f"int n = {rounds}; __asm__ volatile(" + (
        '"1: addi %0, %0, -1\\n bnez %0, 1b" : "+r"(n)'
        if name == "riscv32"
        else '".syntax unified\\n1: subs %0, #1\\n bne 1b" : "+l"(n) : : "cc"'
    )
    result = run_on_board(toy(loop + ");"), board(name), feeds(2), trace=True, profile=True)
    for counts in result.instructions:
        assert counts[1] == pytest.approx(2 * rounds, abs=120)
        assert 0 < counts[0] < 15000
    assert result.instructions[0][1] == pytest.approx(result.instructions[1][1], abs=20)


@pytest.mark.qemu
def test_floats_are_the_same_bits_with_and_without_fpu(toy: MakeToy, qemu: None) -> None:
    unit = toy("for (int i = 0; i < 4; i++) { out[i] = in[i] * in[0] + in[3 - i] / offsets[i]; }")
    samples = feeds(20)
    offsets = np.float32([0.25, -1.5, 3.0, 1e-7])
    for name in ("mps2-an385", "mps2-an386", "mps3-an547", "riscv32"):
        for feed, found in zip(
            samples, run_on_board(unit, board(name), samples).outputs, strict=True
        ):
            x = feed["x"].reshape(4)
            np.testing.assert_array_equal(found["y"].reshape(4), x * x[0] + x[::-1] / offsets)


@pytest.mark.qemu
@every_board
def test_a_bad_access_is_reported_with_its_function(name: str, toy: MakeToy, qemu: None) -> None:
    nowhere = 0x00F00000 if name == "mps3-an547" else 0x9FFFFFF0
    with pytest.raises(VerificationError, match=r"failed on the board") as caught:
        run_on_board(toy(f"*(volatile int *){nowhere}u = 1;"), board(name), feeds(1))
    said = str(caught.value)
    assert "where: layer 1 of toy" in said
    assert re.search(r"pc 0x[0-9a-f]{8} in toy_run\(\)", said)
    assert re.search(r"(r0|a0) 0x[0-9a-f]{8}", said)
    assert re.search(r"(lr|ra) 0x[0-9a-f]{8}", said)


@pytest.mark.qemu
@every_board
def test_an_undefined_instruction_is_reported(name: str, toy: MakeToy, qemu: None) -> None:
    body = '__asm__ volatile(".short 0xde00\\n.short 0");'
    with pytest.raises(VerificationError, match=r"hard fault|undefined instruction"):
        run_on_board(toy(body), board(name), feeds(1))


@pytest.mark.qemu
@every_board
def test_a_stack_overflow_is_reported(name: str, toy: MakeToy, qemu: None) -> None:
    body = "volatile char a[200000], *p = a + sizeof a; while (p != a) { *--p = 1; }"
    with pytest.raises(VerificationError, match="stack overflow"):
        run_on_board(toy(body), board(name), feeds(1))


@pytest.mark.qemu
@pytest.mark.parametrize("name", ["mps2-an386", "riscv32"])
def test_an_endless_loop_ends_by_the_time_limit(name: str, toy: MakeToy, qemu: None) -> None:
    body = '*sum = 0; for (;;) { __asm__ volatile(""); }'
    start = time.monotonic()
    with pytest.raises(VerificationError, match="did not finish within 1 s"):
        run_on_board(toy(body), board(name), feeds(1), timeout=1)
    assert time.monotonic() - start < 20


@pytest.mark.qemu
def test_a_refusal_of_the_network_is_reported(toy: MakeToy, qemu: None) -> None:
    with pytest.raises(VerificationError, match="NAME_run did not return 0"):
        run_on_board(toy("zero = 1;"), board("microbit"), feeds(1))


@pytest.mark.cross
def test_too_little_ram_is_told_in_bytes(toy: MakeToy, qemu: None) -> None:
    message = r"does not fit the board microbit[\s\S]*ram of 16384 bytes is \d+ bytes too small"
    with pytest.raises(DoesNotFitError, match=message):
        run_on_board(toy(arena=16384), board("microbit"), feeds(1))


@pytest.mark.cross
def test_too_little_flash_is_told_in_bytes(toy: MakeToy, qemu: None) -> None:
    body = "static const int big[65536] = {1}; *sum += big[(uint8_t)in8[0]];"
    with pytest.raises(DoesNotFitError, match=r"flash of 262144 bytes is \d+ bytes too small"):
        run_on_board(toy(body), board("microbit"), feeds(1))


@pytest.mark.cross
def test_c_that_does_not_compile_is_told(toy: MakeToy, qemu: None) -> None:
    with pytest.raises(VerificationError, match=r"does not build[\s\S]*nonsense"):
        run_on_board(toy("nonsense;"), board("microbit"), feeds(1))


@pytest.mark.cross
def test_code_for_a_larger_core_is_refused(toy: MakeToy, qemu: None) -> None:
    with pytest.raises(OptionError, match="code for cortex-m4 does not run on the board microbit"):
        run_on_board(toy(compiled_for="cortex-m4"), board("microbit"), feeds(1))


@pytest.mark.cross
def test_wrong_inputs_are_refused(toy: MakeToy, qemu: None) -> None:
    feed = feeds(1)[0]
    with pytest.raises(InvalidModelError, match="no data for the input 'q'"):
        run_on_board(toy(), board("microbit"), [{"x": feed["x"]}])
    with pytest.raises(InvalidModelError, match=r"float64 of shape \(2, 2\)"):
        run_on_board(toy(), board("microbit"), [{**feed, "x": feed["x"].astype(np.float64)}])


def test_a_missing_tool_is_named_with_its_package(
    toy: MakeToy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda program: None)
    with pytest.raises(ToolMissingError, match="apt-get install qemu-system-arm"):
        run_on_board(toy(), board("microbit"), feeds(1))


@pytest.mark.cross
@every_board
def test_the_sources_of_a_board_have_no_warnings(name: str, qemu: None, tmp_path: Path) -> None:
    on = board(name)
    flags = "-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Werror".split()
    for source in (*STARTUP, on.startup):
        subprocess.run(
            [
                target(on.target).compiler + "gcc",
                *(*compiler_flags(target(on.target)), *flags, "-O2"),
                *("-c", common_folder() / source, "-o", tmp_path / "object.o"),
            ],
            check=True,
        )


@pytest.mark.qemu
def test_several_networks_run_in_one_image(toy: MakeToy, qemu: None) -> None:
    units = [toy(), replace(toy("*sum = -7;"), name="other")]
    units[1].files.clear()
    for name, text in toy("*sum = -7;").files.items():
        text = text.replace("toy", "other").replace("TOY", "OTHER")
        units[1].files[name.replace("toy", "other")] = text
    first, second = run_all_on_board(
        units, board("microbit"), [feeds(2), feeds(3)], trace=True, profile=True
    )
    assert (len(first.outputs), len(second.outputs)) == (2, 3)
    np.testing.assert_array_equal(first.outputs[1]["y"], second.outputs[1]["y"])
    assert second.outputs[2]["total"] == second.trace[2][1][0] == -7
    assert first.outputs[1]["total"] == feeds(2)[1]["q"].sum(dtype=np.int32) + 42
    assert min(second.instructions[2]) > 0


@pytest.mark.qemu
@pytest.mark.parametrize("name", ["mps2-an386", "mps2-an505", "mps3-an547"])
def test_code_for_a_smaller_core_runs_as_such_on_a_larger_one(
    name: str, toy: MakeToy, qemu: None
) -> None:
    small, large = (
        run_on_board(toy(compiled_for=target), board(name), feeds(2), profile=True)
        for target in ("cortex-m0", board(name).target)
    )
    np.testing.assert_array_equal(small.outputs[1]["total"], large.outputs[1]["total"])
    assert small.instructions[0][0] > 2 * large.instructions[0][0]  # it has no FPU
