"""Measure a compiled network on an emulated Cortex-M: instructions, cycles, flash.

The counting is done by a QEMU plugin outside this project (`armcycles`): give its folder with the
environment variable ARMCYCLES, or have it at ../shared/tools/armcycles beside the checkout.
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from glowmcu.emit.unit import CodeUnit
from glowmcu.targets.board import board as find_board
from glowmcu.verify.image import build_image, measure

ROOT = Path(__file__).resolve().parent.parent
_MAIN = """\
#include "{name}.h"
#include "board_semihosting.h"

static {name}_arena arena;
{arrays}
void bench_begin(void);
void bench_end(void);
__attribute__((noinline)) void bench_begin(void) {{ __asm__ volatile("" ::: "memory"); }}
__attribute__((noinline)) void bench_end(void) {{ __asm__ volatile("" ::: "memory"); }}

int main(void)
{{
    {name}_init(&arena);
    bench_begin();
    {name}_run(&arena, {arguments});
    bench_end();
{checks}
    return 0;
}}
"""


@dataclass(frozen=True)
class Cost:
    """One inference: instructions, estimated Cortex-M4 cycles; bytes of flash of the image."""

    instructions: int
    cycles: int
    flash: int
    functions: tuple[tuple[str, int, int], ...]


def armcycles() -> ModuleType | None:
    """Return the counting tool as a module, None where it is not installed."""
    folder = Path(os.environ.get("ARMCYCLES", ROOT.parent / "shared" / "tools" / "armcycles"))
    file = folder / "armcycles.py"
    if not file.exists():
        return None
    spec = importlib.util.spec_from_file_location("armcycles", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cost(
    unit: CodeUnit,
    board_name: str,
    sample: dict[str, Any],
    expected: dict[str, Any],
    optimize: str = "-O3",
) -> Cost:
    """Count one inference of `unit` on a board; outputs must be `expected`, integers to the bit."""
    tool = armcycles()
    if tool is None:
        raise SystemExit("the armcycles tool is not installed: set ARMCYCLES to its folder")
    board = find_board(board_name)
    with tempfile.TemporaryDirectory(prefix="glowmcu-bench-") as name:
        image = build_image(
            unit,
            board,
            {"bench_main.c": _main(unit, sample, expected)},
            Path(name),
            optimize=optimize,
        )
        result = tool.measure(str(image), machine=board.qemu[board.qemu.index("-M") + 1])
        if result["status"] != 0 or not result["complete"]:
            raise SystemExit(f"{unit.name} on {board_name}: wrong outputs or no end ({result})")
        functions = tuple((f["name"], f["instructions"], f["cycles"]) for f in result["functions"])
        return Cost(
            result["instructions"],
            result["cycles_m4_model"],
            measure(image, board).flash,
            functions,
        )


def _main(unit: CodeUnit, sample: dict[str, Any], expected: dict[str, Any]) -> str:
    arrays, checks = [], []
    for i, slot in enumerate(unit.inputs):
        arrays.append(_array(f"in_{i}", slot.type.dtype.c, sample[slot.name], "const "))
    for i, slot in enumerate(unit.outputs):
        arrays.append(f"static {slot.type.dtype.c} out_{i}[{slot.type.numel}];")
        arrays.append(_array(f"want_{i}", slot.type.dtype.c, expected[slot.name], "const "))
        checks.append(
            f"    for (int i = 0; i < {slot.type.numel}; i++) {{\n"
            f"        if ({_differ(slot.type.dtype.is_float, i)}) {{\n"
            "            return 1;\n        }\n    }"
        )
    arguments = [f"in_{i}" for i in range(len(unit.inputs))]
    arguments += [f"out_{i}" for i in range(len(unit.outputs))]
    return _MAIN.format(
        name=unit.name,
        arrays="\n".join(arrays),
        arguments=", ".join(arguments),
        checks="\n".join(checks),
    )


def _differ(is_float: bool, number: int) -> str:
    """Return the C condition that an output is not the expected one; libraries differ in floats."""
    if not is_float:
        return f"out_{number}[i] != want_{number}[i]"
    difference = f"out_{number}[i] - want_{number}[i]"
    return f"!({difference} < 1e-4f && {difference} > -1e-4f)"


def _array(name: str, c_type: str, data: Any, qualifier: str) -> str:
    flat = np.asarray(data).reshape(-1)
    numbers = ", ".join(f"{v:.9e}f" if flat.dtype.kind == "f" else str(v) for v in flat.tolist())
    return f"static {qualifier}{c_type} {name}[] = {{{numbers}}};"
