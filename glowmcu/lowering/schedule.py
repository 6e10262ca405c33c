"""The order in which nodes run: one in which the fewest bytes are live at the worst moment."""

from __future__ import annotations

from itertools import pairwise

from glowmcu.core.order import Step, Steps, best_order
from glowmcu.errors import GlowmcuError
from glowmcu.graph.graph import Graph, Node, Value, body_of
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder

_MANY_STEPS = 200


def schedule(graph: Graph) -> tuple[Node, ...]:
    """Return the nodes in an order of low peak memory, never worse than graph.nodes().

    The bytes of a value count from its node to its last reader; constants and views of other
    values cost nothing.
    """
    nodes = graph.nodes()
    views = {node for node in nodes if _is_view(node)}
    owners = _owners(graph, nodes, views)
    steps: Chains = tuple((node,) for node in nodes if node not in views)
    problem = _problem(graph, steps, owners)
    if len(steps) <= _MANY_STEPS:
        order = best_order(problem)
    else:
        order = _order_of_chains(graph, steps, problem, owners)
    return _with_views(nodes, views, [steps[number][0] for number in order])


Chains = tuple[tuple[Node, ...], ...]
"""Nodes that run one after the other without interruption."""


def _order_of_chains(
    graph: Graph, steps: Chains, problem: Steps, owners: dict[Value, Value]
) -> tuple[int, ...]:
    """Return an order in which chains are not interrupted, the given one if it is as good."""
    numbers = {nodes[0]: number for number, nodes in enumerate(steps)}
    chains = _chains(steps, problem)
    given = tuple(range(len(steps)))
    order = tuple(
        numbers[node]
        for chain in best_order(_problem(graph, chains, owners))
        for node in chains[chain]
    )
    return order if problem.run(order)[0] < problem.run(given)[0] else given


def _is_view(node: Node) -> bool:
    """Tell whether a node only gives bytes another name: its card emits nothing and returns a view.

    Only nodes that act on stored integers can be like that; lowering them is cheap.
    """
    if not node.op.raw or len(node.outputs) != 1 or body_of(node) is not None:
        return False

    def buffer(value: Value) -> Buffer:
        kind = "constant" if value.is_constant else "activation"
        return Buffer(value.name, value.type, kind, value.data)  # type: ignore[arg-type]

    inputs = [None if v is None else buffer(v) for v in node.inputs]
    builder = Builder(node.name, node.origin, (buffer(node.output),))
    try:
        result = node.op.lower(builder, *inputs)
    except GlowmcuError:
        return False  # lowering in earnest reports it
    source = next((i for i in inputs if i is not None and i.kind != "constant"), None)
    return not builder.instructions and isinstance(result, Buffer) and result.root is source


def _owners(graph: Graph, nodes: tuple[Node, ...], views: set[Node]) -> dict[Value, Value]:
    """Return for every value that takes memory or names some the value that owns it."""
    owners = {value: value for value in graph.inputs}
    for node in nodes:
        for value in node.outputs:
            source = next((v for v in node.inputs if v in owners), None) if node in views else None
            owners[value] = owners[source] if source is not None else value
    return owners


def _problem(graph: Graph, steps: Chains, owners: dict[Value, Value]) -> Steps:
    numbers = {value: n for n, value in enumerate(dict.fromkeys(owners.values()))}

    def tensors(values: tuple[Value | None, ...]) -> tuple[int, ...]:
        found = (numbers[owners[v]] for v in values if v is not None and v in owners)
        return tuple(dict.fromkeys(found))

    def step(nodes: tuple[Node, ...]) -> Step:
        sizes = [sum(v.type.nbytes for v in node.outputs) for node in nodes]
        inner = max((a + b for a, b in pairwise(sizes)), default=0)
        return Step(tensors(nodes[0].inputs), tensors(nodes[-1].outputs), sizes[0], inner)

    return Steps(
        [step(nodes) for nodes in steps],
        [value.type.nbytes for value in numbers],
        frozenset(tensors(graph.outputs)),
    )


def _chains(steps: Chains, problem: Steps) -> Chains:
    """Join steps to the one step before them whose only reader they are."""
    joined: dict[int, list[Node]] = {}
    chain_of: dict[int, int] = {}
    for number, nodes in enumerate(steps):
        step, before = problem.steps[number], problem.before[number]
        previous = before.bit_length() - 1
        alone = (
            before.bit_count() == 1
            and len(step.reads) == 1
            and problem.steps[previous].writes == step.reads
            and problem.frees[number] == [(0, problem.growth[previous])]
        )
        chain_of[number] = chain_of[previous] if alone else number
        joined.setdefault(chain_of[number], []).extend(nodes)
    return tuple(tuple(nodes) for nodes in joined.values())


def _with_views(nodes: tuple[Node, ...], views: set[Node], order: list[Node]) -> tuple[Node, ...]:
    """Put every view right after the node whose result it names."""
    following: dict[Node | None, list[Node]] = {}
    for node in nodes:
        if node in views:
            producers = (v.producer for v in node.inputs if v is not None)
            following.setdefault(next((p for p in producers if p), None), []).append(node)
    result: list[Node] = []
    stack = [*reversed(order), *reversed(following.get(None, ()))]
    while stack:
        node = stack.pop()
        result.append(node)
        stack.extend(reversed(following.get(node, ())))
    return tuple(result)
