"""An arena that quick memory does not hold: the buffers used least go to slower memory."""

from __future__ import annotations

from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Function
from glowmcu.memory.lifetime import lifetimes
from glowmcu.memory.plan import MemoryPlan, plan


def divide(function: Function, align: int, room: int) -> MemoryPlan | None:
    """Return a plan whose arena has at most `room` bytes, the rest in slow memory.

    What the caller and other calls see stays in the arena. At the fullest moment the buffer leaves
    it that is used least for each of its bytes, until the others fit; then those come back that
    there is room for, the most used first. None where that does not make it fit.
    """
    spans = lifetimes(function)
    heat = _uses_per_byte(function)
    slow: set[Buffer] = set()

    def fits() -> bool:
        return plan(function, align, quick=True, slow=frozenset(slow)).size <= room

    while not fits():
        live = _fullest(function, {b: s for b, s in spans.items() if b not in slow})
        able = [b for b in live if b.kind in ("activation", "scratch")]
        if not able:
            return None
        slow.add(min(able, key=lambda b: (heat[b], -b.nbytes, b.name)))
    for buffer in sorted(slow, key=lambda b: (-heat[b], b.nbytes, b.name)):
        slow.remove(buffer)
        if not fits():
            slow.add(buffer)
    return plan(function, align, slow=frozenset(slow))


def _fullest(function: Function, spans: dict[Buffer, tuple[int, int]]) -> list[Buffer]:
    """Return what is live at the instruction at which most bytes are."""
    moments = (
        [b for b, (first, last) in spans.items() if first <= index <= last and b.nbytes]
        for index in range(-1, len(function.instructions) + 1)
    )
    return max(moments, key=lambda live: sum(b.nbytes for b in live))


def _uses_per_byte(function: Function) -> dict[Buffer, float]:
    """Return about how often a call reads and writes each byte of a buffer."""
    uses: dict[Buffer, float] = {}
    for instruction in function.instructions:
        read = [b for b in instruction.inputs() if b.in_arena]
        products = instruction.macs / max(sum(b.nbytes for b in read), 1)
        touched = [(b, max(products, 1.0)) for b in read]
        touched += [(b, 1.0) for b in instruction.outputs()]
        touched += [(o.buffer, products) for o in instruction.operands() if o.role != "in"]
        touched += [(instruction.scratch, products)] if instruction.scratch else []
        for buffer, times in touched:
            share = buffer.nbytes / max(buffer.root.nbytes, 1)
            uses[buffer.root] = uses.get(buffer.root, 0.0) + times * share * instruction.turns
    return uses
