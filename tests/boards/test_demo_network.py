"""The demo network, quantized, on every board: the bits of the host, and right about digits."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import glowmcu
from glowmcu import demo
from glowmcu.emit.unit import CodeUnit
from glowmcu.frontend.samples import load_samples
from glowmcu.verify.board import board, emulated_boards, run_on_board
from glowmcu.verify.firmware import firmware
from glowmcu.verify.host import HostLibrary

COUNT = 20


@cache
def compiled(target: str) -> CodeUnit:
    model = glowmcu.compile(
        demo.model_path(),
        target=target,
        quantize="int8",
        calibration=demo.calibration_path(),
        name="digits",
    )
    return model.compilation.unit


@pytest.mark.qemu
@pytest.mark.parametrize("name", [b.name for b in emulated_boards()])
def test_every_board_gives_the_bits_of_the_host(name: str, qemu: None) -> None:
    images, labels = demo.held_out()
    unit = compiled(board(name).target)
    samples = load_samples({"image": images[:COUNT]}, unit.inputs)
    result = run_on_board(unit, board(name), samples, trace=True)
    host = HostLibrary(compiled("host"))
    for sample, outputs in zip(samples, result.outputs, strict=True):
        expected = host.run(sample)["probabilities"]
        np.testing.assert_array_equal(outputs["probabilities"], expected)
    guesses = [outputs["probabilities"].argmax() for outputs in result.outputs]
    assert (np.array(guesses) == labels[:COUNT]).mean() >= 0.9
    assert len(result.trace[0]) == len(unit.layers)
    assert result.stack < 1024
    assert unit.arena_size < 2048
    assert result.footprint.flash < 20000


@pytest.mark.qemu
def test_the_firmware_project_passes(qemu: None, need_make: None, tmp_path: Path) -> None:
    unit = compiled("cortex-m0")
    (sample,) = load_samples({"image": demo.held_out()[0][:1]}, unit.inputs)
    firmware(unit, board("microbit"), sample).write(tmp_path)
    done = subprocess.run(
        ["make", "run"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "digits: passed" in done.stdout + done.stderr
