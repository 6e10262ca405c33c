"""What a well-formed function is; a failure is a fault in glowmcu, not in the model."""

from __future__ import annotations

from glowmcu.core.passes import IllFormedError
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Function


def verify(function: Function) -> None:
    """Raise IllFormedError when a rule of the instruction IR does not hold."""
    written: set[Buffer] = {b.root for b in (*function.given, *function.fed)}
    for number, instruction in enumerate(function.instructions):
        where = f"instruction {number} {type(instruction).__name__} '{instruction.name}'"
        for operand in instruction.operands():
            buffer = operand.buffer
            root = buffer.root
            end = buffer.root_offset + buffer.nbytes
            _check(end <= root.nbytes, f"{where}: {buffer.name} ends outside {root.name}")
            if operand.role != "in":
                _check(root.kind != "constant", f"{where} writes the constant {buffer.name}")
                _check(root.kind != "argument", f"{where} writes the caller's {buffer.name}")
                written.add(root)
            elif root.kind != "constant":
                _check(
                    root in written or not buffer.nbytes,
                    f"{where} reads {buffer.name} before it is written",
                )
            else:
                _check(root.data is not None, f"{where}: the constant {buffer.name} has no data")
    for buffer in function.kept:
        _check(
            buffer.root in written or not buffer.nbytes, f"output {buffer.name} is never written"
        )


def _check(condition: bool, message: str) -> None:
    if not condition:
        raise IllFormedError(message)
