"""Stack element-wise loops: what one Map writes and only the next one reads gets no memory.

A loop that is left with one 8-bit operand and an 8-bit result is a table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.passes import record
from glowmcu.core.types import TensorType
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Function
from glowmcu.instr.instruction import Instruction
from glowmcu.ops._functions import FUNCTIONS
from glowmcu.ops._program import Arg, Input, Temp, append, result_types, run
from glowmcu.ops.lut import Lut, is_byte
from glowmcu.ops.map import Map

MAX_STEPS = 8
"""Steps of a loop; a function of one 8-bit operand may have any number, as it becomes a table."""
MAX_INPUTS = 6


def stack_maps(function: Function) -> Function:
    """Merge a Map into the only Map that reads its result; make tables of 8-bit functions."""
    instructions = list(function.instructions)
    kept = {b.root for b in function.kept}
    position = 0
    readers = _reads(instructions) + Counter(b.root for b in function.kept)
    while position < len(instructions):
        merged = None
        consumer = instructions[position]
        if isinstance(consumer, Map):
            for start, producer in _producers(instructions, position, consumer):
                if producer.y not in kept and readers[producer.y] == 1:
                    merged = _merged(instructions, start, producer, position, consumer)
                if merged is not None:
                    instructions[position] = merged
                    del instructions[start]
                    position -= 1
                    readers += _reads((merged,))
                    readers -= _reads((producer, consumer))
                    record("stack_maps")
                    break
        if merged is None:
            position += 1
    return replace(function, instructions=tuple(map(tabulated, instructions)))


def tabulated(instruction: Instruction) -> Instruction:
    """Return a table look-up for a Map that computes bytes from bytes by way of real numbers."""
    if not isinstance(instruction, Map) or not _fits_table(instruction):
        return instruction
    (x,) = instruction.xs
    types = result_types(instruction.program, FUNCTIONS, [x.type.dtype])
    if not any(t.is_float for _, t in types):
        return instruction
    bytes_ = np.arange(256, dtype=np.uint8)
    table = run(instruction.program, FUNCTIONS, [bytes_.view(x.type.dtype.numpy)])
    type_ = TensorType(dtypes.U8, (256,))
    constant = Buffer(f"{instruction.y.name}.table", type_, "constant", table.view(np.uint8))
    record("table")
    look_up = Lut(y=instruction.y, x=x, table=constant, count=x.type.numel)
    return _labelled(look_up, instruction.name, instruction.origin)


def _labelled(instruction: Instruction, name: str, origin: tuple[str, ...]) -> Instruction:
    return replace(instruction, name=name, origin=origin)  # type: ignore[type-var]


def _fits_table(i: Map) -> bool:
    x = i.xs[0] if len(i.xs) == 1 else None
    if x is None or x.type.numel != i.y.type.numel or i.y.type.dtype.nbytes != 1:
        return False
    return is_byte(x.type.dtype) and x.root.kind != "constant"


def _reads(instructions: Iterable[Instruction]) -> Counter[Buffer]:
    """Count the operands that lie in each root buffer and read it, and the views of it."""
    return Counter(
        operand.buffer.root
        for instruction in instructions
        for operand in instruction.operands()
        if operand.role != "out" or operand.buffer.base is not None
    )


def _producers(
    instructions: list[Instruction], position: int, consumer: Map
) -> list[tuple[int, Map]]:
    """Return the Maps before `position` that write an input of the consumer, with their places."""
    return [
        (place, producer)
        for place, producer in enumerate(instructions[:position])
        if isinstance(producer, Map)
        and producer.y in consumer.xs
        and producer.loop is consumer.loop
    ]


def _merged(
    instructions: list[Instruction], start: int, producer: Map, position: int, consumer: Map
) -> Instruction | None:
    """Return one Map for both, None where that is not allowed or makes memory worse."""
    t = producer.y
    if t.base is not None or t.type.numel != consumer.y.type.numel:
        return None
    xs = tuple(dict.fromkeys((*producer.xs, *(x for x in consumer.xs if x is not t))))
    is_table = len(xs) == 1 and is_byte(xs[0].type.dtype)
    steps = len(producer.program) + len(consumer.program)
    if len(xs) > MAX_INPUTS or (steps > MAX_STEPS and not is_table):
        return None
    roots = {x.root for x in producer.xs if x.root.kind != "constant"}
    between = instructions[start + 1 : position]
    if any(b.root in roots for i in between for b in i.outputs()):
        return None
    if between and sum(r.nbytes for r in roots) > t.nbytes:
        return None
    first = append((), producer.program, {i: Input(xs.index(x)) for i, x in enumerate(producer.xs)})
    places: dict[int, Arg] = {
        i: Temp(len(first) - 1) if x is t else Input(xs.index(x)) for i, x in enumerate(consumer.xs)
    }
    program = append(first, consumer.program, places)
    name = f"{producer.name} + {consumer.name}"
    origin = tuple(dict.fromkeys((*producer.origin, *consumer.origin)))
    merged = replace(consumer, xs=xs, program=program)
    return _labelled(merged, name, origin)
