"""Run a Function with numpy, every buffer a view into one byte arena laid out by a memory plan."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from glowmcu.core.packing import loaded, stored
from glowmcu.core.types import Array
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Function
from glowmcu.instr.instruction import Instruction
from glowmcu.instr.loop import loop_spans
from glowmcu.instr.loop_head import LoopHead

Memory = Mapping[Buffer, Array]
Watch = Callable[[int, Instruction, Memory], None]


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
        memory[buffer][...] = in_memory(np.asarray(feeds[buffer.name]), buffer)
    for buffer in function.states:
        array = feeds.get(buffer.name, initial_state(buffer))
        memory[buffer][...] = in_memory(array, buffer)
    for step in execution(function, memory):
        if before:
            before(step.index, arena)
        step.run(memory)
        if watch:
            watch(step.index, step.instruction, memory)
    names = (*function.output_names, *(b.name for b in function.states))
    found = (*function.outputs, *function.states)
    return {n: value_of(memory[b], b) for n, b in zip(names, found, strict=True)}


def value_of(memory: Array, buffer: Buffer) -> Array:
    """Return a copy of what a buffer's array in memory holds."""
    if buffer.type.packed:
        return loaded(memory, buffer.type)
    return memory.copy()


def in_memory(array: Array, buffer: Buffer) -> Array:
    """Return an array as a buffer's array in memory holds it."""
    if buffer.type.packed:
        return stored(array, buffer.type)
    return array.reshape(buffer.type.shape)


@dataclass(frozen=True)
class Step:
    """One instruction to run next; `turn` counts the iterations of its loop."""

    index: int
    instruction: Instruction
    turn: int = 0

    def run(self, memory: Memory, *, guarded: bool = True) -> None:
        """Run the instruction, unless its guard keeps it from running."""
        if guarded and is_skipped(self.instruction, memory):
            return
        if isinstance(self.instruction, LoopHead):
            memory[self.instruction.y][...] = self.turn
        else:
            self.instruction.run(memory)


def execution(function: Function, memory: Memory) -> Iterator[Step]:
    """Yield the instructions in the order in which they run; whoever takes a step runs it."""
    ends = {first: last for first, last in loop_spans(function.instructions).values()}
    running: list[tuple[int, int, int]] = []
    index = 0
    while index < len(function.instructions):
        instruction = function.instructions[index]
        if isinstance(instruction, LoopHead):
            turn = 0
            if running and running[-1][0] == index:
                turn = running.pop()[2] + 1
            yield Step(index, instruction, turn)
            if _goes_on(instruction, turn, memory):
                running.append((index, ends[index], turn))
                index += 1
            else:
                index = ends[index] + 1
        else:
            yield Step(index, instruction)
            index += 1
        if running and index > running[-1][1]:
            index = running[-1][0]


def _goes_on(head: LoopHead, turn: int, memory: Memory) -> bool:
    """Tell whether a loop whose head has been run makes one more iteration."""
    assert head.loop is not None
    if is_skipped(head, memory) or turn >= head.loop.count:
        return False
    if head.limit is not None and turn >= int(memory[head.limit].item()):
        return False
    return head.condition is None or bool(memory[head.condition].item())


def is_skipped(instruction: Instruction, memory: Memory) -> bool:
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
        dense = np.ascontiguousarray(in_memory(root.data, root))
        source = dense.reshape(-1).view(np.uint8)
        start = buffer.root_offset
    else:
        source, start = arena, offsets[root] + buffer.root_offset
    piece = source[start : start + buffer.nbytes]
    if buffer.type.packed:
        return piece
    return piece.view(buffer.type.dtype.numpy).reshape(buffer.type.shape)
