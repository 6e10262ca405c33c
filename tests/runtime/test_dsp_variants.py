"""The same kernels of Arm's DSP extension without assembly, without an FPU, and through clang."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import test_dsp_depthwise
import test_dsp_elementwise
import test_dsp_winograd
from dsp_cases import M4, Step, unit_of

from glowmcu.emit.unit import CodeUnit
from glowmcu.targets.board import board
from glowmcu.verify.board import run_all_on_board

SOFT = replace(
    M4,
    flags=("-mthumb", "-mcpu=cortex-m4", "-mfloat-abi=soft"),
    capabilities=frozenset({"arm-dsp"}),
)
STRING_H = """
#include <stddef.h>
void *memcpy(void *to, const void *from, size_t count);
void *memset(void *to, int value, size_t count);
"""


def some_steps() -> list[tuple[Step, str]]:
    winograd = [
        (step, symbol)
        for n, symbol in enumerate(test_dsp_winograd.WINOGRAD)
        for step in test_dsp_winograd.accepted(symbol)[6 * n : 6 * n + 6]
    ]
    others = test_dsp_depthwise.accepted()[:24], test_dsp_elementwise.accepted()[::5]
    return [*winograd, *others[0], *others[1]]


def without_assembly(unit: CodeUnit) -> CodeUnit:
    source = f"{unit.name}.c"
    return replace(unit, files={**unit.files, source: f"#define GM_NO_ASM\n{unit.files[source]}"})


@pytest.mark.qemu
@pytest.mark.parametrize("variant", ["intrinsics", "no FPU"])
def test_variants_equal_the_reference(variant: str, qemu: None) -> None:
    steps = some_steps()
    units = [unit_of(s, k, SOFT if variant == "no FPU" else M4) for s, k in steps]
    if variant == "intrinsics":
        units = [without_assembly(u) for u in units]
    runs = run_all_on_board(units, board("mps2-an386"), [[s.feeds] for s, _ in steps])
    for (step, _), run in zip(steps, runs, strict=True):
        ((_, found),) = run.outputs[0].items()
        (y,) = step.instruction.outputs()
        np.testing.assert_array_equal(found.reshape(-1), step.arrays[y].reshape(-1), step.label)


@pytest.mark.cross
def test_clang_assembles_every_kernel(need: Any, tmp_path: Path) -> None:
    need("clang")
    units = [unit_of(s, k) for s, k in some_steps()]
    for unit in units:
        for name, text in unit.files.items():
            (tmp_path / name).write_text(text)
    (tmp_path / "string.h").write_text(STRING_H)
    flags = "--target=arm-none-eabi -mcpu=cortex-m4 -mfloat-abi=hard -mfpu=fpv4-sp-d16".split()
    flags += ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-ffreestanding", "-c"]
    sources = [f"{unit.name}.c" for unit in units]
    command = ["clang", *flags, "-O2", f"-I{tmp_path}", *sources]
    made = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr[:4000]
