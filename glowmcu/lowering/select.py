"""Choose a kernel for every instruction and give it the scratch that this kernel needs."""

from __future__ import annotations

from dataclasses import replace

from glowmcu.core import dtypes
from glowmcu.core.types import TensorType
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Function
from glowmcu.options import Optimize
from glowmcu.targets.select import select
from glowmcu.targets.target import Target


def select_kernels(function: Function, target: Target, optimize: Optimize = "balanced") -> Function:
    """Return the function with `kernel` and `scratch` set on every instruction."""
    bound = []
    for number, instruction in enumerate(function.instructions):
        kernel = select(instruction, target, optimize).kernel
        size = kernel.scratch(instruction)
        scratch = None
        if size:
            type_ = TensorType(dtypes.U8, (size,))
            scratch = Buffer(f"{instruction.name}.scratch{number}", type_, "scratch")
        bound.append(replace(instruction, kernel=kernel, scratch=scratch))  # type: ignore[type-var]
    return replace(function, instructions=tuple(bound))
