"""Loops without what nobody needs: results not read, values that stay the same, constants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from glowmcu.graph.graph import Graph, Node, Value
from glowmcu.graph.rewrite import rewrite, substitute
from glowmcu.ops.loop import Loop
from glowmcu.passes.match import Uses


def simplify_loops(graph: Graph) -> Graph:
    """Take out of loops what is not needed, does not change from turn to turn, or is constant."""
    return rewrite(graph, (needed_in_loop,))


@dataclass(frozen=True)
class _Parts:
    """The operands and results of a Loop node by what they are; indices count states and rows."""

    node: Node
    op: Loop

    @property
    def first(self) -> tuple[Value | None, ...]:
        """First values of the states."""
        return self.node.inputs[2 : 2 + self.op.states]

    @property
    def outside(self) -> tuple[Value | None, ...]:
        """What the body reads of outside."""
        return self.node.inputs[2 + self.op.states :]

    @property
    def states(self) -> tuple[Value, ...]:
        """The states as the body reads them."""
        return self.op.body.inputs[1 : 1 + self.op.states]

    @property
    def taken(self) -> tuple[Value, ...]:
        """What the body reads of outside, in the body."""
        return self.op.body.inputs[1 + self.op.states :]

    @property
    def new(self) -> tuple[Value, ...]:
        """The new states."""
        return self.op.body.outputs[: self.op.states]

    @property
    def rows(self) -> tuple[Value, ...]:
        """What is stacked."""
        return self.op.body.outputs[self.op.states : self.op.states + len(self.op.axes)]

    @property
    def goes_on(self) -> tuple[Value, ...]:
        """Whether to go on, if that changes."""
        return self.op.body.outputs[self.op.states + len(self.op.axes) :]


def needed_in_loop(node: Node, uses: Uses) -> tuple[Value, ...] | None:
    """A loop carries and stacks only what is read, and reads constants where they are."""
    if not isinstance(node.op, Loop):
        return None
    parts = _Parts(node, node.op)
    rows = [n for n in range(len(parts.rows)) if uses.get(node.outputs[node.op.states + n])]
    fixed = [
        n for n, (new, old) in enumerate(zip(parts.new, parts.states, strict=True)) if new is old
    ]
    states = [n for n in _needed_states(parts, rows, uses) if n not in fixed]
    read = _behind([parts.new[n] for n in states] + [parts.rows[n] for n in rows])
    read |= _behind(parts.goes_on)
    taken: dict[Value, Value] = {}
    merged: dict[Value, Value] = {}
    pairs = [*zip(parts.taken, parts.outside, strict=True)]
    pairs += [(parts.states[n], parts.first[n]) for n in fixed]
    for inner, outer in pairs:
        assert outer is not None
        if inner not in read:
            continue
        if outer.data is not None:
            merged[inner] = outer
        elif taken.setdefault(outer, inner) is not inner:
            merged[inner] = taken[outer]
    same = len(states) == len(parts.states) and len(rows) == len(parts.rows)
    if same and len(taken) == len(parts.taken):
        return None
    return _rebuilt(parts, states, rows, taken, merged)


def _needed_states(parts: _Parts, rows: Sequence[int], uses: Uses) -> list[int]:
    """Return the states that are read after the loop, or in it by what is needed."""
    needed = {n for n in range(parts.op.states) if uses.get(parts.node.outputs[n])}
    while True:
        read = _behind([*(parts.rows[n] for n in rows), *parts.goes_on])
        read |= _behind([parts.new[n] for n in needed])
        more = {n for n, state in enumerate(parts.states) if state in read} - needed
        if not more:
            return sorted(needed)
        needed |= more


def _behind(results: Sequence[Value]) -> set[Value]:
    """Return everything that results are computed from."""
    return set(Graph("", (), tuple(results), ("",) * len(results)).values())


def _rebuilt(
    parts: _Parts,
    states: Sequence[int],
    rows: Sequence[int],
    taken: dict[Value, Value],
    merged: dict[Value, Value],
) -> tuple[Value, ...]:
    """Return the results of a loop with some states and rows, for those of the loop there is."""
    node, op = parts.node, parts.op
    results = [parts.new[n] for n in states] + [parts.rows[n] for n in rows]
    results += parts.goes_on
    inputs = (op.body.inputs[0], *(parts.states[n] for n in states), *taken.values())
    names = tuple(f"result{n}" for n in range(len(results)))
    body = substitute(Graph(op.body.name, inputs, tuple(results), names), merged)
    fresh = replace(op, body=body, states=len(states), axes=tuple(op.axes[n] for n in rows))
    kept = [*states, *(op.states + n for n in rows), len(node.outputs) - 1]
    made = Node(
        fresh,
        (*node.inputs[:2], *(parts.first[n] for n in states), *taken),
        tuple(node.types[n] for n in kept),
        tuple(node.names[n] for n in kept),
        node.origin,
    )
    by_number = dict(zip(kept, made.outputs, strict=True))
    # A state that stays the same is its first value; what nobody reads may be anything.
    unread = made.outputs[-1]
    return tuple(
        by_number.get(n) or (parts.first[n] if n < op.states else None) or unread
        for n in range(len(node.outputs))
    )
