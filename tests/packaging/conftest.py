"""Fixtures of the packaging tests: the packages, built once, from what git tracks."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from commands import run

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the files that git tracks, and some that it ignores."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    folder = tmp_path_factory.mktemp("checkout")
    for name in run("git", "ls-files", "-z", cwd=ROOT).split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes((ROOT / name).read_bytes())
    (folder / "runtime_c" / "left_over.o").write_bytes(b"")
    (folder / "boards" / "__pycache__").mkdir()
    (folder / "boards" / "__pycache__" / "left_over.pyc").write_bytes(b"")
    return folder


@pytest.fixture(scope="session")
def packages(checkout: Path) -> Path:
    """The folder in which the sdist, and the wheel made of it, are."""
    pytest.importorskip("build")
    pytest.importorskip("hatchling")
    run(sys.executable, "-m", "build", "--no-isolation", ".", cwd=checkout)
    return checkout / "dist"
