"""The C of real networks is clean for every compiler, language and processor that users have."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

import pytest
from networks import model

from glowmcu.driver import compile_network
from glowmcu.emit.unit import CodeUnit
from glowmcu.options import Options
from glowmcu.targets.target import TARGETS

STRICT = (
    "-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wdouble-promotion -Werror"
).split()
NETWORKS = (("kws", "int8"), ("ic", "int8"), ("ww", "int8"), ("kws", "float"), ("vww", "float"))
HOST = [
    (compiler, (f"-std={language}", *mode))
    for compiler in ("gcc", "clang")
    for language, mode in (("c99", ()), ("c11", ()), ("c99", ("-m32",)))
]
CROSS = ("cortex-m0", "cortex-m4", "cortex-m55", "riscv32")


@cache
def unit(path: Path, target: str) -> CodeUnit:
    return compile_network(path, Options(target=target, specialize="all")).unit


def check(unit: CodeUnit, command: list[str], folder: Path) -> None:
    """Compile every source; any warning is an error."""
    unit.write(folder)
    done = subprocess.run(
        [*command, *STRICT, "-O2", "-c", "-I.", *unit.sources],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[:3000]


@pytest.mark.cc
@pytest.mark.parametrize(("name", "kind"), NETWORKS)
@pytest.mark.parametrize(("compiler", "flags"), HOST)
def test_host_compilers_have_no_complaint(
    shared: Path, tmp_path: Path, name: str, kind: str, compiler: str, flags: tuple[str, ...]
) -> None:
    check(unit(model(shared, name, kind), "host"), [compiler, *flags], tmp_path)


@pytest.mark.cross
@pytest.mark.parametrize(("name", "kind"), NETWORKS)
@pytest.mark.parametrize("target", CROSS)
def test_cross_compilers_have_no_complaint(
    shared: Path, tmp_path: Path, name: str, kind: str, target: str
) -> None:
    machine = TARGETS[target]
    library = ["--specs=picolibc.specs"] if target == "riscv32" else []
    command = [machine.compiler + "gcc", "-std=c99", *machine.flags, *library]
    check(unit(model(shared, name, kind), target), command, tmp_path)


@pytest.mark.cc
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_the_header_is_cpp(shared: Path, tmp_path: Path, compiler: str) -> None:
    found = unit(model(shared, "kws", "int8"), "host")
    found.write(tmp_path)
    (tmp_path / "user.cpp").write_text(
        f'#include "{found.name}.h"\nstatic {found.name}_arena arena;\n'
        f"int main() {{ {found.name}_init(&arena); return 0; }}\n"
    )
    done = subprocess.run(
        [compiler, "-std=c++11", *STRICT, "-c", "user.cpp"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[:3000]


@pytest.mark.cc
def test_two_networks_link_into_one_program(shared: Path, tmp_path: Path) -> None:
    names = ("first", "second")
    for name, network in zip(names, ("kws", "ww"), strict=True):
        path = model(shared, network, "int8")
        compile_network(path, Options(name=name)).unit.write(tmp_path / name)
    (tmp_path / "main.c").write_text(
        '#include "first.h"\n#include "second.h"\n'
        "static first_arena a;\nstatic second_arena b;\n"
        "int main(void)\n{\n    first_init(&a);\n    second_init(&b);\n"
        "    if (first_run(&a, NULL, NULL) != FIRST_OK) {\n        return 1;\n    }\n"
        "    return second_run(&b, NULL, NULL) == SECOND_OK ? 0 : 2;\n}\n"
    )
    sources = [str(p) for name in names for p in sorted((tmp_path / name).glob("*.c"))]
    include = ["-I", str(tmp_path / "first"), "-I", str(tmp_path / "second")]
    program = tmp_path / "program"
    subprocess.run(
        [
            "gcc",
            "-std=c99",
            *STRICT,
            "-O1",
            *include,
            *sources,
            str(tmp_path / "main.c"),
            "-lm",
            "-o",
            str(program),
        ],
        check=True,
    )
    assert subprocess.run([program], check=False).returncode == 0


def test_the_bytes_are_the_same_every_time(shared: Path) -> None:
    path = model(shared, "kws", "int8")
    first, second = (compile_network(path, Options(target="cortex-m4")).unit for _ in range(2))
    assert first.files == second.files
