"""Control flow: what only one side of a choice needs is skipped when the other one is taken."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from glowmcu.core.passes import record
from glowmcu.core.types import Array
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Function
from glowmcu.instr.instruction import Guard, Instruction

GIVEN = -1
"""The writer of what the caller gave."""


@dataclass(frozen=True)
class _Need:
    """When a result is needed: where the bool at an offset that `made` wrote is `when`."""

    root: Buffer
    offset: int
    made: int
    when: bool


class _Always:
    """A result that is needed in every run."""


_Needs = _Need | type[_Always]
_Reads = dict[Buffer, set[int]]


def guard_choices(function: Function) -> Function:
    """Give instructions a guard whose results matter only if a condition known before holds."""
    reads, last = _reads(function)
    needs: dict[int, _Needs] = dict.fromkeys(last, _Always)
    guards: dict[int, Guard] = {}
    for number in reversed(range(len(function.instructions))):
        instruction = function.instructions[number]
        own = needs.get(number, _Always)
        if isinstance(own, _Need) and own.made < number:
            condition = next(
                b
                for b in function.buffers()
                if (b.root, b.root_offset) == (own.root, own.offset) and b.nbytes == 1
            )
            guards[number] = Guard(condition, own.when)
        else:
            own = _Always
        choices = instruction.choices()
        for buffer, writers in reads[number].items():
            need = own
            if own is _Always and buffer in choices:
                need = _need(choices[buffer], reads[number])
            for writer in writers:
                same = needs.setdefault(writer, need) == need
                needs[writer] = need if same else _Always
    if not guards:
        return function
    for _ in guards:
        record("guarded")
    return replace(
        function,
        instructions=tuple(_guarded(i, guards.get(n)) for n, i in enumerate(function.instructions)),
    )


def _guarded(instruction: Instruction, guard: Guard | None) -> Instruction:
    return replace(instruction, guard=guard) if guard else instruction  # type: ignore[type-var]


def _need(guard: Guard, reads: _Reads) -> _Needs:
    """Return the need that a choice makes whose condition one instruction wrote."""
    condition = guard.condition
    writers = reads.get(condition, set())
    if len(writers) != 1:
        return _Always
    (made,) = writers
    return _Need(condition.root, condition.root_offset, made, guard.when)


def _reads(function: Function) -> tuple[list[_Reads], set[int]]:
    """Return for each instruction who wrote what it reads, and who wrote what the caller reads."""
    writers: dict[Buffer, Array] = {}

    def piece(buffer: Buffer) -> Array:
        root = buffer.root
        if root not in writers:
            writers[root] = np.full(root.nbytes, GIVEN, np.int32)
        start = buffer.root_offset
        return writers[root][start : start + buffer.nbytes]

    found: list[_Reads] = []
    for number, instruction in enumerate(function.instructions):
        read: _Reads = {}
        for buffer in instruction.inputs():
            if buffer.root.kind != "constant":
                read[buffer] = set(np.unique(piece(buffer)).tolist())
        found.append(read)
        for buffer in instruction.outputs():
            piece(buffer)[...] = number
    return found, {int(w) for buffer in function.kept for w in np.unique(piece(buffer))}
