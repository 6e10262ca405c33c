"""Inputs and outputs that stay in the caller's memory instead of slots in the arena."""

from __future__ import annotations

from dataclasses import replace

from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Function
from glowmcu.instr.instruction import Instruction
from glowmcu.ops.copy import Copy


def leave_tensors_outside(function: Function, *, inputs: bool = True) -> Function:
    """Return the function on tensors in the caller's memory.

    Every output is copied there at the end; the passes that share memory drop the copies whose
    source can be computed there.

    inputs  False: only outputs, because the input comes row by row
    """
    if inputs:
        function = _inputs_outside(function)
    copies: list[Instruction] = []
    outputs: list[Buffer] = []
    for buffer, name in zip(function.outputs, function.output_names, strict=True):
        target = Buffer(name, buffer.type, "result", tensor=buffer.tensor, perm=buffer.perm)
        copy = Copy(y=target, x=buffer, bytes=buffer.nbytes)
        copies.append(replace(copy, name=name))  # type: ignore[call-arg]
        outputs.append(target)
    return replace(
        function,
        outputs=tuple(outputs),
        instructions=(*function.instructions, *copies),
    )


def _inputs_outside(function: Function) -> Function:
    mapping = {b: replace(b, kind="argument") for b in function.inputs}
    for buffer in sorted(function.buffers(), key=_depth):
        if buffer.base in mapping:
            mapping[buffer] = replace(buffer, base=mapping[buffer.base])
    return function.with_buffers(mapping)


def _depth(buffer: Buffer) -> int:
    return 0 if buffer.base is None else 1 + _depth(buffer.base)
