"""The shape of a list of ONNX nodes: names defined once, no cycle, sorted, dead nodes left out."""

from __future__ import annotations

import heapq
from collections.abc import Container, Iterable, Sequence

import onnx

from glowmcu.errors import InvalidModelError


def order(
    nodes: Sequence[onnx.NodeProto], defined: Container[str], outputs: Iterable[str], where: str
) -> tuple[onnx.NodeProto, ...]:
    """Return the nodes that `outputs` need, each after what it reads, else in the given order.

    `defined` are the names known before (inputs, initializers, names of an outer graph).
    """
    producers = _producers(nodes, defined, where)
    reads = [tuple(dict.fromkeys(reads_of(n))) for n in nodes]
    for node, names in zip(nodes, reads, strict=True):
        for name in names:
            if name not in producers and name not in defined:
                raise InvalidModelError(
                    f"node '{label(node)}' reads '{name}', which nothing defines",
                    where=where,
                    hint="check that the model is complete",
                )
    for name in outputs:
        if name not in producers and name not in defined:
            raise InvalidModelError(f"output '{name}' is not defined by any node", where=where)
    waits = [[producers[n] for n in names if n in producers] for names in reads]
    live = _live([producers[n] for n in outputs if n in producers], waits)
    return tuple(nodes[i] for i in _sorted(nodes, waits, where) if i in live)


def label(node: onnx.NodeProto) -> str:
    """Return the node's name, else its first output's, else its operator."""
    return node.name or next((o for o in node.output if o), node.op_type)


def reads_of(node: onnx.NodeProto) -> Iterable[str]:
    """Yield the names that a node reads, those of its subgraphs from the outside included."""
    yield from (name for name in node.input if name)
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield from _captured(attribute.g)
        for graph in attribute.graphs:
            yield from _captured(graph)


def _captured(graph: onnx.GraphProto) -> Iterable[str]:
    inside = {i.name for i in graph.input} | {t.name for t in graph.initializer}
    inside |= {t.values.name for t in graph.sparse_initializer}
    inside |= {name for node in graph.node for name in node.output}
    for node in graph.node:
        yield from (name for name in reads_of(node) if name not in inside)
    yield from (o.name for o in graph.output if o.name and o.name not in inside)


def _producers(
    nodes: Sequence[onnx.NodeProto], defined: Container[str], where: str
) -> dict[str, int]:
    producers: dict[str, int] = {}
    for number, node in enumerate(nodes):
        for name in node.output:
            if not name:
                continue
            if name in producers or name in defined:
                first = f"node '{label(nodes[producers[name]])}'" if name in producers else "input"
                raise InvalidModelError(
                    f"the name '{name}' is defined twice: by {first} and by node '{label(node)}'",
                    where=where,
                )
            producers[name] = number
    return producers


def _live(roots: list[int], waits: list[list[int]]) -> set[int]:
    live: set[int] = set()
    stack = list(roots)
    while stack:
        number = stack.pop()
        if number not in live:
            live.add(number)
            stack.extend(waits[number])
    return live


def _sorted(nodes: Sequence[onnx.NodeProto], waits: list[list[int]], where: str) -> Iterable[int]:
    missing = [len(set(w)) for w in waits]
    readers: list[list[int]] = [[] for _ in nodes]
    for number, sources in enumerate(waits):
        for source in set(sources):
            readers[source].append(number)
    ready = [i for i, m in enumerate(missing) if m == 0]
    done = 0
    while ready:
        number = heapq.heappop(ready)
        done += 1
        yield number
        for reader in readers[number]:
            missing[reader] -= 1
            if missing[reader] == 0:
                heapq.heappush(ready, reader)
    if done < len(nodes):
        stuck = [label(n) for n, m in zip(nodes, missing, strict=True) if m]
        raise InvalidModelError(
            f"the graph has a cycle through node '{stuck[0]}'",
            where=where,
            why="a node needs, directly or through others, its own result",
        )
