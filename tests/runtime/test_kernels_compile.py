"""Every portable kernel compiles without a warning, for every kind of processor and as C++."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
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


M4_FPU = ["-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16", HARD]
TWINS = {
    "arm_dsp": ["-mcpu=cortex-m4"],
    "armv6m": ["-mcpu=cortex-m0"],
    "arm_fpu": M4_FPU,
    "arm_mve": ["-mcpu=cortex-m55", HARD],
}
HOST_TWINS = {
    "gcc": ["gcc", *STRICT],
    "clang": ["clang", *STRICT],
    "c++": ["g++", "-std=c++11", "-x", "c++", *WARNINGS],
}


@pytest.mark.cc
@pytest.mark.parametrize("name", HOST_TWINS)
@pytest.mark.parametrize("level", ["-O0", "-O3"])
def test_twins_of_the_host_compile_without_a_warning(
    name: str, level: str, tmp_path: Path, need: Callable[..., None]
) -> None:
    command = HOST_TWINS[name]
    need(command[0])
    place = ROOT / "src" / "x86_avx2"
    flags = ["-mavx2", level, f"-I{ROOT / 'core'}", f"-I{place}"]
    ran = subprocess.run(
        [*command, *flags, *sorted(place.glob("*.c"))],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-4000:]


ARM_COMPILERS = {
    "gcc": ["arm-none-eabi-gcc", "-mthumb"],
    "clang": ["clang", "--target=arm-none-eabi", "-mthumb"],
}


@pytest.mark.cross
@pytest.mark.parametrize("folder", TWINS)
@pytest.mark.parametrize("compiler", ARM_COMPILERS)
def test_twins_compile_without_a_warning(
    folder: str, compiler: str, tmp_path: Path, need: Callable[..., None]
) -> None:
    """Also without optimization, where assembly has one register less."""
    command = ARM_COMPILERS[compiler]
    need(command[0])
    place = ROOT / "src" / folder
    flags = [*STRICT, *TWINS[folder], f"-I{ROOT / 'core'}", f"-I{place}"]
    if compiler == "clang":
        library = Path(__file__).resolve().parent.parent / "support" / "fake_libc"
        flags += ["-ffreestanding", f"-I{library}", "-Wno-typedef-redefinition"]
    for level in ("-O0", "-O3"):
        ran = subprocess.run(
            [*command, level, *flags, *sorted(place.glob("*.c"))],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr[-4000:]
