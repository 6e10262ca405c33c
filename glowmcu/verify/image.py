"""Firmware images: compile and link a code unit for a board, and measure the result."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from glowmcu.emit.unit import CodeUnit
from glowmcu.errors import DoesNotFitError, OptionError, VerificationError
from glowmcu.targets.board import FLASHES, RAMS, Board, common_folder, list_boards, need_startup
from glowmcu.targets.target import Target, target
from glowmcu.verify.tools import find_tool

# -ffp-contract=off: a fused multiply-add would round differently from the host.
_FLAGS = (
    "-std=c99",
    "-ffp-contract=off",
    "-ffunction-sections",
    "-fdata-sections",
    "-nostartfiles",
    "-Wl,--gc-sections",
)
STARTUP = ("board_startup.c", "board_semihosting.c")
"""Sources of every image, in boards/common, beside those of the processor."""

_C_LIBRARY = {
    "arm-none-eabi-": "--specs=nano.specs",
    "riscv64-unknown-elf-": "--specs=picolibc.specs",
}
_ALLOCATED = 0x2  # flag of an ELF section that takes memory


@dataclass(frozen=True)
class Footprint:
    """Bytes that an image occupies; RAM includes the stack reserved for it.

    regions  by the name of the board's region; flash and ram are those of all regions of a kind
    """

    regions: Mapping[str, int]

    @property
    def flash(self) -> int:
        """Bytes of flash."""
        return sum(n for region, n in self.regions.items() if region not in RAMS)

    @property
    def ram(self) -> int:
        """Bytes of RAM."""
        return sum(n for region, n in self.regions.items() if region in RAMS)


def build_image(
    unit: CodeUnit,
    board: Board,
    sources: Mapping[str, str],
    folder: Path,
    *,
    optimize: str = "-O2",
    flags: tuple[str, ...] = (),
) -> Path:
    """Compile `unit` with `sources` (C text by file name, among it main) for `board`.

    Every file is written to `folder`; returns the path of the ELF file in it. Raises
    DoesNotFitError if flash or RAM is too small.
    """
    need_startup(board)
    need_setup(unit, board)
    check_target(unit, board)
    compiler = find_tool(target(board.target).compiler + "gcc")
    files = {**unit.files, **sources, "link.ld": board.linker_script()}
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    common = common_folder()
    startup = [str(common / name) for name in (*STARTUP, board.startup)]
    command = [
        *(compiler, *compiler_flags(processor_of(unit, board)), optimize, *flags),
        *("-I", ".", "-I", str(common)),
        *(name for name in files if name.endswith(".c")),
        *startup,
        *("-T", "link.ld", "-lm", "-o", "image.elf"),
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise _build_error(done.stderr, unit, board)
    return folder / "image.elf"


def need_setup(unit: CodeUnit, board: Board) -> None:
    """Raise OptionError where the network lies in memory that our startup does not make usable."""
    for region in unit.report.get("regions", {}):
        if region in board.memory and board.memory[region].setup:
            raise OptionError(
                f"no image for the board {board.name} can be built with this network",
                why=f"it lies in {region}, which the application has to set up first",
                hint="`glowmcu export` makes a component for an application that does",
            )


def compiler_flags(processor: Target) -> tuple[str, ...]:
    """Return the flags for compiling and linking an image for a processor."""
    return (*processor.flags, _C_LIBRARY[processor.compiler], *_FLAGS)


def processor_of(unit: CodeUnit, board: Board) -> Target:
    """Return the processor that an image of `unit` for `board` is compiled for.

    Code for a smaller processor of the same family is compiled for that one, so that a Cortex-M0's
    instructions can run on a board with more memory and a larger core.
    """
    own = target(board.target)
    return unit.target if unit.target.compiler == own.compiler else own


def check_target(unit: CodeUnit, board: Board) -> None:
    """Raise OptionError where the code of `unit` needs more than the board's processor has."""
    missing = target(board.target).lacks(unit.target)
    if missing:
        raise OptionError(
            f"code for {unit.target.name} does not run on the board {board.name}",
            why=f"its {board.target} has no {', '.join(sorted(missing))}",
            hint=f"compile for the target {board.target}",
        )


def _build_error(message: str, unit: CodeUnit, board: Board) -> Exception:
    overflows = dict(re.findall(r"region [`'](\w+)' overflowed by (\d+) bytes?", message))
    if overflows:
        parts = [
            f"{region} of {board.memory[region].length} bytes is {count} bytes too small"
            for region, count in sorted((name.lower(), n) for name, n in overflows.items())
        ]
        needed = {
            region: board.memory[region].length + int(overflows.get(region.upper(), 0))
            for region in ("flash", "ram")
        }
        fitting = [
            b.name
            for b in list_boards()
            if not target(b.target).lacks(unit.target)
            and target(b.target).compiler == target(board.target).compiler
            and b.flash_bytes >= needed["flash"]
            and b.ram_bytes >= needed["ram"] + b.stack - board.stack
        ]
        larger = f"a larger board: {', '.join(fitting[:6])}" if fitting else "a larger board"
        return DoesNotFitError(
            f"the network does not fit the board {board.name}",
            why=f"{', '.join(parts)}; the arena takes {unit.arena_size} bytes",
            hint=f"quantize it, or choose {larger}",
        )
    errors = [line for line in message.splitlines() if "error" in line or "undefined" in line]
    return VerificationError(
        f"the C code does not build for the board {board.name}",
        why="\n         ".join(errors[:5] or message.splitlines()[-5:]),
    )


def measure(image: Path, board: Board) -> Footprint:
    """Return how many bytes of flash and RAM the ELF file `image` occupies on `board`."""
    found = {"flash": 0, "ram": 0}
    with image.open("rb") as stream:
        for section in ELFFile(stream).iter_sections():
            header = section.header
            if not header.sh_flags & _ALLOCATED or not header.sh_size:
                continue
            region = board.region_of(header.sh_addr)
            region = region if region in (*RAMS, *FLASHES) else "flash"
            found[region] = found.get(region, 0) + header.sh_size
            if region in RAMS and header.sh_type == "SHT_PROGBITS":
                # initialised data take flash too, from where the startup copies them
                found["flash"] += header.sh_size
    return Footprint(dict(sorted(found.items())))


def function_at(image: Path, address: int) -> str:
    """Return the name of the function that holds the code at `address`; "" where there is none."""
    with image.open("rb") as stream:
        symbols = ELFFile(stream).get_section_by_name(".symtab")
        for symbol in symbols.iter_symbols() if isinstance(symbols, SymbolTableSection) else ():
            start = symbol.entry.st_value & ~1  # bit 0 marks Thumb code
            if (
                symbol.entry.st_info.type == "STT_FUNC"
                and start <= address < start + symbol.entry.st_size
            ):
                return str(symbol.name)
    return ""
