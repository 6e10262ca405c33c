"""Which layers get a copy of their kernel with constant parameters."""

from __future__ import annotations

from glowmcu.instr.function import Function
from glowmcu.options import Optimize, Specialize

HOT = 0.05
"""A layer with more than this part of the MACs is hot."""
FEW = 2
"""So many copies with constant parameters take less flash than one that takes any."""


def specialised_layers(
    function: Function, mode: Specialize, optimize: Optimize = "balanced"
) -> frozenset[int]:
    """Return the layers that get a copy of their kernel with constant parameters.

    hot: layers with more than 5 % of the MACs (none of them when optimizing for size); others with
    the same parameters use that copy. Where at most two sets of parameters remain, they get copies
    as well: these are smaller than the general kernel, which is then not needed at all.
    """
    if mode == "none":
        return frozenset()
    total = sum(i.macs for i in function.instructions)
    sets: dict[str, dict[str, list[int]]] = {}
    for index, instruction in enumerate(function.instructions):
        kernel = instruction.kernel
        if kernel is not None and kernel.core:
            by_attributes = sets.setdefault(kernel.symbol, {})
            by_attributes.setdefault(repr(instruction.attributes()), []).append(index)

    def is_hot(layers: list[int]) -> bool:
        hottest = max(function.instructions[i].macs for i in layers)
        return mode == "all" or (optimize != "size" and hottest > HOT * total)

    chosen: set[int] = set()
    for groups in sets.values():
        cold = [layers for layers in groups.values() if not is_hot(layers)]
        kept = cold if len(cold) > FEW else []
        chosen.update(i for layers in groups.values() if layers not in kept for i in layers)
    return frozenset(chosen)
