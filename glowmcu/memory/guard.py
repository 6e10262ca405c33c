"""Control flow: what only one side of a choice needs is skipped when the other one is taken."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from glowmcu.core.passes import record
from glowmcu.core.types import Array
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Function
from glowmcu.instr.instruction import Guard
from glowmcu.memory.uses import Places

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
    guards = {n: need for n, need in _needs(function).items() if need.made < n}
    if not guards:
        return function
    conditions = {(b.root, b.root_offset): b for b in function.buffers() if b.nbytes == 1}
    instructions = list(function.instructions)
    for number, need in guards.items():
        guard = Guard(conditions[need.root, need.offset], need.when)
        instructions[number] = replace(instructions[number], guard=guard)  # type: ignore[type-var]
        record("guarded")
    return replace(function, instructions=tuple(instructions))


def conditions_first(function: Function) -> Function:
    """Compute a condition before what only one side of its choice needs, if memory allows it."""
    most = max(Places(function).live)
    for _ in function.instructions:
        late = {need.made: n for n, need in _needs(function, late=True).items() if need.made > n}
        moved = (_moved(function, made, to) for made, to in late.items())
        better = (f for f in moved if f is not None and max(Places(f).live) <= most)
        found = next(better, None)
        if found is None:
            break
        record("condition first")
        function = found
    return function


def _moved(function: Function, made: int, to: int) -> Function | None:
    """Return the function with instruction `made`, and what it needs, moved up to `to`.

    None where one that is passed uses what a moved one writes.
    """
    reads, _ = _reads(function)
    moved = {made}
    for number in reversed(range(to, made + 1)):
        if number in moved:
            moved |= {w for writers in reads[number].values() for w in writers if w >= to}
    passed = [n for n in range(to, made) if n not in moved]
    written = {b.root for n in moved for b in function.instructions[n].outputs()}
    touched = {o.buffer.root for n in passed for o in function.instructions[n].operands()}
    if written & touched or not passed:
        return None
    order = (*range(to), *sorted(moved), *passed, *range(made + 1, len(function.instructions)))
    return replace(function, instructions=tuple(function.instructions[n] for n in order))


def _needs(function: Function, *, late: bool = False) -> dict[int, _Need]:
    """Return the instructions that are not needed in every run, and when they are.

    late  also those whose condition is computed after them
    """
    if not any(i.choices() for i in function.instructions):
        return {}
    reads, last = _reads(function)
    needs: dict[int, _Needs] = dict.fromkeys(last, _Always)
    found: dict[int, _Need] = {}
    for number in reversed(range(len(function.instructions))):
        own = needs.get(number, _Always)
        if isinstance(own, _Need) and (late or own.made < number):
            found[number] = own
        else:
            own = _Always
        choices = function.instructions[number].choices()
        for buffer, writers in reads[number].items():
            need = own
            if own is _Always and buffer in choices:
                need = _need(choices[buffer], reads[number])
            for writer in writers:
                same = needs.setdefault(writer, need) == need
                needs[writer] = need if same else _Always
    return found


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
