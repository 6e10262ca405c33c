"""Wheel, sdist and editable install: each has the files that git tracks, and they are found."""

from __future__ import annotations

import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest
from commands import run

ROOT = Path(__file__).resolve().parent.parent.parent
SHIPPED = ("templates", "runtime_c", "boards", "cmake", "glowmcu")

pytest.importorskip("build")
pytest.importorskip("hatchling")


def tracked() -> set[str]:
    names = run("git", "ls-files", "-z", *SHIPPED, cwd=ROOT).split("\0")
    return {name for name in names if name and (ROOT / name).is_file()}


def test_the_wheel_has_exactly_the_tracked_files(packages: Path) -> None:
    (wheel,) = packages.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = {n for n in archive.namelist() if ".dist-info/" not in n}
    expected = {n if n.startswith("glowmcu/") else f"glowmcu/_data/{n}" for n in tracked()}
    assert packed == expected


def test_the_sdist_has_the_tracked_files(packages: Path) -> None:
    (sdist,) = packages.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        packed = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    assert tracked() <= packed
    assert not {name for name in packed if "left_over" in name}


def test_the_wheel_works_where_it_is_unpacked(packages: Path, tmp_path: Path) -> None:
    (wheel,) = packages.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    program = (
        "from glowmcu import demo, resources\n"
        "from glowmcu.targets.board import list_boards\n"
        "names = [b.name for b in list_boards()]\n"
        "print(resources.folder('templates'), names, demo.held_out()[0].shape)"
    )
    said = run(sys.executable, "-c", program, cwd=tmp_path)
    assert str(tmp_path / "glowmcu" / "_data" / "templates") in said
    assert "mps2-an386" in said


def test_an_editable_install_reads_the_checkout(checkout: Path, tmp_path: Path) -> None:
    pytest.importorskip("editables")
    run(
        *(sys.executable, "-m", "pip", "install", "--no-build-isolation", "--no-deps", "--quiet"),
        *("--disable-pip-version-check", "--target", str(tmp_path), "-e", str(checkout)),
        cwd=tmp_path,
    )
    program = (
        "import sys, site\n"
        f"sys.path[:0] = [{str(tmp_path)!r}]\n"
        f"sys.path.append({sysconfig.get_path('purelib')!r})\n"
        f"site.addsitedir({str(tmp_path)!r})\n"
        "import glowmcu.resources\n"
        "print(glowmcu.resources.folder('boards'))"
    )
    # -I -S: neither the working directory nor other installed packages lead to glowmcu
    said = run(sys.executable, "-I", "-S", "-c", program, cwd=tmp_path)
    assert said.strip() == str(checkout / "boards")
