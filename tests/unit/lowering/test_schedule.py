"""The schedule: valid, never worse than the given order, optimal on small graphs, fast on large."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import Any

import pytest

from glowmcu.core import dtypes
from glowmcu.core.order import Step, Steps, best_order
from glowmcu.core.types import TensorType
from glowmcu.graph.graph import Graph, Node, Value, apply, constant
from glowmcu.instr.buffer import Buffer
from glowmcu.lowering.schedule import schedule


class Make:
    """Stands for any operator with a result of `size` bytes."""

    raw = False

    def __init__(self, size: int) -> None:
        self.size = size

    def infer(self, *_types: Any) -> TensorType:
        return TensorType(dtypes.U8, (self.size,))


class View:
    """Stands for a reshape: the same bytes."""

    raw = True

    def infer(self, x: TensorType) -> TensorType:
        return x

    def lower(self, b: Any, x: Buffer) -> Buffer:
        return Buffer("view", x.type, "activation", None, x)


def random_graph(chance: random.Random, count: int, views: bool = True) -> Graph:
    values = [Value(f"in{n}", TensorType(dtypes.U8, (chance.randrange(1, 50),))) for n in range(2)]
    inputs = tuple(values)
    weights = constant("w", dtypes.I32.numpy.type(0).reshape(1).repeat(1000))
    for _ in range(count):
        if views and chance.random() < 0.2:
            values.append(apply(View(), chance.choice(values)).output)
            continue
        operands = chance.sample(values[-8:], min(len(values), chance.randrange(1, 3)))
        values.append(apply(Make(chance.randrange(1, 50)), *operands, weights).output)
    read = {v for value in values if value.producer for v in value.producer.inputs}
    ends = tuple(v for v in values if v not in read and v.producer)
    return Graph("random", inputs, ends, tuple(f"out{n}" for n in range(len(ends))))


def owner(value: Value) -> Value:
    while value.producer is not None and isinstance(value.producer.op, View):
        (source,) = value.producer.inputs
        assert source is not None
        value = source
    return value


def peak_of(graph: Graph, order: tuple[Node, ...]) -> int:
    """Most bytes live at once, counted the slow way."""
    done: set[Node] = set()
    produced = {owner(v) for v in graph.inputs}
    kept = {owner(v) for v in graph.outputs}
    readers: dict[Value, set[Node]] = {}
    for node in order:
        if not isinstance(node.op, View):
            for value in node.inputs:
                assert value is not None
                readers.setdefault(owner(value), set()).add(node)

    def needed(value: Value) -> bool:
        if value in kept:
            return value in readers or value.producer is not None
        return bool(readers.get(value, set()) - done)

    def live() -> int:
        return sum(v.type.nbytes for v in produced if needed(v))

    peak = live()
    for node in order:
        for value in node.inputs:
            assert value is None or value.producer is None or value.producer in done
        if not isinstance(node.op, View):
            produced.add(node.output)
            unread = 0 if node.output in kept or node.output in readers else node.output.type.nbytes
            peak = max(peak, live() + unread)
        done.add(node)
    return peak


def all_orders(nodes: tuple[Node, ...]) -> Iterator[tuple[Node, ...]]:
    def extend(done: tuple[Node, ...]) -> Iterator[tuple[Node, ...]]:
        if len(done) == len(nodes):
            yield done
        for node in nodes:
            ready = all(v is None or v.producer is None or v.producer in done for v in node.inputs)
            if node not in done and ready:
                yield from extend((*done, node))

    return extend(())


@pytest.mark.parametrize("seed", range(40))
def test_small_graphs_are_scheduled_as_well_as_by_trying_every_order(seed: int) -> None:
    graph = random_graph(random.Random(seed), 6)
    order = schedule(graph)
    assert set(order) == set(graph.nodes())
    best = min(peak_of(graph, o) for o in all_orders(graph.nodes()))
    assert peak_of(graph, order) == best


@pytest.mark.parametrize("seed", range(12))
def test_larger_graphs_are_never_worse_than_given(seed: int) -> None:
    graph = random_graph(random.Random(seed), 10 + 8 * seed)
    order = schedule(graph)
    assert set(order) == set(graph.nodes())
    assert peak_of(graph, order) <= peak_of(graph, graph.nodes())
    assert schedule(graph) == order


def exhaustive(steps: Steps) -> int:
    """The least peak over all orders, by sets of steps."""
    best = {0: (steps.live, steps.live)}
    for _ in steps.steps:
        following: dict[int, tuple[int, int]] = {}
        for done, (peak, live) in best.items():
            for number in range(len(steps.steps)):
                if done >> number & 1 or steps.before[number] & ~done:
                    continue
                during, after = steps.take(number, done, live)
                changed = (max(peak, during), after)
                new = done | 1 << number
                following[new] = min(following.get(new, changed), changed)
        best = following
    return min(peak for peak, _ in best.values())


def random_steps(chance: random.Random, count: int) -> Steps:
    sizes = [256 * chance.choice((1, 2, 4, 8)) * chance.randrange(1, 5) for _ in range(count)]
    steps = [
        Step(
            tuple(sorted({chance.randrange(max(0, n - 6), n) for _ in range(2)} if n else ())),
            (n,),
            sizes[n],
        )
        for n in range(count)
    ]
    return Steps(steps, sizes, frozenset([count - 1]))


@pytest.mark.parametrize("seed", range(25))
def test_orders_are_optimal_on_graphs_of_twelve_steps(seed: int) -> None:
    steps = random_steps(random.Random(seed), 12)
    assert steps.run(best_order(steps))[0] == exhaustive(steps)


def chain_graph(blocks: int, branches: int, length: int) -> Graph:
    """Blocks of parallel chains joined again, as in inception networks."""
    x = value = Value("x", TensorType(dtypes.U8, (64,)))
    chance = random.Random(blocks)
    for _ in range(blocks):
        ends = []
        for _ in range(branches):
            end = value
            for _ in range(length):
                end = apply(Make(chance.randrange(16, 256)), end).output
            ends.append(end)
        value = apply(Make(64), *ends).output
    return Graph("blocks", (x,), (value,), ("y",))


def tangle(count: int) -> Graph:
    """One stretch without a cut, mostly of short chains."""
    chance = random.Random(1)
    heads = [Value("x", TensorType(dtypes.U8, (64,)))]
    inputs = (heads[0],)
    while count > 0:
        source = chance.choice(heads[-6:])
        for _ in range(chance.randrange(1, 4)):
            source = apply(Make(chance.randrange(16, 256)), source).output
            count -= 1
        if chance.random() < 0.5:
            source = apply(Make(chance.randrange(16, 64)), source, chance.choice(heads[-6:])).output
            count -= 1
        heads.append(source)
    y = apply(Make(8), *heads).output
    return Graph("tangle", inputs, (y,), ("y",))


@pytest.mark.parametrize(
    "graph", [chain_graph(1, 1, 400), chain_graph(25, 4, 3), chain_graph(4, 8, 10), tangle(320)]
)
def test_graphs_of_hundreds_of_nodes_take_little_time(graph: Graph) -> None:
    start = time.process_time()
    order = schedule(graph)
    seconds = time.process_time() - start
    assert len(graph.nodes()) > 300
    assert peak_of(graph, order) <= peak_of(graph, graph.nodes())
    assert seconds < 2


def test_a_chain_keeps_its_order() -> None:
    graph = chain_graph(1, 1, 20)
    assert schedule(graph) == graph.nodes()


def test_views_follow_what_they_name() -> None:
    x = Value("x", TensorType(dtypes.U8, (8,)))
    first = apply(View(), x)
    made = apply(Make(4), first.output)
    second = apply(View(), made.output)
    third = apply(View(), second.output)
    graph = Graph("views", (x,), (third.output,), ("y",))
    assert schedule(graph) == (first, made, second, third)
