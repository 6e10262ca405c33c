"""Firmware projects: they build with make alone, and say whether the network is right."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from glowmcu.emit.unit import CodeUnit
from glowmcu.errors import OptionError
from glowmcu.verify.board import board
from glowmcu.verify.firmware import firmware

MakeToy = Callable[..., CodeUnit]
SAMPLE = {
    "x": np.float32([[0.5, -1], [2, 0]]),
    "q": np.int8([1, -2, 3, -128, 127]),
}


def make(folder: Path, *goals: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", *goals], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.qemu
@pytest.mark.parametrize("name", ["microbit", "mps2-an386", "mps3-an547", "riscv32"])
def test_a_project_builds_and_passes(
    name: str, toy: MakeToy, qemu: None, need_make: None, tmp_path: Path
) -> None:
    firmware(toy(), board(name), SAMPLE).write(tmp_path)
    done = make(tmp_path, "run")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "toy: passed" in done.stdout + done.stderr
    assert "warning" not in done.stderr


@pytest.mark.qemu
def test_a_wrong_network_fails_the_project(
    toy: MakeToy, qemu: None, need_make: None, tmp_path: Path
) -> None:
    firmware(toy(), board("mps2-an386"), SAMPLE).write(tmp_path)
    source = (tmp_path / "toy.c").read_text()
    (tmp_path / "toy.c").write_text(source.replace("0.25f", "0.26f"))
    done = make(tmp_path, "run")
    assert done.returncode != 0
    assert "toy: FAILED" in done.stdout + done.stderr


def test_code_for_a_larger_core_is_refused(toy: MakeToy) -> None:
    with pytest.raises(OptionError, match="does not run on the board microbit"):
        firmware(toy(compiled_for="cortex-m7"), board("microbit"), SAMPLE)
