"""A loop's body as a graph of its own: imported once, closed over what it reads of outside."""

from __future__ import annotations

from collections.abc import Sequence

from glowmcu.graph.graph import Graph, Value, body_of
from glowmcu.graph.rewrite import substitute
from glowmcu.ops.quant import Dequantize

FEW = 16
"""Iterations that may be unrolled because that makes large constants of what the number selects."""
SMALL = 64
"""Nodes of all iterations together that are unrolled: a loop would take about as much code."""
LARGE_CONSTANT = 64
"""Bytes of a constant that a C loop would have to copy out of flash in every iteration."""


def is_better_unrolled(count: int, body: Graph) -> bool:
    """Tell whether a loop of a known number of iterations is better unrolled than a loop in C.

    It is where there is little in all iterations together, and where each of few iterations takes
    large constants of its own, such as the weights of a layer: unrolled, these stay in flash.
    """
    if count * max(1, _size(body)) <= SMALL:
        return True
    order = _all_values(body.outputs)
    number, rest = body.inputs[0], body.inputs[1:]
    by_number = _dependent(order, (number,)) - _dependent(order, rest)
    large = any(v.type.nbytes > LARGE_CONSTANT for v in by_number)
    return count <= FEW and large


def _size(body: Graph) -> int:
    """Return the number of nodes, those of loops inside included."""
    inner = (body_of(node) for node in body.nodes())
    return len(body.nodes()) + sum(_size(graph) for graph in inner if graph is not None)


def closed(
    inputs: Sequence[Value], results: Sequence[Value], name: str
) -> tuple[Graph, tuple[Value, ...]]:
    """Return a graph from inputs to results, and the values of outside that it has as inputs too.

    What does not depend on the inputs is computed outside, once. Constants, also dequantized ones,
    are part of the graph, and it dequantizes by itself what it reads of outside.
    """
    order = _all_values(results)
    inner = _dependent(order, inputs)
    free = [v for v in order if v.producer is None and v.data is None and v not in inner]
    given = _dependent(order, free)
    made_inside = [v.producer for v in order if v in inner and v.producer is not None]
    outside: dict[Value, None] = {}
    for value in (*(v for node in made_inside for v in node.inputs if v is not None), *results):
        if value in inner or value not in given:
            continue
        made = value.producer
        stored = made.inputs[0] if made and isinstance(made.op, Dequantize) else None
        outside.setdefault(value if stored is None else stored)
    taken = {v: Value(f"{name}.outer{n}", v.type) for n, v in enumerate(outside)}
    names = tuple(f"{name}.result{n}" for n in range(len(results)))
    graph = Graph(name, (*inputs, *taken.values()), tuple(results), names)
    return substitute(graph, taken), tuple(outside)


def _dependent(order: Sequence[Value], sources: Sequence[Value]) -> set[Value]:
    """Return the values of an order that depend on one of the sources, those included."""
    found = set(sources)
    for value in order:
        node = value.producer
        if node is not None and any(v in found for v in node.inputs):
            found.add(value)
    return found


def _all_values(results: Sequence[Value]) -> list[Value]:
    """Return everything that the results are computed from, what is read before what reads it."""
    graph = Graph("", (), tuple(results), ("",) * len(results))
    nodes = graph.nodes()
    read = (v for node in nodes for v in node.inputs if v is not None and v.producer is None)
    made = (v for node in nodes for v in node.outputs)
    alone = (v for v in results if v.producer is None)
    return [*dict.fromkeys((*read, *alone)), *made]
