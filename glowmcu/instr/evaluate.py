"""Run a Function with numpy, every buffer a view into one byte arena laid out by a memory plan."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from glowmcu.core.types import Array
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Function
from glowmcu.instr.instruction import Instruction

Watch = Callable[[int, Instruction, Mapping[Buffer, Array]], None]


def layout_without_reuse(function: Function) -> tuple[dict[Buffer, int], int]:
    """Return offsets that give every root buffer memory of its own, and their total."""
    offsets: dict[Buffer, int] = {}
    size = 0
    for buffer in function.buffers():
        if buffer.base is None and buffer.kind != "constant":
            offsets[buffer] = size
            size += math.ceil(buffer.nbytes / 16) * 16
    return offsets, size


def evaluate(
    function: Function,
    feeds: Mapping[str, Array],
    offsets: Mapping[Buffer, int] | None = None,
    size: int = 0,
    watch: Watch | None = None,
    before: Callable[[int, Array], None] | None = None,
) -> dict[str, Array]:
    """Return the outputs by name, and the states after the call.

    feeds          inputs by name; also states, which else are as at the first call
    offsets, size  where root buffers lie in the arena (a memory plan); none: no memory is shared
    watch          called after each instruction with (index, instruction, arrays by buffer)
    before         called before each instruction with (index, arena bytes), to poison dead memory
    """
    if offsets is None:
        offsets, size = layout_without_reuse(function)
    arena = np.zeros(max(size, 1), np.uint8)
    memory = memory_of(function, offsets, arena)
    for buffer in function.fed:
        memory[buffer] = np.asarray(feeds[buffer.name]).reshape(buffer.type.shape)
    for buffer in function.inputs:
        memory[buffer][...] = np.asarray(feeds[buffer.name]).reshape(buffer.type.shape)
    for buffer in function.states:
        memory[buffer][...] = feeds.get(buffer.name, initial_state(buffer))
    for index, instruction in enumerate(function.instructions):
        if before:
            before(index, arena)
        if not is_skipped(instruction, memory):
            instruction.run(memory)
        if watch:
            watch(index, instruction, memory)
    names = (*function.output_names, *(b.name for b in function.states))
    found = (*function.outputs, *function.states)
    return {n: memory[b].copy() for n, b in zip(names, found, strict=True)}


def is_skipped(instruction: Instruction, memory: Mapping[Buffer, Array]) -> bool:
    """Tell whether an instruction's guard keeps it from running."""
    guard = instruction.guard
    return guard is not None and bool(memory[guard.condition].item()) is not guard.when


def initial_state(buffer: Buffer) -> Array:
    """Return what a state holds before the first call: zeros, as they are stored."""
    quant = buffer.type.quant
    zero = 0 if quant is None else quant.zero_point[0]
    return np.full(buffer.type.shape, zero, buffer.type.dtype.numpy)


def memory_of(
    function: Function, offsets: Mapping[Buffer, int], arena: Array
) -> dict[Buffer, Array]:
    """Return every buffer as an array inside the arena (uint8), or inside its constant."""
    return {buffer: _place(buffer, arena, offsets) for buffer in function.buffers()}


def _place(buffer: Buffer, arena: Array, offsets: Mapping[Buffer, int]) -> Array:
    root = buffer.root
    if root.kind == "constant":
        assert root.data is not None
        source = np.ascontiguousarray(root.data).reshape(-1).view(np.uint8)
        start = buffer.root_offset
    else:
        source, start = arena, offsets[root] + buffer.root_offset
    piece = source[start : start + buffer.nbytes]
    return piece.view(buffer.type.dtype.numpy).reshape(buffer.type.shape)
