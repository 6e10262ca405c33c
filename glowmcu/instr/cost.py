"""How long an instruction takes: what its kernel says, or a guess by its products."""

from __future__ import annotations

from glowmcu.instr.instruction import Instruction
from glowmcu.targets.kernel import Kernel

_CYCLES_PER_MAC = 3.1
_CYCLES_PER_ELEMENT = 10.0


def cycles(instruction: Instruction, kernel: Kernel | None = None) -> float:
    """Return about how many cycles all turns of an instruction take, by default with its kernel."""
    kernel = kernel or instruction.kernel
    if kernel is not None and kernel.cycles is not None:
        return kernel.cycles(instruction) * instruction.turns
    return by_products(instruction) * instruction.turns


def by_products(instruction: Instruction) -> float:
    """Return the cycles of one turn of an instruction whose kernel does not say them."""
    written = sum(b.type.numel for b in instruction.outputs())
    return _CYCLES_PER_MAC * instruction.macs + _CYCLES_PER_ELEMENT * written
