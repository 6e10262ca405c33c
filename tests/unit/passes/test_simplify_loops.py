"""Loops carry, read and stack only what is needed; what they compute stays the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from glowmcu.graph.evaluate import evaluate
from glowmcu.graph.graph import Graph, Node, Value, apply, constant
from glowmcu.graph.rewrite import with_bodies
from glowmcu.graph.verify import verify
from glowmcu.ops.base import f32
from glowmcu.ops.elementwise import Elementwise
from glowmcu.ops.loop import NUMBER, Loop
from glowmcu.passes.fold import fold_constants
from glowmcu.passes.loops import simplify_loops

Array = np.ndarray[Any, Any]
X = {name: np.array([n, 2.0], np.float32) for n, name in enumerate("abcde")}


def add(*values: Value) -> Value:
    return apply(Elementwise("add"), *values).output


def network(keep: tuple[int, ...], outside: tuple[Value, ...] = ()) -> Graph:
    """Return a loop with three states (one stays, one depends on another) and two stacked rows."""
    inputs = tuple(Value(name, f32(2)) for name in "abcde")
    given = outside or inputs[3:]
    number = Value("number", NUMBER)
    p, q, r = (Value(name, f32(2)) for name in "pqr")
    u, v = (Value(f"o{n}", f32(2)) for n in range(2))
    results = (add(p, q), q, add(r, u), add(r, v), add(p, v))
    body = Graph("body", (number, p, q, r, u, v), results, tuple("01234"))
    op = Loop(body, 4, 3, (0, 1))
    made = apply(op, None, None, *inputs[:3], *given)
    names = tuple(f"y{n}" for n in keep)
    return Graph("g", inputs, tuple(made.outputs[n] for n in keep), names)


def the_loop(graph: Graph) -> Node:
    (found,) = (n for n in graph.nodes() if isinstance(n.op, Loop))
    return found


def check(graph: Graph) -> Graph:
    simple = simplify_loops(graph)
    verify(simple)
    right, found = evaluate(graph, X), evaluate(simple, X)
    assert all(np.array_equal(found[n], right[n]) for n in right)
    return simple


@pytest.mark.parametrize(
    ("keep", "states", "rows"),
    [
        ((0, 1, 2, 3, 4, 5), 2, 2),
        ((0,), 1, 0),
        ((2,), 1, 0),
        ((3,), 1, 1),
        ((4,), 1, 1),
        ((5,), 0, 0),
        ((3, 4), 2, 2),
    ],
)
def test_only_what_is_read_is_carried_and_stacked(
    keep: tuple[int, ...], states: int, rows: int
) -> None:
    node = the_loop(check(network(keep)))
    assert (node.op.states, len(node.op.axes)) == (states, rows)


def test_a_state_that_stays_is_its_first_value() -> None:
    graph = check(network((1,)))
    assert graph.outputs == graph.inputs[1:2]


def test_constants_are_read_where_they_are() -> None:
    data = constant("k", np.array([3.0, 4.0], np.float32))
    node = the_loop(check(network((2, 4), (data, data))))
    assert data not in node.inputs
    assert len(node.op.body.inputs) == 1 + 2 + 1


def test_what_is_read_twice_comes_in_once() -> None:
    graph = network((2, 3))
    node = the_loop(graph)
    same = Node(node.op, (*node.inputs[:-1], node.inputs[-2]), node.types, node.names)
    twice = Graph("g", graph.inputs, same.outputs[2:4], ("y2", "y3"))
    assert len(the_loop(check(twice)).op.body.inputs) == 1 + 1 + 1


def test_passes_run_inside_of_loops() -> None:
    number, p = Value("number", NUMBER), Value("p", f32(2))
    k = constant("k", np.array([3.0, 4.0], np.float32))
    inner = Graph("inner", (number, p), (add(p, add(k, k)),), ("q",))
    n2, p2 = Value("n2", NUMBER), Value("p2", f32(2))
    step = apply(Loop(inner, 3, 1), None, None, p2)
    outer = Graph("outer", (n2, p2), (step.outputs[0],), ("q",))
    a = Value("a", f32(2))
    graph = Graph("g", (a,), apply(Loop(outer, 2, 1), None, None, a).outputs[:1], ("y",))
    folded = with_bodies(fold_constants)(graph)
    verify(folded)
    body = the_loop(the_loop(folded).op.body).op.body
    assert [n.op.fn for n in body.nodes()] == ["add"]
    np.testing.assert_array_equal(evaluate(folded, X)["y"], evaluate(graph, X)["y"])
