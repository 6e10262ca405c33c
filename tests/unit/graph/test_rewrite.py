"""The rewrite driver: sharing, chains of replacements, bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from glowmcu.core import dtypes
from glowmcu.core.passes import IllFormedError, Runner, Stopped, Trace, as_pass
from glowmcu.core.types import Array, TensorType
from glowmcu.errors import OptionError
from glowmcu.graph.evaluate import evaluate
from glowmcu.graph.graph import Graph, Node, Value, apply, constant
from glowmcu.graph.printer import dot, dump
from glowmcu.graph.rewrite import Rule, rewrite, substitute
from glowmcu.graph.verify import verify

F32 = TensorType(dtypes.F32, (2,))


@dataclass(frozen=True)
class Scale:
    by: float
    raw: ClassVar[bool] = False

    def infer(self, x: TensorType) -> TensorType:
        return x

    def reference(self, x: Array) -> Array:
        return x * np.float32(self.by)


@dataclass(frozen=True)
class Sum:
    raw: ClassVar[bool] = False

    def infer(self, x: TensorType, y: TensorType) -> TensorType:
        return x

    def reference(self, x: Array, y: Array) -> Array:
        return x + y


def chain(length: int) -> Graph:
    x = Value("x", F32)
    value = x
    for _ in range(length):
        value = apply(Scale(2.0), value).output
    return Graph("chain", (x,), (value,), ("y",))


def merge_scales(node: Node, uses: Mapping[Value, int]) -> Value | None:
    match node:
        case Node(op=Scale(by=b), inputs=(Value(producer=Node(op=Scale(by=a), inputs=(x,))) as v,)):
            return apply(Scale(a * b), x).output if uses[v] == 1 else None
    return None


def run(graph: Graph) -> Any:
    return evaluate(graph, {"x": np.asarray([1.0, -3.0], np.float32)})


def test_a_rule_applies_until_it_finds_nothing_more() -> None:
    graph = chain(7)
    after = rewrite(graph, (merge_scales,))
    verify(after)
    assert len(after.nodes()) == 1
    np.testing.assert_array_equal(run(after)["y"], run(graph)["y"])


def test_a_value_that_others_read_is_left_alone() -> None:
    x = Value("x", F32)
    first = apply(Scale(2.0), x).output
    second = apply(Scale(3.0), first).output
    graph = Graph("g", (x,), (apply(Sum(), first, second).output,), ("y",))
    assert rewrite(graph, (merge_scales,)) is graph


def test_deep_graphs_need_no_recursion() -> None:
    graph = chain(5000)
    assert len(graph.nodes()) == 5000
    after = substitute(graph, {graph.inputs[0]: Value("x2", F32)})
    assert after.inputs[0].name == "x2"
    assert len(after.nodes()) == 5000


def test_replacements_may_stand_inside_replacements() -> None:
    x = Value("x", F32)
    a = apply(Scale(2.0), x).output
    b = apply(Scale(3.0), a).output
    graph = Graph("g", (x,), (b,), ("y",))
    mapping = {a: apply(Scale(20.0), x).output, b: apply(Scale(5.0), a).output}
    np.testing.assert_array_equal(run(substitute(graph, mapping))["y"], [100.0, -300.0])


def test_rules_that_never_end_are_named() -> None:
    def ping(node: Node, uses: Mapping[Value, int]) -> Value | None:
        by = {2.0: 3.0, 3.0: 2.0}[node.op.by]
        return apply(Scale(by), node.inputs[0]).output

    rule: Rule = ping
    with pytest.raises(RuntimeError, match="ping"):
        rewrite(chain(1), (rule,))


def test_verify_finds_a_wrong_type_and_an_undefined_value() -> None:
    x = Value("x", F32)
    bad = apply(Scale(2.0), x, types=(TensorType(dtypes.F32, (3,)),)).output
    with pytest.raises(IllFormedError, match="inferred"):
        verify(Graph("g", (x,), (bad,), ("y",)))
    stranger = apply(Scale(2.0), Value("z", F32)).output
    with pytest.raises(IllFormedError, match="nothing defines"):
        verify(Graph("g", (x,), (stranger,), ("y",)))


def test_dumps_are_stable() -> None:
    x = Value("x", F32)
    total = apply(Sum(), x, constant("one", np.ones(2, np.float32)), name="total").output
    graph = Graph("g", (x,), (total,), ("y",))
    assert dump(graph) == (
        "graph g\n"
        "  input  %x: f32<2>\n"
        "  const  %c0: f32<2> 'one' = [1.0, 1.0]\n"
        "  %0: f32<2> = Sum()(%x, %c0)  // total\n"
        "  output %0: f32<2> 'y'"
    )
    assert dot(graph).startswith('digraph "g" {')
    assert '"%x" -> "%0";' in dot(graph)


def test_the_runner_counts_rules_stops_and_skips() -> None:
    def merge(graph: Graph) -> Graph:
        """Merge scales."""
        return rewrite(graph, (merge_scales,))

    printed: list[str] = []
    item = as_pass(merge)
    assert item.summary == "Merge scales."
    runner = Runner(
        verify, dump, lambda g: len(g.nodes()), Trace(print_changed=True, emit=printed.append)
    )
    runner.run(chain(2), (item,))
    (record,) = runner.records
    assert record.rules == {"merge_scales": 1}
    assert (record.before, record.after) == (2, 1)
    assert "+++ after merge" in printed[0]

    with pytest.raises(Stopped) as stop:
        Runner(verify, dump, lambda g: 0, Trace(stop_after="merge")).run(chain(3), (item,))
    assert len(stop.value.subject.nodes()) == 1  # type: ignore[attr-defined]

    skipping = Trace(skip=frozenset({"merge"}))
    assert len(Runner(verify, dump, lambda g: 0, skipping).run(chain(3), (item,)).nodes()) == 3
    with pytest.raises(OptionError, match="required"):
        Runner(verify, dump, lambda g: 0, skipping).run(chain(3), (as_pass(merge, required=True),))
