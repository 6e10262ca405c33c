"""Stable text of a function: one line an instruction, operands marked @in/@out/@inout."""

from __future__ import annotations

from collections.abc import Mapping

from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Function
from glowmcu.instr.loop import nest_of
from glowmcu.instr.loop_head import LoopHead


def dump(
    function: Function,
    offsets: Mapping[Buffer, int] | None = None,
    lifetimes: Mapping[Buffer, tuple[int, int]] | None = None,
) -> str:
    """Return the function as text; with a plan, each buffer's offset and lifetime."""
    names: dict[Buffer, str] = {}
    lines = [f"function {function.name}"]
    for number, buffer in enumerate(function.buffers()):
        names[buffer] = f"%{number}"
        place = ""
        if buffer.base is not None:
            place = f" view of {buffer.base.name}+{buffer.offset}"
        elif offsets is not None and buffer in offsets:
            place = f" at {offsets[buffer]}"
        if lifetimes is not None and buffer in lifetimes:
            place += f" live [{lifetimes[buffer][0]}, {lifetimes[buffer][1]}]"
        lines.append(f"  {buffer.kind:<10} %{number}: {buffer.type} '{buffer.name}'{place}")
    for number, instruction in enumerate(function.instructions):
        operands = ", ".join(
            f"{o.field}=@{o.role} {names[o.buffer]}" for o in instruction.operands()
        )
        if instruction.scratch is not None:
            operands += f", scratch={names[instruction.scratch]}"
        if instruction.guard is not None:
            operands += f", {'if' if instruction.guard.when else 'unless'}="
            operands += names[instruction.guard.condition]
        attributes = ", ".join(f"{k}={v}" for k, v in instruction.attributes().items())
        kernel = f"  // {instruction.kernel.symbol}" if instruction.kernel else ""
        kind = type(instruction).__name__
        loops = nest_of(instruction.loop)
        if loops and isinstance(instruction, LoopHead):
            operands += f", at most {loops[-1].count} times"
            loops = loops[:-1]
        indent = "  " * len(loops)
        lines.append(
            f"  {indent}{number}: {kind} {operands} {{{attributes}}} '{instruction.name}'{kernel}"
        )
    return "\n".join(lines)
