"""Boards: the memory map, processor and emulator that each boards/*/board.toml describes."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from string import Template

from glowmcu import resources
from glowmcu.errors import OptionError
from glowmcu.targets.target import target

RAMS = ("ram_fast", "ram", "ram_slow")
FLASHES = ("flash", "flash_slow")
"""Names of regions of memory, the quickest first."""
_ACCESS = {"flash": "rx", "vectors": "rx", "ram": "rwx"}
_SECTIONS = {"ram_fast": ".bss", "ram_slow": ".bss", "flash_slow": ".rodata"}
_OTHER_DATA = 2048
"""Bytes of the main RAM for what a program has beside the stack and the arena."""


@dataclass(frozen=True)
class Region:
    """A range of addresses.

    setup  the application must make the memory accessible first: it is outside the chip
    """

    origin: int
    length: int
    setup: bool = False

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
    memory   flash, ram and, where the vectors are elsewhere than at the start of flash, vectors;
             ram_fast, ram_slow and flash_slow for arenas and weights that are placed by use
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

    def arena_region(self, size: int) -> str | None:
        """Return the quickest region of RAM that an arena fits into, None if there is none."""
        return next((r for r in RAMS if r in self.memory and self.arena_room(r) >= size), None)

    def slower_region(self, region: str, size: int) -> str | None:
        """Return the quickest RAM slower than a region that has room for `size` bytes."""
        rest = RAMS[RAMS.index(region) + 1 :]
        return next((r for r in rest if r in self.memory and self.arena_room(r) >= size), None)

    def arena_room(self, region: str) -> int:
        """Return the bytes that an arena can have in a region of RAM."""
        other = self.stack + _OTHER_DATA if region == "ram" else 0
        return self.memory[region].length - other

    @property
    def largest_ram(self) -> tuple[str, Region]:
        """The RAM with most room for an arena, and its name."""
        name = max((r for r in RAMS if r in self.memory), key=self.arena_room)
        return name, self.memory[name]

    @property
    def largest_room(self) -> int:
        """Bytes that an arena can have at most."""
        return self.arena_room(self.largest_ram[0])

    def region_of(self, address: int) -> str:
        """Return the region that holds an address, "" where there is no memory."""
        return next((n for n, r in self.memory.items() if address in r), "")

    def linker_script(self) -> str:
        """Return the linker script made from boards/common/link.ld.in."""
        lines = [
            f"    {key.upper()} ({_ACCESS[key.split('_')[0]]}) : "
            f"ORIGIN = {region.origin:#010x}, LENGTH = {region.length:#x}"
            for key, region in self.memory.items()
        ]
        vectors = "VECTORS" if "vectors" in self.memory else "FLASH"
        template = Template((common_folder() / "link.ld.in").read_text(encoding="utf-8"))
        return template.substitute(
            memory="\n".join(lines),
            VECTORS=vectors,
            stack=self.stack,
            regions="\n".join(_output_section(n) for n in self.memory if n in _SECTIONS),
        )


def section(region: str) -> str:
    """Return the section of what is placed in a region, "" where it needs no name of its own.

    A linker script that does not know it takes it for an ordinary .bss or .rodata.
    """
    return f"{_SECTIONS[region]}.{region}" if region in _SECTIONS else ""


def _output_section(region: str) -> str:
    kind = " (NOLOAD)" if region in RAMS else ""
    return f"    .{region}{kind} : {{ *({section(region)}) }} > {region.upper()}\n"


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
    """Return the board `name`, or that of a file whose name ends in .toml.

    Raises OptionError for an unknown one, nearest names first.
    """
    if name.endswith(".toml"):
        return _load_own(Path(name))
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


def boards_with_room(arena: int, instead_of: Board) -> list[Board]:
    """Return the boards with room for an arena that run code for another one."""
    own = target(instead_of.target)
    return [
        b
        for b in list_boards()
        if b.largest_room >= arena
        and target(b.target).compiler == own.compiler
        and not target(b.target).lacks(own)
    ]


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


def _load_own(file: Path) -> Board:
    try:
        found = _load(file)
    except OSError as error:
        raise OptionError(f"cannot read the board '{file}'", why=error.strerror or "") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        missing = f"{error.args[0]} is missing" if isinstance(error, KeyError) else str(error)
        raise OptionError(
            f"'{file}' does not describe a board",
            why=missing.replace("Region.__init__()", "a region of memory"),
            hint="compare it with a boards/*/board.toml of glowmcu",
        ) from None
    known = {"flash", "ram", "vectors", *_SECTIONS}
    if not {"flash", "ram"} <= set(found.memory) <= known:
        raise OptionError(
            f"'{file}' does not describe a board",
            why=f"its regions of memory are {', '.join(found.memory)}",
            hint=f"flash and ram, and perhaps {', '.join(sorted(known - {'flash', 'ram'}))}",
        )
    return found if file.stem == "board" else replace(found, name=file.stem)


def _check(board: Board) -> None:
    """Raise ValueError for a field that describes no board."""
    if not all(isinstance(text, str) for text in (board.summary, board.startup, *board.qemu)):
        raise ValueError("summary, startup and the words of qemu are texts")
    if board.startup and not (common_folder() / Path(board.startup).name).is_file():
        raise ValueError(f"there is no startup code '{board.startup}'")
    if Path(board.startup).name != board.startup:
        raise ValueError(f"startup '{board.startup}' is not the name of a file in boards/common")
    if not (_is_number(board.stack, 0) and _is_number(board.clock, 1)):
        raise ValueError(
            f"stack {board.stack!r} is not a number of bytes, or clock {board.clock!r} not one "
            "of ticks per second"
        )
    for name, region in board.memory.items():
        if not _is_number(region.origin, 0) or not _is_number(region.length, 1):
            raise ValueError(
                f"{name} from {region.origin!r}, {region.length!r} bytes long, is no memory"
            )
        if region.origin + region.length > 1 << 32:
            raise ValueError(f"{name} ends beyond the addresses of 32 bits")
        if not isinstance(region.setup, bool):
            raise ValueError(f"setup of {name} is true or false")
    ordered = sorted(board.memory.items(), key=lambda item: item[1].origin)
    for (one, region), (other, after) in pairwise(ordered):
        if after.origin in region:
            raise ValueError(f"{one} and {other} overlap")


def _is_number(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _load(file: Path) -> Board:
    data = tomllib.loads(file.read_text(encoding="utf-8"))
    qemu = data.get("qemu", [])
    if not isinstance(qemu, list):
        raise ValueError("qemu is a list of words")
    found = Board(
        name=file.parent.name.replace("_", "-"),
        summary=data["summary"],
        target=target(data["target"]).name,
        startup=data.get("startup", ""),
        qemu=tuple(qemu),
        stack=data["stack"],
        clock=data["clock"],
        memory={name: Region(**region) for name, region in data["memory"].items()},
    )
    _check(found)
    return found
