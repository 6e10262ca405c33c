"""The rewrite driver: rules match on the graph and name replacements for a node's outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps

from glowmcu.core.passes import record
from glowmcu.graph.graph import Graph, Node, Value, body_of

Replacement = Value | tuple[Value, ...] | None
Rule = Callable[[Node, Mapping[Value, int]], Replacement]
"""rule(node, uses): None, or new values (over the graph's own values) equal to the node's outputs.

`uses` counts the readers of each value, so that a rule can leave alone what others read too.
"""

_MAX_SWEEPS = 1000


def rewrite(graph: Graph, rules: tuple[Rule, ...]) -> Graph:
    """Apply rules over and over until none fires; bounded, the error names the rules that go on."""
    fired: list[str] = []
    for _ in range(_MAX_SWEEPS):
        uses = graph.uses()
        mapping: dict[Value, Value] = {}
        fired = []
        for node in graph.nodes():
            for rule in rules:
                found = rule(node, uses)
                if found is None:
                    continue
                values = found if isinstance(found, tuple) else (found,)
                mapping.update(zip(node.outputs, values, strict=True))
                fired.append(rule.__name__)
                record(rule.__name__)
                break
        if not fired:
            return graph
        graph = substitute(graph, mapping)
    raise RuntimeError(f"rewrite rules do not come to an end: {', '.join(sorted(set(fired)))}")


def with_bodies(run: Callable[[Graph], Graph]) -> Callable[[Graph], Graph]:
    """Return a pass that runs on the graphs inside of nodes first, then on the graph itself."""

    @wraps(run)
    def everywhere(graph: Graph) -> Graph:
        mapping: dict[Value, Value] = {}
        for node in graph.nodes():
            body = body_of(node)
            changed = body if body is None else everywhere(body)
            if changed is not body:
                op = replace(node.op, body=changed)
                fresh = Node(op, node.inputs, node.types, node.names, node.origin, node.perms)
                mapping.update(zip(node.outputs, fresh.outputs, strict=True))
        return run(substitute(graph, mapping) if mapping else graph)

    return everywhere


def substitute(graph: Graph, mapping: Mapping[Value, Value]) -> Graph:
    """Return the graph with every value in `mapping` replaced, also inside the replacements.

    A replacement must not read the value it replaces.
    """
    new: dict[Value, Value] = {}

    def resolve(value: Value) -> Value:
        while value in mapping:
            value = mapping[value]
        return value

    stack: list[Value] = [resolve(v) for v in reversed(graph.outputs)]
    while stack:
        value = stack[-1]
        node = value.producer
        if value in new or node is None:
            new.setdefault(value, value)
            stack.pop()
            continue
        inputs = [None if v is None else resolve(v) for v in node.inputs]
        missing = [v for v in inputs if v is not None and v not in new]
        if missing:
            stack.extend(reversed(missing))
            continue
        stack.pop()
        rebuilt = tuple(None if v is None else new[v] for v in inputs)
        same = all(a is b for a, b in zip(rebuilt, node.inputs, strict=True))
        fresh = (
            node
            if same
            else Node(node.op, rebuilt, node.types, node.names, node.origin, node.perms)
        )
        new.update(zip(node.outputs, fresh.outputs, strict=True))
    inputs_ = tuple(new.get(resolve(v), resolve(v)) for v in graph.inputs)
    return replace(graph, inputs=inputs_, outputs=tuple(new[resolve(v)] for v in graph.outputs))
