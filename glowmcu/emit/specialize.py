"""Which layers get a copy of their kernel with constant parameters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from glowmcu.emit.view import Place
from glowmcu.instr.function import Function
from glowmcu.instr.instruction import Instruction
from glowmcu.instr.striped import Member, Striped
from glowmcu.options import Optimize, Specialize

HOT = 0.05
"""A layer with more than this part of the MACs is hot."""
HOT_FOR_SPEED = 0.01
"""The same where flash is free: a general depthwise layer takes ten times as long per MAC."""
FEW = 2
"""So many copies with constant parameters take less flash than one that takes any."""


class _Use(NamedTuple):
    """One layer, or one member of a chain: its kernel's symbol, its parameters."""

    place: Place
    symbol: str
    parameters: str
    macs: int


def specialised_layers(
    function: Function, mode: Specialize, optimize: Optimize = "balanced"
) -> frozenset[Place]:
    """Return the layers that get a copy of their kernel with constant parameters.

    hot: layers with more than 5 % of the MACs (1 % when optimizing for speed, none of them when
    optimizing for size); others with the same parameters use that copy. Where at most two sets of
    parameters remain, they get copies as well: these are smaller than the general kernel, which is
    then not needed at all.
    """
    if mode == "none":
        return frozenset()
    total = sum(i.macs * i.turns for i in function.instructions)
    sets: dict[str, dict[str, list[_Use]]] = {}
    for use in _uses(function):
        sets.setdefault(use.symbol, {}).setdefault(use.parameters, []).append(use)

    chosen: set[Place] = set()
    for groups in sets.values():
        cold = [
            uses
            for uses in groups.values()
            if not is_hot(max(use.macs for use in uses), total, mode, optimize)
        ]
        kept = cold if len(cold) > FEW else []
        chosen.update(use.place for uses in groups.values() if uses not in kept for use in uses)
    return frozenset(chosen)


def is_hot(macs: int, total: int, mode: Specialize, optimize: Optimize) -> bool:
    """Tell whether a layer with so many of all MACs gets a copy by its own right."""
    least = HOT_FOR_SPEED if optimize == "speed" else HOT
    return mode == "all" or (mode == "hot" and optimize != "size" and macs > least * total)


def _uses(function: Function) -> Iterator[_Use]:
    for index, instruction in enumerate(function.instructions):
        if isinstance(instruction, Striped):
            for number, member in enumerate(instruction.members):
                called, macs = member_view(member), member.instruction.macs
                yield from _use((index, number), called_symbol(member), called, macs)
        elif instruction.kernel is not None:
            macs = instruction.macs * instruction.turns
            yield from _use(index, instruction.kernel.symbol, instruction, macs)


def _use(place: Place, symbol: str, instruction: Instruction, macs: int) -> Iterator[_Use]:
    kernel = instruction.kernel
    if kernel is not None and kernel.core:
        yield _Use(place, symbol, repr(instruction.attributes()), macs)


def member_view(member: Member) -> Instruction:
    """Return the instruction whose attributes the function called for a member gets."""
    return member.small if member.form == "call" else member.instruction


def called_symbol(member: Member) -> str:
    """Return the C function that a member's steps call."""
    kernel = member.instruction.kernel
    assert kernel is not None
    if member.form == "row":
        assert kernel.row is not None
        return kernel.row.symbol
    if member.form == "scan":
        assert kernel.scan is not None
        return kernel.scan.symbol
    return kernel.symbol
