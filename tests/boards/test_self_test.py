"""The self-test: silent about a sound network; it names the layer of what is broken."""

from __future__ import annotations

import random
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

import glowmcu
from glowmcu import demo
from glowmcu.emit.unit import CodeUnit
from glowmcu.targets.board import board
from glowmcu.verify.firmware import firmware

FLAGS = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wsign-conversion"]
FLAGS += ["-Wshadow", "-Wdouble-promotion", "-Werror", "-ffp-contract=off", "-I."]
MAIN = """\
#include "digits_self_test.h"
#include <stdio.h>
static digits_arena arena;
int main(void)
{
    printf("%d\\n", (int)digits_self_test(&arena));
    return (int)digits_self_test(NULL) == DIGITS_ERR_ARG ? 0 : 1;
}
"""


@cache
def compiled(quantize: str = "int8", target: str = "host") -> CodeUnit:
    model = glowmcu.compile(
        demo.model_path(),
        target=target,
        quantize=quantize,
        calibration=demo.calibration_path(),
        name="digits",
        self_test=True,
    )
    return model.compilation.unit


class Program:
    """A program that prints the result of the self-test, built file by file."""

    def __init__(self, unit: CodeUnit, folder: Path, cc: str = "gcc") -> None:
        self.unit, self.folder, self.cc = unit, folder, cc
        unit.write(folder)
        (folder / "main.c").write_text(MAIN)
        self.sources = [*unit.sources, "main.c"]
        subprocess.run([cc, *FLAGS, "-c", *self.sources], cwd=folder, check=True)

    def result(self, *changed: str) -> int:
        if changed:
            subprocess.run([self.cc, *FLAGS, "-c", *changed], cwd=self.folder, check=True)
        objects = [s.replace(".c", ".o") for s in self.sources]
        subprocess.run([self.cc, *objects, "-lm", "-o", "program"], cwd=self.folder, check=True)
        done = subprocess.run([self.folder / "program"], capture_output=True, text=True, check=True)
        return int(done.stdout)


@pytest.mark.cc
@pytest.mark.parametrize("quantize", ["int8", "none"])
def test_a_sound_network_passes(quantize: str, cc: str, tmp_path: Path) -> None:
    unit = compiled(quantize)
    assert Program(unit, tmp_path, cc).result() == 0
    assert {"digits_self_test.c", "digits_self_test.h"} <= set(unit.report["files"])
    assert "digits_self_test.c" in unit.files["CMakeLists.txt"]


@pytest.mark.cc
def test_one_flipped_bit_in_a_weight_is_found_with_its_layer(
    need_cmake: None, tmp_path: Path
) -> None:
    program = Program(compiled(), tmp_path)
    source = tmp_path / "digits_weights.c"
    sound = source.read_text()
    arrays = [m for m in re.finditer(r"const int8_t digits_layer(\d+)_w\w*\[\d+\] = \{", sound)]
    assert len(arrays) >= 2
    rng = random.Random(5)
    for _ in range(20):
        start = rng.choice(arrays)
        end = sound.index("};", start.end())
        number = rng.choice(list(re.finditer(r"-?\d+", sound[start.end() : end])))
        byte = (int(number[0]) & 0xFF) ^ (1 << rng.randrange(8))
        flipped = byte - 256 if byte > 127 else byte
        at, to = start.end() + number.start(), start.end() + number.end()
        source.write_text(f"{sound[:at]}{flipped}{sound[to:]}")
        assert program.result("digits_weights.c") == 1 + int(start[1])
    source.write_text(sound)
    assert program.result("digits_weights.c") == 0


@pytest.mark.cc
@pytest.mark.parametrize("quantize", ["int8", "none"])
def test_the_first_layer_with_other_results_is_named(
    quantize: str, need_cmake: None, tmp_path: Path
) -> None:
    unit = compiled(quantize)
    program = Program(unit, tmp_path)
    source = tmp_path / "digits.c"
    sound = source.read_text()
    layer = len(unit.layers) // 2
    offset = unit.layers[layer][0].offset
    hook = f"    DIGITS_HOOK_END({layer});"
    assert sound.count(hook) == 1
    broken = f"    arena->bytes[{offset + 3}] = (uint8_t)(arena->bytes[{offset + 3}] ^ 0x40u);\n"
    source.write_text(sound.replace(hook, broken + hook))
    assert program.result("digits.c") == 1 + layer


@pytest.mark.cc
@pytest.mark.parametrize(
    "case",
    ["A23_maxpool_indices", "B13_reshape_0_m1", "G14_float16_io", "G18_zero_size_concat"],
)
def test_networks_of_every_type_have_one(
    case: str, shared: Path, need_cmake: None, tmp_path: Path
) -> None:
    path = shared / "cases" / f"{case}.onnx"
    unit = glowmcu.compile(path, name="digits", self_test=True).compilation.unit
    assert Program(unit, tmp_path).result() == 0


@pytest.mark.cc
def test_it_costs_little_flash(tmp_path: Path, arm_gcc: str) -> None:
    unit = compiled(target="cortex-m4")
    unit.write(tmp_path)
    command = [arm_gcc, *unit.target.flags, "-Os", "-c", "digits_self_test.c", "-o", "test.o"]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run(
        ["arm-none-eabi-size", "test.o"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    text, data, bss = map(int, done.stdout.splitlines()[1].split()[:3])
    golden = sum(slot.type.nbytes for slot in (*unit.inputs, *unit.outputs))
    assert text + data < 600 + golden + 48 * len(unit.layers)
    assert bss <= 16


@pytest.mark.qemu
@pytest.mark.parametrize("name", ["mps2-an386", "riscv32"])
def test_firmware_calls_it(name: str, qemu: None, need_make: None, tmp_path: Path) -> None:
    unit = compiled(target=board(name).target)
    firmware(unit, board(name)).write(tmp_path)
    done = subprocess.run(
        ["make", "run"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    source = tmp_path / "digits.c"
    hook = "    DIGITS_HOOK_END(1);"
    assert hook in source.read_text()
    broken = f"    arena->bytes[{unit.layers[1][0].offset}] ^= 1u;\n"
    source.write_text(source.read_text().replace(hook, broken + hook))
    done = subprocess.run(
        ["make", "run"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode != 0
    assert "FAILED, result 0x00000002" in done.stdout + done.stderr
