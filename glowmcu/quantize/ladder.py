"""The ladder: plans from int8 to float, every rung raising what pays most for what it costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from glowmcu.core import dtypes
from glowmcu.graph.graph import Node
from glowmcu.options import Precision
from glowmcu.passes.linear import operations
from glowmcu.quantize.precision import Plan
from glowmcu.quantize.sensitivity import Sensitivity
from glowmcu.quantize.storage import Storage

PRICE: Mapping[Precision, float] = {"int8": 1.0, "int16": 2.0, "float": 4.0}
"""What one multiplication costs: as many units as the activation has bytes."""


def price(plan: Plan, nodes: Iterable[Node]) -> float:
    """Return the cost of a plan, in multiplications of int8."""
    return sum(PRICE[plan[node]] * operations(node) for node in nodes)


def ladder(
    base: Plan, free: Iterable[Node], storage: Storage, found: Sensitivity
) -> list[dict[Node, Precision]]:
    """Return plans of growing cost and falling error, from `base` to float.

    free  the nodes whose precision may be changed
    A value is not rounded to int8 when all nodes around it are raised: to int16 where they have
    such arithmetic, else to float. Weights are int8 until a layer is float.
    """
    nodes = tuple(free)
    raised: dict[Node, Precision] = {
        n: "int16" if storage.has_arithmetic(n, dtypes.I16) else "float" for n in nodes
    }
    plans: list[dict[Node, Precision]] = [dict(base)]
    for group in _groups(nodes, raised, found):
        plans.append({**plans[-1], **{n: raised[n] for n in group}})
    left = [n for n in nodes if raised[n] == "int16"]
    left.sort(key=lambda n: -found.weights.get(n, 0.0) / operations(n))
    for node in left:
        plans.append({**plans[-1], node: "float"})
    return plans


def _groups(
    nodes: tuple[Node, ...], raised: Mapping[Node, Precision], found: Sensitivity
) -> list[list[Node]]:
    """Return the nodes in the groups in which they are best raised, the best first."""
    waiting = {
        v: found.activations[v]
        for v, around in found.around.items()
        if around and around <= set(nodes)
    }
    up: set[Node] = set()
    groups = []

    def extra(around: Iterable[Node]) -> float:
        return sum((PRICE[raised[n]] - 1) * operations(n) for n in around if n not in up)

    while waiting:
        best = max(waiting, key=lambda v: waiting[v] / max(extra(found.around[v]), 1.0))
        group = [n for n in nodes if n in found.around[best] and n not in up]
        up.update(group)
        if group:
            groups.append(group)
        for value in [v for v in waiting if found.around[v] <= up]:
            del waiting[value]
    rest = [n for n in nodes if n not in up]
    return [*groups, *([n] for n in rest)]
