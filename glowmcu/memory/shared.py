"""One arena for several networks that run in turn: scratch in common, every state by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from glowmcu.instr.function import Function
from glowmcu.memory.plan import MemoryPlan, plan


@dataclass(frozen=True)
class SharedArena:
    """Where the parts of a common arena lie.

    scratch    bytes that one network after the other uses; nothing there outlives a call
    states_at  for each network, where its states begin; None: it keeps none
    size       bytes in all
    largest    the network that uses most scratch
    """

    scratch: int
    states_at: tuple[int | None, ...]
    size: int
    largest: int


def share_arena(functions: Sequence[Function], aligns: Sequence[int]) -> SharedArena:
    """Return the smallest common arena for the plans that `plan` finds for each function."""
    plans = [plan(f, align, states_at=0) for f, align in zip(functions, aligns, strict=True)]
    each = list(map(_scratch, plans))
    scratch = max(each)
    size, starts = scratch, list[int | None]()
    for function, layout in zip(functions, plans, strict=True):
        if not function.states:
            starts.append(None)
            continue
        start = -(-size // layout.align) * layout.align
        starts.append(start)
        size = start + max(layout.offsets[b] + b.nbytes for b in function.states)
    return SharedArena(scratch, tuple(starts), size, each.index(scratch))


def _scratch(layout: MemoryPlan) -> int:
    ends = (at + b.nbytes for b, at in layout.offsets.items() if b.in_arena and b.kind != "state")
    return max(ends, default=0)
