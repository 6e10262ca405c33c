"""Control flow: what only one side of a choice needs is skipped when the other one is taken."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from glowmcu.core.passes import record
from glowmcu.core.types import Array
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Function
from glowmcu.instr.instruction import Guard
from glowmcu.memory.levels import Level, levels
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
    level = next(level for level in levels(function) if level.has(made))
    if not all(level.has(number) for number in range(to, made + 1)):
        return None
    reads, _ = _reads(level)
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
    found: dict[int, _Need] = {}
    for level in levels(function):
        found |= _needs_of_level(level, late=late)
    return found


def _needs_of_level(level: Level, *, late: bool) -> dict[int, _Need]:
    """Return the steps of one level that are not needed in every run, by their instructions."""
    reads, last = _reads(level)
    needs: dict[int, _Needs] = dict.fromkeys(last, _Always)
    found: dict[int, _Need] = {}
    for step in reversed(level.steps):
        own = needs.get(step.index, _Always)
        if isinstance(own, _Need) and (late or own.made < step.index):
            found[step.index] = own
        else:
            own = _Always
        for buffer, writers in reads[step.index].items():
            need = own
            if own is _Always and buffer in step.choices:
                need = _need(step.choices[buffer], reads[step.index])
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


def _reads(level: Level) -> tuple[dict[int, _Reads], set[int]]:
    """Return for each step who wrote what it reads, and who wrote what is read afterwards."""
    writers: dict[Buffer, dict[int, Array]] = {}

    def pieces(buffer: Buffer) -> dict[int, Array]:
        """Return for each writer of the root which bytes of the buffer may be its."""
        root = buffer.root
        given = writers.setdefault(root, {GIVEN: np.ones(root.nbytes, np.bool_)})
        start = buffer.root_offset
        return {w: mask[start : start + buffer.nbytes] for w, mask in given.items()}

    def of(buffer: Buffer) -> set[int]:
        return {w for w, mask in pieces(buffer).items() if mask.any()}

    found: dict[int, _Reads] = {}
    for step in level.steps:
        read = (b for b in step.inputs if b.root.kind != "constant")
        found[step.index] = {buffer: of(buffer) for buffer in read}
        for buffer in step.outputs:
            for mask in pieces(buffer).values():
                mask[...] &= step.is_loop  # which may make no iteration
            new = np.zeros(buffer.root.nbytes, np.bool_)
            own = writers[buffer.root].setdefault(step.index, new)
            own[buffer.root_offset : buffer.root_offset + buffer.nbytes] = True
    return found, {w for buffer in level.kept for w in of(buffer)}
