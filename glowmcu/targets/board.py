"""Boards: the memory map, processor and emulator that each boards/*/board.toml describes."""

from __future__ import annotations

import difflib
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
    """A board: real, or one that QEMU emulates.

    target   name of the processor's target
    startup  file in boards/common that starts the processor; "" where only the board's own
             development kit can make an image that boots
    qemu     command line of the emulator without the image; () where nothing emulates the board
    stack    bytes reserved for the stack at the bottom of the RAM
    clock    of the processor, which board_clock() counts: ticks per second
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
    def emulated(self) -> bool:
        """Tell whether QEMU runs images for this board."""
        return bool(self.qemu)

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


def emulated_boards() -> tuple[Board, ...]:
    """Return the boards that QEMU runs, sorted by name."""
    return tuple(b for b in list_boards() if b.emulated)


def board(name: str) -> Board:
    """Return the board `name`; raise OptionError for an unknown one, nearest names first."""
    boards = {b.name: b for b in list_boards()}
    found = boards.get(name.replace("_", "-"))
    if found is None:
        near = difflib.get_close_matches(name.replace("_", "-").lower(), boards, n=3, cutoff=0.5)
        known = f"one of: {', '.join(boards)}"
        raise OptionError(
            f"there is no board '{name}'",
            hint=f"did you mean {' or '.join(near)}? {known}" if near else known,
        )
    return found


def need_emulator(on: Board) -> None:
    """Raise OptionError where nothing emulates the board."""
    if not on.emulated:
        same = [b.name for b in emulated_boards() if b.target == on.target]
        raise OptionError(
            f"the board {on.name} cannot be run here",
            why="no emulator of it is known",
            hint=(f"run on {' or '.join(same)}, which has the same core" if same else "")
            or f"run on one of: {', '.join(b.name for b in emulated_boards())}",
        )


def need_startup(on: Board) -> None:
    """Raise OptionError where glowmcu cannot make an image that the board boots."""
    if not on.startup:
        raise OptionError(
            f"no image for the board {on.name} can be built without its development kit",
            why="its boot ROM wants more than a vector table in front of the program",
            hint="`glowmcu export` makes a component for its kit; `glowmcu fit` tells the sizes",
        )


def _load(file: Path) -> Board:
    data = tomllib.loads(file.read_text(encoding="utf-8"))
    return Board(
        name=file.parent.name.replace("_", "-"),
        summary=data["summary"],
        target=target(data["target"]).name,
        startup=data.get("startup", ""),
        qemu=tuple(data.get("qemu", ())),
        stack=data["stack"],
        clock=data["clock"],
        memory={name: Region(**region) for name, region in data["memory"].items()},
    )
