"""Which way instructions go through memory: buffers can overlap more where directions alternate."""

from __future__ import annotations

from dataclasses import replace

from glowmcu.core.passes import record
from glowmcu.instr.function import Function
from glowmcu.instr.instruction import Instruction
from glowmcu.memory.plan import plan

_MOST_TURNS = 24


def choose_directions(function: Function) -> Function:
    """Let kernels run backwards through memory where that makes the arena smaller.

    An output that trails behind its input lies below it going up and above it going down; with one
    direction only, addresses drift from layer to layer.
    """
    best = plan(function, quick=True)
    candidates = [n for n, i in enumerate(function.instructions) if _turned(i) is not None]
    candidates.sort(key=lambda n: (-_nbytes(function.instructions[n]), n))
    for number in candidates[:_MOST_TURNS]:
        if best.size <= best.lower_bound:
            break
        instructions = list(function.instructions)
        turned = _turned(instructions[number])
        assert turned is not None
        instructions[number] = turned
        changed = replace(function, instructions=tuple(instructions))
        found = plan(changed, quick=True)
        if found.size < best.size:
            record("turned")
            function, best = changed, found
    return function


def _turned(instruction: Instruction) -> Instruction | None:
    """Return the instruction turned, None where it cannot be or would lose a place it shares."""
    turned = instruction.turned()
    if turned is None:
        return None
    inputs = {b.root for b in instruction.inputs()}
    is_shared = any(b.root in inputs for b in instruction.outputs())
    return None if is_shared and set(turned.shares()) != set(instruction.shares()) else turned


def _nbytes(instruction: Instruction) -> int:
    return sum(o.buffer.nbytes for o in instruction.operands() if o.buffer.kind != "constant")
