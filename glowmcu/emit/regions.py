"""Which region of a board's memory holds the arena and each array of weights: placed by use."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from glowmcu.emit.view import ArrayView, Code, LayerView
from glowmcu.instr.instruction import Instruction
from glowmcu.instr.striped import Striped
from glowmcu.targets.board import Board

_STARTUP = 4096
"""Bytes of flash for startup, main and the C library, beside the network's code."""


@dataclass(frozen=True)
class Regions:
    """Where a network's memory lies on a board.

    arena     the region of the arena, "" where no board is known
    slow      names of the arrays that go to slow flash
    nbytes    bytes of the network in each region, code as estimated
    slow_ram  the region of the rest of a divided arena
    """

    arena: str = ""
    slow: frozenset[str] = frozenset()
    nbytes: Mapping[str, int] = field(default_factory=dict)
    slow_ram: str = ""


def place_regions(
    board: Board | None, code: Code, arena: int, rest: int, code_bytes: int
) -> Regions:
    """Return where memory lies: all in the quickest regions, as far as they reach.

    Of the weights, those that are read most often for each of their bytes stay in the main flash.
    """
    if board is None:
        return Regions()
    room = board.memory["flash"].length - code_bytes - _STARTUP
    total = sum(a.nbytes for a in code.arrays)
    slow: set[str] = set()
    if "flash_slow" in board.memory and total > room:
        uses = uses_per_byte(code)
        for array in sorted(code.arrays, key=lambda a: (-uses[a.name], a.nbytes, a.name)):
            if array.nbytes <= room:
                room -= array.nbytes
            else:
                slow.add(array.name)
    region = board.arena_region(arena) or "ram"
    moved = sum(a.nbytes for a in code.arrays if a.name in slow)
    nbytes = {"flash": code_bytes + total - moved, region: arena}
    nbytes |= {"flash_slow": moved} if moved else {}
    second = (board.slower_region(region, rest) or region) if rest else ""
    if second:
        nbytes[second] = nbytes.get(second, 0) + rest
    return Regions(region, frozenset(slow), nbytes, second)


def uses_per_byte(code: Code) -> dict[str, float]:
    """Return how often an inference reads each byte of an array, about."""
    users = {array.name: _user(array, code.layers) for array in code.arrays}
    sizes: dict[Instruction, int] = {}
    for array in code.arrays:
        user = users[array.name]
        sizes[user] = sizes.get(user, 0) + array.nbytes
    return {name: _reads(user) / sizes[user] for name, user in users.items()}


def _reads(user: Instruction) -> int:
    written = sum(b.type.numel for b in user.outputs())
    return max(user.macs, written)


def _user(array: ArrayView, layers: Sequence[LayerView]) -> Instruction:
    """Return the first instruction that uses an array, which its name tells; in a chain the member.

    The tables of a chain's rows count as all of it.
    """
    found = re.search(r"_layer(\d+)_(?:(\d+)_)?", array.name)
    assert found is not None
    instruction = layers[int(found[1])].instruction
    if found[2] and isinstance(instruction, Striped):
        return instruction.members[int(found[2])].instruction
    return instruction
