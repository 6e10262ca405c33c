"""Firmware files for a user: an ELF image, .bin and .hex beside it, and the memory they take."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from glowmcu.core.types import Array
from glowmcu.emit.unit import CodeUnit
from glowmcu.errors import OptionError, VerificationError
from glowmcu.targets.board import Board
from glowmcu.verify.firmware import main_source
from glowmcu.verify.image import Footprint, build_image, measure, processor_of
from glowmcu.verify.tools import find_tool

FORMATS = {".bin": ("-O", "binary"), ".hex": ("-O", "ihex")}
_SLOW = "flash_slow"


@dataclass(frozen=True)
class Delivered:
    """What was built.

    files  the ELF image first
    stack  bytes of stack that the image takes at most, as the compiler says; calls into the C
           library are not counted
    """

    files: tuple[Path, ...]
    footprint: Footprint
    stack: int


def deliver(
    unit: CodeUnit,
    board: Board,
    output: Path,
    sample: Mapping[str, Array] | None = None,
    *,
    optimize: str = "-O2",
) -> Delivered:
    """Build an image whose main tests the network, as the file `output`.

    sample  inputs of the test, where the network has no self-test of its own
    Raises DoesNotFitError, ToolMissingError, OptionError or VerificationError.
    """
    with tempfile.TemporaryDirectory(prefix="glowmcu-") as name:
        folder = Path(name)
        sources = {"main.c": main_source(unit, sample)}
        flags = ("-fstack-usage",)
        image = build_image(unit, board, sources, folder, optimize=optimize, flags=flags)
        stack = _stack(unit, folder)
        objcopy = find_tool(processor_of(unit, board).compiler + "objcopy")
        places = [output, *(output.with_suffix(suffix) for suffix in FORMATS)]
        footprint = measure(image, board)
        slow = footprint.regions.get("flash_slow", 0) > 0
        leave, only = ("-R", f".{_SLOW}"), ("-j", f".{_SLOW}")
        _convert(objcopy, image, ".hex", *FORMATS[".hex"])
        _convert(objcopy, image, ".bin", *FORMATS[".bin"], *(leave if slow else ()))
        if slow:  # far from the rest, which a .bin cannot say
            _convert(objcopy, image, f".{_SLOW}.bin", *FORMATS[".bin"], *only)
            places.append(output.with_suffix(f".{_SLOW}.bin"))
        try:
            output.parent.mkdir(parents=True, exist_ok=True)
            for place in places:
                suffix = place.name.removeprefix(output.stem) if place != output else ".elf"
                shutil.copyfile(image.with_suffix(suffix), place)
        except OSError as error:
            raise OptionError(f"cannot write '{output}'", why=str(error)) from None
        return Delivered(tuple(places), footprint, stack)


def _convert(objcopy: str, image: Path, suffix: str, *options: str) -> None:
    command = [objcopy, *options, str(image), str(image.with_suffix(suffix))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise VerificationError("the image cannot be converted", why=done.stderr.strip())


def _stack(unit: CodeUnit, folder: Path) -> int:
    """Return the frames on the way to the network's run, and the largest of a function below."""
    way = {"board_start", "main", f"{unit.name}_self_test", f"{unit.name}_run"}
    total, deepest = 0, 0
    for file in folder.glob("*.su"):
        for line in file.read_text(encoding="utf-8").splitlines():
            where, size, _kind = line.split("\t")
            if where.rsplit(":", 1)[1] in way:
                total += int(size)
            else:
                deepest = max(deepest, int(size))
    return total + deepest
