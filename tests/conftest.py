"""Fixtures of all tests: programs and data; a test is skipped where they are missing."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require-tools",
        action="store_true",
        help="fail, instead of skipping, where a compiler or emulator is missing",
    )
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write the figures that tests compare with, instead of comparing",
    )


def _need(request: pytest.FixtureRequest, *programs: str) -> None:
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        reason = f"not installed: {', '.join(missing)}"
        if request.config.getoption("--require-tools"):
            pytest.fail(reason)
        pytest.skip(reason)


@pytest.fixture
def need(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Call it with the names of the programs that a test needs."""
    return lambda *programs: _need(request, *programs)


@pytest.fixture(params=["gcc", "clang"])
def cc(request: pytest.FixtureRequest) -> str:
    """Name of a host C compiler; the test runs once with each."""
    _need(request, request.param)
    return str(request.param)


@pytest.fixture
def arm_gcc(request: pytest.FixtureRequest) -> str:
    """Name of the Arm cross compiler."""
    _need(request, "arm-none-eabi-gcc")
    return "arm-none-eabi-gcc"


@pytest.fixture
def float_calls(
    request: pytest.FixtureRequest, arm_gcc: str, tmp_path: Path
) -> Callable[[dict[str, str]], list[str]]:
    """Call it with C files: what they call to compute in float on a core without any."""
    _need(request, "arm-none-eabi-nm")

    def calls(files: dict[str, str]) -> list[str]:
        for name, text in files.items():
            if name.endswith((".c", ".h")):
                (tmp_path / name).write_text(text, encoding="utf-8")
        sources = [n for n in files if n.endswith(".c")]
        flags = ["-mcpu=cortex-m0", "-mthumb", "-mfloat-abi=soft", "-std=c99", "-O1", "-c", "-I."]
        subprocess.run([arm_gcc, *flags, *sources], cwd=tmp_path, check=True)
        objects = [n.removesuffix(".c") + ".o" for n in sources]
        listing = subprocess.run(
            ["arm-none-eabi-nm", "-u", *objects],
            cwd=tmp_path,
            check=True,
            capture_output=True,
            text=True,
        )
        return re.findall(r"__aeabi_(?:[fd]|u?[il]2[fd])\w*|\b(?:sqrt|exp|tanh)f\b", listing.stdout)

    return calls


@pytest.fixture
def riscv_gcc(request: pytest.FixtureRequest) -> str:
    """Name of the RISC-V cross compiler."""
    _need(request, "riscv64-unknown-elf-gcc")
    return "riscv64-unknown-elf-gcc"


@pytest.fixture
def qemu(request: pytest.FixtureRequest, arm_gcc: str, riscv_gcc: str) -> None:
    """The cross compilers and the emulators of every board."""
    _need(request, "qemu-system-arm", "qemu-system-riscv32")


@pytest.fixture
def need_make(request: pytest.FixtureRequest) -> None:
    """The program make."""
    _need(request, "make")


@pytest.fixture
def need_cmake(request: pytest.FixtureRequest) -> None:
    """CMake and a host compiler."""
    _need(request, "cmake", "gcc")


@pytest.fixture
def shared() -> Path:
    """The folder of models and data beside the checkout."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("there is no folder 'shared' with models and data beside the checkout")
    return folder
