"""A project outside the checkout, with the installed wheel only: each way to build a firmware."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import sysconfig
from pathlib import Path

import onnx
import pytest
from commands import run

_TOOL = """\
#!/bin/sh
# -S: no .pth file leads to an editable install; the wheel comes first
PYTHONPATH='{wheel}:{packages}' exec '{python}' -S "$@"
"""
_MAIN = """\
#include "digits_self_test.h"
static digits_arena arena;
int main(void)
{
    return (int)digits_self_test(&arena);
}
"""
_PROJECT = """\
cmake_minimum_required(VERSION 3.21)
project(app C)
include("${GLOWMCU_CMAKE}/glowmcu_add_model.cmake")
glowmcu_add_model(digits digits.onnx TARGET ${PROCESSOR} OPTIONS --self-test)
if(CMAKE_CROSSCOMPILING)
    add_library(app STATIC main.c)
else()
    add_executable(app main.c)
endif()
target_link_libraries(app PRIVATE digits)
"""


class Install:
    """A Python that has the wheel and what it depends on, but not the checkout."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        packages = folder / "site"
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index"]
        command += ["--disable-pip-version-check", "--target", str(packages), str(wheel)]
        run(*command, cwd=folder)
        self.python = folder / "python"
        self.python.write_text(
            _TOOL.format(
                wheel=packages,
                packages=sysconfig.get_path("purelib"),
                python=sys.executable,
            )
        )
        self.python.chmod(self.python.stat().st_mode | stat.S_IXUSR)
        self.packages = packages

    def glowmcu(self, *arguments: str | Path, cwd: Path) -> str:
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        return run(self.python, "-m", "glowmcu", *arguments, cwd=cwd, env=environment)


@pytest.fixture(scope="module")
def install(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Install:
    (wheel,) = packages.glob("*.whl")
    return Install(tmp_path_factory.mktemp("install"), wheel)


@pytest.fixture(scope="module")
def compiled(install: Install, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo network, quantized and compiled by the wheel."""
    folder = tmp_path_factory.mktemp("project")
    for file in ("digits.onnx", "digits_calibration.npz"):
        (folder / file).write_bytes((install.packages / "glowmcu" / "demo" / file).read_bytes())
    quantize = ("--quantize", "int8", "--calibration", "digits_calibration.npz", "-q")
    install.glowmcu("compile", "digits.onnx", *quantize, "-o", "out", "--self-test", cwd=folder)
    return folder / "out"


@pytest.fixture
def project(compiled: Path, tmp_path: Path) -> Path:
    """A folder with the demo network and a main."""
    (tmp_path / "digits.onnx").write_bytes((compiled.parent / "digits.onnx").read_bytes())
    (tmp_path / "main.c").write_text(_MAIN)
    return tmp_path


def test_the_wheel_is_what_runs(install: Install, tmp_path: Path) -> None:
    said = run(install.python, "-c", "import glowmcu; print(glowmcu.__file__)", cwd=tmp_path)
    assert said.strip() == str(install.packages / "glowmcu" / "__init__.py")
    folder = Path(install.glowmcu("--cmake-dir", cwd=tmp_path).strip())
    assert folder == install.packages / "glowmcu" / "_data" / "cmake"
    assert (folder / "glowmcu_add_model.cmake").is_file()


@pytest.mark.cc
def test_plain_gcc(compiled: Path, project: Path, need_cmake: None) -> None:
    sources = sorted(compiled.glob("*.c"))
    run("gcc", "-O2", f"-I{compiled}", "main.c", *sources, "-lm", "-o", "app", cwd=project)
    run(project / "app", cwd=project)


@pytest.mark.qemu
def test_plain_gcc_for_a_board(install: Install, compiled: Path, project: Path, qemu: None) -> None:
    board = ("--board", "mps2-an386")
    install.glowmcu("firmware", compiled, *board, "--project", "fw", cwd=project)
    folder = project / "fw"
    run(
        *("arm-none-eabi-gcc", "-mthumb", "-mcpu=cortex-m4", "-mfloat-abi=hard"),
        *("-mfpu=fpv4-sp-d16", "-O2", "-ffp-contract=off", "--specs=nano.specs"),
        *("-nostartfiles", *sorted(folder.glob("*.c")), "-T", "link.ld", "-o", "app.elf"),
        cwd=folder,
    )
    semihosting = ("-semihosting-config", "enable=on,target=native")
    done = subprocess.run(
        ["qemu-system-arm", "-M", "mps2-an386", "-nographic", *semihosting, "-kernel", "app.elf"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
    assert "digits: passed" in done.stdout + done.stderr


@pytest.mark.cross
@pytest.mark.parametrize("processor", ["host", "cortex-m4"])
def test_cmake_with_glowmcu_add_model(
    processor: str, install: Install, project: Path, need_cmake: None, arm_gcc: str
) -> None:
    (project / "CMakeLists.txt").write_text(_PROJECT)
    toolchain = install.packages / "glowmcu/_data/boards/common/toolchain-arm.cmake"
    options = [f"-DGLOWMCU_PYTHON={install.python}", f"-DPROCESSOR={processor}"]
    options.append(f"-DGLOWMCU_CMAKE={install.glowmcu('--cmake-dir', cwd=project).strip()}")
    if processor != "host":
        options += [f"-DCMAKE_TOOLCHAIN_FILE={toolchain}", f"-DGLOWMCU_CPU={processor}"]
    run("cmake", "-S", ".", "-B", "build", *options, cwd=project)
    run("cmake", "--build", "build", cwd=project)
    if processor == "host":
        run(project / "build" / "app", cwd=project)
        header = project / "build" / "digits.glowmcu" / "digits.h"
        before = header.read_text()
        model = onnx.load(project / "digits.onnx")
        model.doc_string = "another"
        onnx.save(model, project / "digits.onnx")
        run("cmake", "--build", "build", cwd=project)
        assert header.read_text() != before  # it has the hash of the model
    else:
        assert (project / "build" / "libapp.a").is_file()


@pytest.mark.cross
@pytest.mark.parametrize(("kind", "public"), [("platformio", "include"), ("arduino", "src")])
def test_exported_libraries(
    kind: str, public: str, install: Install, compiled: Path, project: Path, arm_gcc: str
) -> None:
    """Compiled as these tools do: each C file with both folders, the user's with the public one."""
    install.glowmcu("export", compiled, "--format", kind, "-o", "digits", cwd=project)
    folders = [f"-Idigits/{name}" for name in dict.fromkeys((public, "src"))]
    flags = ["-mthumb", "-mcpu=cortex-m4", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16", "-Os"]
    flags += ["-ffunction-sections", "-fdata-sections", "-Wall", "-Werror", "-c"]
    for source in sorted((project / "digits" / "src").glob("*.c")):
        run(arm_gcc, *flags, *folders, source, "-o", f"{source.stem}.o", cwd=project)
    run(arm_gcc, *flags, f"-Idigits/{public}", "main.c", "-o", "main.o", cwd=project)
    objects = sorted(p.name for p in project.glob("*.o"))
    link = ["--specs=nosys.specs", *flags[:4], "-Wl,--gc-sections", *objects, "-lm"]
    run(arm_gcc, *link, "-o", "app.elf", cwd=project)
