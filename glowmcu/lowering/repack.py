"""Small types stay in bytes on the way from one instruction to the next."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

from glowmcu.core.passes import record
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Function
from glowmcu.ops.repack import Repack


def skip_packing(function: Function) -> Function:
    """Drop what packs a tensor only for the next instruction to unpack it again."""
    instructions = function.instructions
    reads = Counter(b.root for i in instructions for b in i.inputs())
    kept = {b.root for b in function.kept}
    dropped: set[int] = set()
    instead: dict[Buffer, Buffer] = {}
    for number, (first, second) in enumerate(pairwise(instructions)):
        if not (isinstance(first, Repack) and isinstance(second, Repack)):
            continue
        if (first.loop, first.guard) != (second.loop, second.guard):
            continue
        packed = first.y
        whole = second.x.root is packed and second.x.nbytes == packed.nbytes
        if whole and packed.type.packed and reads[packed] == 1 and packed not in kept:
            instead[second.y] = first.x
            dropped |= {number, number + 1}
            record("skip_packing")
    if not dropped:
        return function
    rest = tuple(i for n, i in enumerate(instructions) if n not in dropped)
    return _with_views(replace(function, instructions=rest), instead)


def _with_views(function: Function, instead: dict[Buffer, Buffer]) -> Function:
    """Return the function with buffers as views of others, which hold the same bytes."""
    mapping: dict[Buffer, Buffer] = {}

    def placed(buffer: Buffer) -> Buffer:
        if buffer not in mapping:
            base = instead.get(buffer, buffer.base)
            found = None if base is None else placed(base)
            mapping[buffer] = buffer if found is buffer.base else replace(buffer, base=found)
        return mapping[buffer]

    for buffer in function.buffers():
        placed(buffer)
    return function.with_buffers(mapping)
