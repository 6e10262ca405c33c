"""The commands about boards: firmware, profile, fit, boards."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from glowmcu import demo
from glowmcu.cli import main
from glowmcu.targets.board import board, emulated_boards, list_boards

MODEL = str(demo.model_path())
INT8 = ["--quantize", "int8", "--calibration", str(demo.calibration_path()), "--name", "digits"]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    said = capsys.readouterr()
    return int(stop.value.code or 0), said.out + said.err


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo network, quantized and compiled to portable C, as a folder."""
    folder = tmp_path_factory.mktemp("digits")
    with pytest.raises(SystemExit):
        main(["compile", MODEL, "-o", str(folder), "--self-test", *INT8, "-q"])
    return folder


@pytest.mark.cross
@pytest.mark.parametrize("name", [b.name for b in list_boards() if b.startup])
def test_an_image_is_built_for_every_board_that_boots_one(
    name: str, compiled: Path, qemu: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image = tmp_path / "made" / "digits.elf"
    status, said = run(capsys, "firmware", str(compiled), "--board", name, "-o", str(image))
    assert status == 0, said
    assert {p.name for p in image.parent.iterdir()} == {"digits.elf", "digits.bin", "digits.hex"}
    used = {
        m[0]: int(m[1].replace(",", "")) for m in re.findall(r"(\w+) +[█░]+ +([\d,]+) of", said)
    }
    assert image.with_suffix(".bin").stat().st_size <= used["flash"] + 64 or "mps3" in name
    assert 64 < used["stack"] < 1000
    assert used["RAM"] > board(name).stack
    assert ("qemu-system" in said) == board(name).emulated


@pytest.mark.qemu
def test_firmware_of_a_model_is_for_the_core_of_the_board(
    qemu: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image = tmp_path / "digits.elf"
    status, said = run(capsys, "firmware", MODEL, "--board", "mps2-an386", "-o", str(image), *INT8)
    assert status == 0, said
    command = said.split("to run it: ")[1].splitlines()[0].split()
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0
    assert "digits: passed" in done.stdout + done.stderr


def test_a_board_that_boots_no_plain_image_is_refused(
    compiled: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, said = run(capsys, "firmware", str(compiled), "--board", "pico")
    assert status == 1
    assert "no image for the board pico" in said
    assert "glowmcu export" in said


@pytest.mark.cross
def test_what_does_not_fit_is_told_in_bytes_with_boards_that_do(
    qemu: None, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    arguments = ["--shape", "image=40,1,8,8", "-o", str(tmp_path / "x.elf")]
    status, said = run(capsys, "firmware", MODEL, "--board", "microbit", *arguments)
    assert status == 1
    assert re.search(r"ram of 16384 bytes is \d+ bytes too small", said)
    assert "a larger board: disco-f746ng" in said
    assert not (tmp_path / "x.elf").exists()


def test_an_unknown_board_is_answered_with_the_nearest_names(
    compiled: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, said = run(capsys, "firmware", str(compiled), "--board", "nucleo-f446r")
    assert status == 1
    assert "did you mean nucleo-f446re" in said


@pytest.mark.qemu
def test_the_profile_has_every_layer(
    compiled: Path, qemu: None, capsys: pytest.CaptureFixture[str]
) -> None:
    status, said = run(capsys, "profile", str(compiled), "--board", "mps2-an386", "--json")
    assert status == 0, said
    result = json.loads(said)
    report = json.loads((compiled / "report.json").read_text())
    assert [x["kernel"] for x in result["layers"]] == [x["kernel"] for x in report["layers"]]
    assert sum(x["instructions"] for x in result["layers"]) == result["instructions"]
    assert sum(x["share"] for x in result["layers"]) == pytest.approx(1)
    status, said = run(capsys, "profile", str(compiled), "--board", "mps2-an386")
    assert f"{result['instructions']:,} instructions per inference" in said


def test_a_board_that_is_not_emulated_is_not_run(
    compiled: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, said = run(capsys, "profile", str(compiled), "--board", "nrf52840-dk")
    assert status == 1
    assert "cannot be run here" in said
    assert "mps2-an386, which has the same core" in said


@pytest.mark.qemu
def test_fit_tells_boards_apart(qemu: None, capsys: pytest.CaptureFixture[str]) -> None:
    chosen = ["--board", "microbit", "--board", "pico", "--board", "mps2-an385"]
    status, said = run(capsys, "fit", MODEL, "--shape", "image=10,1,8,8", *chosen)
    assert status == 0, said
    rows = {line.split()[0]: line for line in said.splitlines() if "/" in line}
    assert re.search(r" - +lacks [\d,]+ B RAM", rows["microbit"])
    assert re.search(r" ms +yes", rows["pico"])


def test_the_boards_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    status, said = run(capsys, "boards", "--markdown")
    assert status == 0
    rows = [line for line in said.splitlines() if " yes | " in line or " no | " in line]
    assert len(rows) == len(list_boards()) == 15
    assert sum("| yes | yes |" in row for row in rows) == len(emulated_boards()) == 7
    assert any("nucleo-f446re" in row and "| 180 |" in row for row in rows)
