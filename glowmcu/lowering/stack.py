"""Stack element-wise loops: what one Map writes and only the next one reads never gets memory."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from glowmcu.core.passes import record
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Function
from glowmcu.instr.instruction import Instruction
from glowmcu.ops._program import Arg, Input, Temp, append
from glowmcu.ops.map import Map

MAX_STEPS = 8
MAX_INPUTS = 6


def stack_maps(function: Function) -> Function:
    """Merge a Map into the only Map that reads its result."""
    instructions = list(function.instructions)
    kept = {b.root for b in function.outputs}
    position = 0
    while position < len(instructions):
        readers = _readers(function, instructions)
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
                    record("stack_maps")
                    break
        if merged is None:
            position += 1
    return replace(function, instructions=tuple(instructions))


def _readers(function: Function, instructions: list[Instruction]) -> Counter[Buffer]:
    """Count the operands that lie in each root buffer and read it, and the views of it."""
    count: Counter[Buffer] = Counter()
    for instruction in instructions:
        for operand in instruction.operands():
            if operand.role != "out" or operand.buffer.base is not None:
                count[operand.buffer.root] += 1
    for buffer in function.outputs:
        count[buffer.root] += 1
    return count


def _producers(
    instructions: list[Instruction], position: int, consumer: Map
) -> list[tuple[int, Map]]:
    """Return the Maps before `position` that write an input of the consumer, with their places."""
    return [
        (place, producer)
        for place, producer in enumerate(instructions[:position])
        if isinstance(producer, Map) and producer.y in consumer.xs
    ]


def _merged(
    instructions: list[Instruction], start: int, producer: Map, position: int, consumer: Map
) -> Map | None:
    """Return one Map for both, None where that is not allowed or makes memory worse."""
    t = producer.y
    if t.base is not None or t.type.numel != consumer.y.type.numel:
        return None
    xs = tuple(dict.fromkeys((*producer.xs, *(x for x in consumer.xs if x is not t))))
    if len(xs) > MAX_INPUTS or len(producer.program) + len(consumer.program) > MAX_STEPS:
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
    changes = {"xs": xs, "program": program, "name": name, "origin": origin}
    return replace(consumer, **changes)  # type: ignore[arg-type]
