"""glowmcu_add_model(): a CMake project compiles an ONNX model and links it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from glowmcu import demo

ROOT = Path(__file__).resolve().parent.parent.parent
_PROJECT = """\
cmake_minimum_required(VERSION 3.21)
project(app C)
include("{root}/cmake/glowmcu_add_model.cmake")
glowmcu_add_model(digits "{model}" {options})
add_executable(app main.c)
target_link_libraries(app PRIVATE digits)
"""
_MAIN = """\
#include "digits.h"
static digits_arena arena;
int main(void)
{
    digits_init(&arena);
    return digits_run(&arena, NULL, NULL);
}
"""


def cmake(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = ["cmake", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def project(folder: Path, options: str, model: Path) -> None:
    text = _PROJECT.format(root=ROOT, model=model, options=options)
    (folder / "CMakeLists.txt").write_text(text)
    (folder / "main.c").write_text(_MAIN)


@pytest.mark.cc
def test_a_model_becomes_a_library(need_cmake: None, tmp_path: Path) -> None:
    project(tmp_path, f'QUANTIZE int8 CALIBRATION "{demo.calibration_path()}"', demo.model_path())
    build = tmp_path / "build"
    done = cmake("-S", tmp_path, "-B", build, f"-DGLOWMCU_PYTHON={sys.executable}")
    assert done.returncode == 0, done.stderr
    done = cmake("--build", build)
    assert done.returncode == 0, done.stdout + done.stderr
    assert subprocess.run([build / "app"], check=False).returncode == 0


@pytest.mark.cc
def test_an_error_of_the_compiler_is_shown(need_cmake: None, tmp_path: Path) -> None:
    project(tmp_path, "", tmp_path / "absent.onnx")
    done = cmake("-S", tmp_path, "-B", tmp_path / "b", f"-DGLOWMCU_PYTHON={sys.executable}")
    assert done.returncode != 0
    assert "absent.onnx" in done.stderr
