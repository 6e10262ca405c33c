"""The documented example of layer hooks: builds in a firmware project and prints its figures."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from glowmcu import demo
from glowmcu.cli import main

EXAMPLE = Path(__file__).resolve().parent.parent.parent / "examples" / "layer_cycles"


@pytest.mark.qemu
@pytest.mark.parametrize("name", ["microbit", "mps2-an386", "riscv32"])
def test_it_prints_every_layer(name: str, qemu: None, need_make: None, tmp_path: Path) -> None:
    arguments = ["firmware", str(demo.model_path()), "--board", name, "--name", "digits"]
    with pytest.raises(SystemExit) as stop:
        main([*arguments, "--project", str(tmp_path)])
    assert stop.value.code == 0
    for file in EXAMPLE.iterdir():
        shutil.copy(file, tmp_path)
    flags = '-DDIGITS_HOOK_HEADER=\\"layer_cycles.h\\" -Wall -Wextra -Wconversion -Werror'
    clock = "QEMUFLAGS=-icount shift=6,align=off,sleep=off"
    done = subprocess.run(
        ["make", "run", f"EXTRA_CFLAGS={flags}", clock],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    source = (tmp_path / "digits.h").read_text()
    count = int(re.search(r"DIGITS_LAYER_COUNT (\d+)", source)[1])
    found = {int(m[1]): int(m[2]) for m in re.finditer(r"layer (\d+): (\d+) cycles", said)}
    assert sorted(found) == list(range(count))
    assert max(found.values()) > 100
    assert min(found.values()) < 10_000_000
