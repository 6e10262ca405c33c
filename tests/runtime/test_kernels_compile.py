"""Every portable kernel compiles without a warning, for every kind of processor and as C++."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / "runtime_c"
SOURCES = sorted((ROOT / "src" / "c99").glob("*.c"))
WARNINGS = (
    "-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wdouble-promotion -Wundef "
    "-Werror -ffp-contract=off -c"
).split()
STRICT = ["-std=c99", *WARNINGS]
HARD = "-mfloat-abi=hard"
COMPILERS = {
    "gcc-O2": ["gcc", "-O2", *STRICT],
    "gcc-O3": ["gcc", "-O3", *STRICT],
    "gcc-m32": ["gcc", "-m32", "-O2", *STRICT],
    "clang": ["clang", "-O2", *STRICT],
    "c++": ["g++", "-std=c++11", "-x", "c++", "-O1", *WARNINGS],
    "cortex-m0": ["arm-none-eabi-gcc", "-mthumb", "-mcpu=cortex-m0", "-Os", *STRICT],
    "cortex-m4": [
        *("arm-none-eabi-gcc", "-mthumb", "-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16", HARD, "-O2"),
        *STRICT,
    ],
    "cortex-m55": ["arm-none-eabi-gcc", "-mthumb", "-mcpu=cortex-m55", HARD, "-O3", *STRICT],
    "riscv32": [
        *("riscv64-unknown-elf-gcc", "--specs=picolibc.specs", "-march=rv32imac", "-mabi=ilp32"),
        *("-O2", *STRICT),
    ],
}


@pytest.mark.cross
@pytest.mark.parametrize("name", COMPILERS)
def test_every_kernel_compiles_without_a_warning(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    command = COMPILERS[name]
    if shutil.which(command[0]) is None:
        missing = pytest.fail if request.config.getoption("--require-tools") else pytest.skip
        missing(f"not installed: {command[0]}")
    ran = subprocess.run(
        [*command, f"-I{ROOT / 'core'}", *SOURCES],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-4000:]
