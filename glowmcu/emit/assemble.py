"""All instructions of a function as C records."""

from __future__ import annotations

from glowmcu.emit.chain import striped_layer
from glowmcu.emit.unit import Plan
from glowmcu.emit.view import Assembler, Code, Place, Render
from glowmcu.instr.function import Function
from glowmcu.instr.striped import Striped


def assemble(
    function: Function, name: str, plan: Plan, chosen: frozenset[Place], render: Render
) -> Code:
    """Return the C records of a function; the chosen layers get constant parameters."""
    state = Assembler(name, plan, render, chosen)
    layers = tuple(
        striped_layer(state, index, instruction)
        if isinstance(instruction, Striped)
        else state.layer(index, instruction)
        for index, instruction in enumerate(function.instructions)
    )
    return Code(
        tuple(state.constants.arrays),
        tuple(state.structs.values()),
        tuple(state.functions.values()),
        layers,
        tuple(state.kernels.values()),
        tuple(state.includes),
    )
