"""How long an instruction takes: what its kernel says, or a guess by its products."""

from __future__ import annotations

from glowmcu.instr.instruction import Instruction
from glowmcu.instr.striped import Member, Striped
from glowmcu.targets.kernel import Kernel

_CYCLES_PER_MAC = 3.1
_CYCLES_PER_ELEMENT = 10.0
CYCLES_PER_STEP = 100.0
"""What the loop over the steps of a chain takes for each."""
_CYCLES_PER_POINTER = 20.0


def cycles(instruction: Instruction, kernel: Kernel | None = None) -> float:
    """Return about how many cycles all turns of an instruction take, by default with its kernel."""
    if isinstance(instruction, Striped):
        return steps_cycles(instruction) + sum(map(member_cycles, instruction.members))
    kernel = kernel or instruction.kernel
    if kernel is not None and kernel.cycles is not None:
        return kernel.cycles(instruction) * instruction.turns
    return by_products(instruction) * instruction.turns


def by_products(instruction: Instruction) -> float:
    """Return the cycles of one turn of an instruction whose kernel does not say them."""
    written = sum(b.type.numel for b in instruction.outputs())
    return _CYCLES_PER_MAC * instruction.macs + _CYCLES_PER_ELEMENT * written


def steps_cycles(chain: Striped) -> float:
    """Return about how long a chain of rows takes beyond what its members take."""
    pointers = sum(m.count * _pointers(m) for m in chain.members)
    return CYCLES_PER_STEP * len(chain.steps) + _CYCLES_PER_POINTER * pointers


def _pointers(member: Member) -> int:
    return sum(w.kernel for _, w in member.fields.values()) if member.form == "row" else 1


def member_cycles(member: Member) -> float:
    """Return about how many cycles all rows of a member of a chain take."""
    kernel = member.instruction.kernel
    if member.form == "call" and kernel is not None and kernel.cycles is not None:
        return member.count * kernel.cycles(member.small)
    if member.form == "row" and kernel is not None and kernel.row is not None:
        if kernel.row.cycles is not None:
            return kernel.row.cycles(member.instruction)
    return by_products(member.instruction)
