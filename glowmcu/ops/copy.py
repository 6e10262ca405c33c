"""A plain copy between buffers: what a value needs that must live in memory of its own."""

from __future__ import annotations

from glowmcu.core.types import Array
from glowmcu.instr.instruction import In, Instruction, Out
from glowmcu.targets.kernel import Kernel


class Copy(Instruction):
    """y = x, byte for byte."""

    y: Out
    x: In
    bytes: int

    kernels = (Kernel("gm_copy"),)
    takes_packed = True
    is_copy = True

    def reference(self, x: Array) -> Array:
        return x.copy()
