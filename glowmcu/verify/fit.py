"""On which boards a network fits, and about how long an inference takes there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from glowmcu.emit.unit import CodeUnit
from glowmcu.errors import DoesNotFitError, ToolMissingError
from glowmcu.targets.board import FLASHES, RAMS, Board, emulated_boards
from glowmcu.targets.target import target
from glowmcu.verify.profile import profile_on_board
from glowmcu.verify.typical import typical_sample

CYCLES_PER_INSTRUCTION = {
    "cortex-m0": 1.4,
    "cortex-m0plus": 1.3,
    "cortex-m3": 1.2,
    "cortex-m4": 1.1,
    "cortex-m7": 0.8,
    "cortex-m33": 1.1,
    "cortex-m55": 1.8,
    "cortex-m85": 1.2,
    "riscv32": 1.4,
}
"""Of kernels like ours, without wait states; that of the Cortex-M4 by a model of its pipeline, the
others by what differs: slower loads and branches on smaller cores, two instructions at once on the
M7, two or more cycles for a Helium instruction."""
_LARGE = 2 << 20
_CODE_OVERHEAD = 1024
"""Bytes of flash that a startup and a main take beside the network."""


@dataclass(frozen=True)
class Fit:
    """One board: bytes needed, instructions and time of an inference; None where not known.

    regions  where the board's memory has several: bytes of weights in slow flash, the arena's RAM
    """

    board: Board
    flash: int
    ram: int
    instructions: int | None
    seconds: float | None
    regions: tuple[str, ...] = ()

    @property
    def flash_limit(self) -> int:
        """Bytes of all flash."""
        return sum(self.board.memory[r].length for r in FLASHES if r in self.board.memory)

    @property
    def ram_limit(self) -> int:
        """Bytes of the largest RAM, which an arena has to fit into."""
        return max(self.board.memory[r].length for r in RAMS if r in self.board.memory)

    @property
    def verdict(self) -> str:
        """Yes, or the bytes that are missing."""
        short = [
            f"{missing:,} B {what}"
            for what, missing in (
                ("flash", self.flash - self.flash_limit),
                ("RAM", self.ram - self.ram_limit),
            )
            if missing > 0
        ]
        return f"lacks {', '.join(short)}" if short else ", ".join(("yes", *self.regions))


@dataclass(frozen=True)
class _Needs:
    """What a network takes on one target: bytes, and instructions per inference."""

    flash: int
    arena: int
    instructions: int | None


def fit_boards(
    unit_for: Callable[[str], CodeUnit],
    boards: Sequence[Board],
    progress: Callable[[str], None] = lambda _stage: None,
) -> list[Fit]:
    """Return for every board whether a network fits.

    unit_for  compiles the network for the target of that name
    """
    needs: dict[str, _Needs] = {}
    found = []
    for board in boards:
        if board.target not in needs:
            needs[board.target] = _measure(unit_for(board.target), progress)
        need = needs[board.target]
        region = board.arena_region(need.arena)
        stack = board.stack if region in ("ram", None) else 0
        fit = Fit(board, need.flash, need.arena + stack, need.instructions, None)
        if fit.verdict == "yes":
            seconds = None
            if need.instructions is not None:
                seconds = need.instructions * CYCLES_PER_INSTRUCTION[board.target] / board.clock
            fit = replace(fit, seconds=seconds, regions=_regions(board, need, region))
        found.append(fit)
    return found


def _regions(board: Board, need: _Needs, arena: str | None) -> tuple[str, ...]:
    """Return what is said of a network that takes more than the main memory."""
    found = [f"arena in {arena}"] if arena not in ("ram", None) else []
    over = need.flash - board.flash_bytes
    if over > 0:
        found.append(f"{over:,} B of weights in flash_slow")
    return tuple(found)


def _measure(unit: CodeUnit, progress: Callable[[str], None]) -> _Needs:
    """Count on the emulated board with most memory that runs the code; estimate without tools."""
    able = [
        b
        for b in emulated_boards()
        if target(b.target).compiler == unit.target.compiler
        and not target(b.target).lacks(unit.target)
    ]
    estimate = unit.report["weights_bytes"] + unit.report["code_bytes_estimate"] + _CODE_OVERHEAD
    board = max(
        able,
        key=lambda b: (b.flash_bytes >= _LARGE, b.target == unit.target.name),
        default=None,
    )
    if board is None:
        return _Needs(estimate, unit.arena_size, None)
    progress(f"running on {board.name} in QEMU")
    try:
        result = profile_on_board(unit, board, typical_sample(unit.inputs))
    except (DoesNotFitError, ToolMissingError):
        return _Needs(estimate, unit.arena_size, None)
    return _Needs(result.flash, unit.arena_size, result.instructions)
