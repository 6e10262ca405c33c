"""What a well-formed function is; a failure is a fault in glowmcu, not in the model."""

from __future__ import annotations

from glowmcu.core.passes import IllFormedError
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Function
from glowmcu.instr.loop import Loop, loop_spans, nest_of
from glowmcu.instr.loop_head import LoopHead


def verify(function: Function) -> None:
    """Raise IllFormedError when a rule of the instruction IR does not hold."""
    _check_loops(function)
    written: set[Buffer] = {b.root for b in (*function.given, *function.fed)}
    before: dict[Loop, set[Buffer]] = {}
    for number, instruction in enumerate(function.instructions):
        around = nest_of(instruction.loop)
        for loop in [loop for loop in reversed(before) if loop not in around]:
            written = before.pop(loop)  # there may have been no iteration
        where = f"instruction {number} {type(instruction).__name__} '{instruction.name}'"
        for operand in instruction.operands():
            buffer = operand.buffer
            root = buffer.root
            end = buffer.root_offset + buffer.nbytes
            packed = buffer.type.packed and not instruction.takes_packed
            _check(not packed, f"{where}: the elements of {buffer.name} share bytes")
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
        if isinstance(instruction, LoopHead) and instruction.loop is not None:
            before[instruction.loop] = set(written)
    written = next(iter(before.values()), written)
    for buffer in function.kept:
        _check(
            buffer.root in written or not buffer.nbytes, f"output {buffer.name} is never written"
        )


def _check_loops(function: Function) -> None:
    """Every loop is one run of instructions, inside the loop around it, that a head begins."""
    spans = loop_spans(function.instructions)
    heads = 0
    for loop, (first, last) in spans.items():
        inside = function.instructions[first : last + 1]
        what = f"the loop '{loop.name}' at instructions {first} to {last}"
        _check(all(loop in nest_of(i.loop) for i in inside), f"{what} is interrupted")
        head = inside[0]
        _check(isinstance(head, LoopHead) and head.loop is loop, f"{what} has no head")
    for number, instruction in enumerate(function.instructions):
        if isinstance(instruction, LoopHead):
            heads += 1
            _check(instruction.loop is not None, f"instruction {number} is the head of no loop")
    _check(heads == len(spans), "a loop has two heads")


def _check(condition: bool, message: str) -> None:
    if not condition:
        raise IllFormedError(message)
