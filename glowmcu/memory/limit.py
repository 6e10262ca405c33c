"""What to say of a network that needs more memory than there is."""

from __future__ import annotations

from glowmcu.errors import Problem
from glowmcu.instr.function import Function
from glowmcu.instr.striped import Striped
from glowmcu.memory.lifetime import Lifetimes
from glowmcu.memory.plan import MemoryPlan
from glowmcu.memory.rows import row_lives

_MOST_NAMED = 8
_LONG = 60


def ram_problems(function: Function, layout: MemoryPlan, limit: int | None) -> tuple[Problem, ...]:
    """Return the problem, with what is live at the peak, where the arena is above the limit."""
    if limit is None or layout.total <= limit:
        return ()
    spans = {b: span for b, span in layout.lifetimes.items() if b.in_arena}
    index, step = _peak(function, spans)
    live = sorted(
        (b for b, (first, last) in spans.items() if first <= index <= last and b.nbytes),
        key=lambda b: (-b.nbytes, b.name),
    )
    named = [f"'{_short(b.name)}' {b.nbytes}" for b in live[:_MOST_NAMED]]
    named += [f"{len(live) - _MOST_NAMED} more"] if len(live) > _MOST_NAMED else []
    problem = Problem(
        f"the smallest arena found has {layout.total} bytes, the limit is {limit}",
        where=f"the fullest moment is layer {index}, {_name(function, index, step)}",
        why=f"bytes live there: {', '.join(named)}",
        hint="raise --ram-limit, shrink the input or that layer, quantize to int8, or take the "
        "input in with --input rows or leave it outside with --io caller",
    )
    return (problem,)


def _peak(function: Function, lives: Lifetimes) -> tuple[int, int]:
    """Return the instruction at which most bytes are live, in a chain its step as well."""
    best = (-1, 0, 0)
    for index, instruction in enumerate(function.instructions):
        spans = lives.items()
        if isinstance(instruction, Striped):
            through = frozenset(b for b, (first, last) in spans if first < index < last)
            rows, step = row_lives(instruction).fullest(through)
            found = (rows + sum(b.nbytes for b in through), index, step)
        else:
            live = sum(b.nbytes for b, (first, last) in spans if first <= index <= last)
            found = (live, index, 0)
        best = max(best, found, key=lambda f: f[0])
    return best[1], best[2]


def _name(function: Function, index: int, step: int) -> str:
    if not function.instructions:
        return "the input"
    instruction = function.instructions[index]
    if isinstance(instruction, Striped):
        member, row = instruction.steps[step]
        instruction = instruction.members[member].instruction
        return f"{type(instruction).__name__} '{_short(instruction.name)}' at row {row}"
    return f"{type(instruction).__name__} '{_short(instruction.name)}'"


def _short(name: str) -> str:
    return name if len(name) <= _LONG else f"{name[: _LONG // 2]}...{name[-_LONG // 2 :]}"
