"""Boards: the memory map, processor and emulator that each boards/*/board.toml describes."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Template

from glowmcu import resources
from glowmcu.errors import OptionError
from glowmcu.targets.target import target


@dataclass(frozen=True)
class Region:
    """A range of addresses."""

    origin: int
    length: int

    def __contains__(self, address: int) -> bool:
        return self.origin <= address < self.origin + self.length


@dataclass(frozen=True)
class Board:
    """A board that QEMU emulates.

    target   name of the processor's target
    startup  file in boards/common that starts the processor
    qemu     command line of the emulator without the image
    stack    bytes reserved for the stack at the bottom of the RAM
    clock    ticks per second of board_clock() in QEMU
    memory   flash, ram and, where the vectors are elsewhere than at the start of flash, vectors
    """

    name: str
    summary: str
    target: str
    startup: str
    qemu: tuple[str, ...]
    stack: int
    clock: int
    memory: Mapping[str, Region]

    @property
    def flash_bytes(self) -> int:
        """Bytes of flash for code and constants."""
        return self.memory["flash"].length

    @property
    def ram_bytes(self) -> int:
        """Bytes of RAM, the stack included."""
        return self.memory["ram"].length

    def linker_script(self) -> str:
        """Return the linker script made from boards/common/link.ld.in."""
        access = {"flash": "rx", "vectors": "rx", "ram": "rwx"}
        lines = [
            f"    {key.upper()} ({access[key]}) : "
            f"ORIGIN = {region.origin:#010x}, LENGTH = {region.length:#x}"
            for key, region in self.memory.items()
        ]
        vectors = "VECTORS" if "vectors" in self.memory else "FLASH"
        template = Template((common_folder() / "link.ld.in").read_text(encoding="utf-8"))
        return template.substitute(memory="\n".join(lines), VECTORS=vectors, stack=self.stack)


def common_folder() -> Path:
    """Return the folder of the sources that all boards share."""
    return resources.folder("boards") / "common"


@cache
def list_boards() -> tuple[Board, ...]:
    """Return every board, sorted by name."""
    files = resources.folder("boards").glob("*/board.toml")
    return tuple(sorted((_load(file) for file in files), key=lambda board: board.name))


def board(name: str) -> Board:
    """Return the board `name`; raise OptionError that lists them all for an unknown name."""
    boards = {b.name: b for b in list_boards()}
    found = boards.get(name.replace("_", "-"))
    if found is None:
        raise OptionError(f"there is no board '{name}'", hint=f"one of: {', '.join(boards)}")
    return found


def _load(file: Path) -> Board:
    data = tomllib.loads(file.read_text(encoding="utf-8"))
    return Board(
        name=file.parent.name.replace("_", "-"),
        summary=data["summary"],
        target=target(data["target"]).name,
        startup=data["startup"],
        qemu=tuple(data["qemu"]),
        stack=data["stack"],
        clock=data["clock"],
        memory={name: Region(**region) for name, region in data["memory"].items()},
    )
