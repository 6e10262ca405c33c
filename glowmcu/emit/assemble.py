"""All instructions of a function as C records."""

from __future__ import annotations

import re
from dataclasses import replace

from glowmcu.emit import literals
from glowmcu.emit.chain import striped_layer
from glowmcu.emit.loops import loop_layer, with_ends
from glowmcu.emit.memory import Memory
from glowmcu.emit.view import Assembler, Code, LayerView, Place, Render
from glowmcu.instr.function import Function
from glowmcu.instr.instruction import Instruction
from glowmcu.instr.loop_head import LoopHead
from glowmcu.instr.striped import Striped


def assemble(
    function: Function, name: str, memory: Memory, chosen: frozenset[Place], render: Render
) -> Code:
    """Return the C records of a function; the chosen layers get constant parameters."""
    state = Assembler(name, memory, render, chosen)
    layers = with_ends(
        function,
        tuple(
            _guarded(_layer(state, index, instruction), memory)
            for index, instruction in enumerate(function.instructions)
        ),
    )
    return Code(
        tuple(state.constants.arrays),
        tuple(state.structs.values()),
        tuple(state.functions.values()),
        layers,
        tuple(state.kernels.values()),
        tuple(state.includes),
    )


def _layer(state: Assembler, index: int, instruction: Instruction) -> LayerView:
    if isinstance(instruction, Striped):
        return striped_layer(state, index, instruction)
    if isinstance(instruction, LoopHead):
        return loop_layer(state, index, instruction)
    return state.layer(index, instruction)


def _guarded(layer: LayerView, memory: Memory) -> LayerView:
    """Return a layer whose call is made under the condition of its guard."""
    guard = layer.instruction.guard
    if guard is None or not layer.call or isinstance(layer.instruction, LoopHead):
        return layer
    condition = f"*(const uint8_t *){memory.pointer(guard.condition)}"
    name, arguments = layer.call.strip().removesuffix(");").split("(", 1)
    pad = layer.margin
    call = literals.call(name, tuple(re.split(r",\s+", arguments)), len(pad) + 4)
    sign = "" if guard.when else "!"
    return replace(layer, call=f"{pad}if ({sign}{condition}) {{\n{call}\n{pad}}}")
