"""Loops: instructions that name one are run over and over; its head says how often."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, eq=False)
class Loop:
    """A loop around instructions that follow one another; the first of them is its LoopHead.

    Instructions name the innermost loop around them. Whatever is used in a loop and also outside of
    it lives through all of the loop; what is used in it only, dies within one iteration.

    count  the most iterations
    outer  the loop around this one
    """

    name: str
    count: int
    outer: Loop | None = None

    @property
    def turns(self) -> int:
        """The most iterations in one run of the function, those of the loops around included."""
        return self.count * (1 if self.outer is None else self.outer.turns)

    @property
    def nest(self) -> tuple[Loop, ...]:
        """The loops around an instruction of this one, the outermost first."""
        return (*(() if self.outer is None else self.outer.nest), self)


class InLoop(Protocol):
    """An instruction, as far as loops are concerned."""

    @property
    def loop(self) -> Loop | None:
        """The innermost loop around it."""


def nest_of(loop: Loop | None) -> tuple[Loop, ...]:
    """Return the loops from the outermost one to `loop`."""
    return () if loop is None else loop.nest


def loop_spans(instructions: Iterable[InLoop]) -> dict[Loop, tuple[int, int]]:
    """Return the first and the last instruction of every loop, outer ones before inner ones."""
    spans: dict[Loop, tuple[int, int]] = {}
    for index, instruction in enumerate(instructions):
        for loop in nest_of(instruction.loop):
            spans[loop] = spans.get(loop, (index, index))[0], index
    return spans
