"""A function as levels: what is in no loop, the insides of each loop with inner loops whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Function
from glowmcu.instr.instruction import Guard, Instruction
from glowmcu.instr.loop import Loop, loop_spans, nest_of
from glowmcu.memory.lifetime import through_loops
from glowmcu.memory.uses import Places


@dataclass(frozen=True)
class Step:
    """One instruction, or a loop as a whole: `index` is then its head's.

    A loop reads and writes what lives through it.
    """

    index: int
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    choices: Mapping[Buffer, Guard] = field(default_factory=dict)
    is_loop: bool = False


@dataclass(frozen=True)
class Level:
    """Steps that run one after the other; `kept` is read after them, in the next turn or outside.

    Before them, everything holds what was there.
    """

    steps: tuple[Step, ...]
    kept: tuple[Buffer, ...]

    @cached_property
    def _alone(self) -> frozenset[int]:
        return frozenset(step.index for step in self.steps if not step.is_loop)

    def has(self, index: int) -> bool:
        """Tell whether an instruction is a step of this level."""
        return index in self._alone


def levels(function: Function) -> Iterator[Level]:
    """Yield the outermost level, then that of every loop."""
    spans = loop_spans(function.instructions)
    through: dict[Loop, set[Buffer]] = {loop: set() for loop in spans}
    if spans:
        uses = [(u.index, r) for r, us in Places(function).uses.items() for u in us]
        loops = {span: loop for loop, span in spans.items()}
        for root, span in through_loops(function, uses):
            through[loops[span]].add(root)
    whole = {loop: _whole(function, span, through[loop]) for loop, span in spans.items()}
    yield Level(tuple(_steps(function, None, whole)), function.kept)
    for loop in spans:
        yield Level(tuple(_steps(function, loop, whole)), whole[loop].outputs)


def _steps(function: Function, around: Loop | None, whole: Mapping[Loop, Step]) -> Iterator[Step]:
    """Yield the steps of the level inside a loop; its head is not one of them."""
    outer = nest_of(around)
    for index, instruction in enumerate(function.instructions):
        nest = nest_of(instruction.loop)
        if nest[: len(outer)] != outer:
            continue
        if len(nest) == len(outer):
            if around is None or index != whole[around].index:
                yield _single(index, instruction)
        elif index == whole[nest[len(outer)]].index:
            yield whole[nest[len(outer)]]


def _single(index: int, instruction: Instruction) -> Step:
    return Step(index, instruction.inputs(), instruction.outputs(), instruction.choices())


def _whole(function: Function, span: tuple[int, int], through: set[Buffer]) -> Step:
    """Return a loop as one step."""
    inside = function.instructions[span[0] : span[1] + 1]
    inputs = dict.fromkeys(b for i in inside for b in i.inputs() if b.root in through)
    outputs = dict.fromkeys(b for i in inside for b in i.outputs() if b.root in through)
    return Step(span[0], tuple(inputs), tuple(outputs), is_loop=True)
