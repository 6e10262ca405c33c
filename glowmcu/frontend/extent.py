"""Data-dependent shapes: capacities are known, bounded dimensions are followed to the outputs.

An output with a bounded dimension gets a companion `NAME_shape`, its actual shape at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from glowmcu.errors import GlowmcuError, UnsupportedError
from glowmcu.graph.graph import Graph, Node, Value, apply, constant
from glowmcu.graph.rewrite import substitute
from glowmcu.ops.bounded import Bounded
from glowmcu.ops.elementwise import Elementwise
from glowmcu.ops.gather import Gather, GatherElements, GatherND
from glowmcu.ops.reduce import Reduce
from glowmcu.ops.reshape import Reshape
from glowmcu.ops.slice import Slice
from glowmcu.ops.transpose import Transpose

Extents = Mapping[int, Value]
"""Dimension -> how much of it is meant, a value of type i32."""
DATA_DEPENDENT = frozenset({"Compress", "NonMaxSuppression", "NonZero", "TopK", "Unique"})
_ONE_BY_ONE = ("Elementwise", "Cast", "Quantize", "Dequantize", "AsQuant", "BitCast")


def with_shapes(
    graph: Graph, report: Callable[[GlowmcuError], None]
) -> tuple[Graph, dict[str, str]]:
    """Return the graph with an output NAME_shape for each output whose shape depends on data.

    The marks that said so are gone. Nodes that would read beyond what is meant are reported.
    Returns the names of the new outputs, too: output -> the one that says its actual shape.
    """
    if not any(isinstance(n.op, Bounded) for n in graph.nodes()):
        return graph, {}
    extents = _Follower(report).follow(graph)
    outputs, names = list(graph.outputs), list(graph.output_names)
    companions: dict[str, str] = {}
    for value, name in zip(graph.outputs, graph.output_names, strict=True):
        if extents.get(value):
            label = f"{name}_shape"
            while label in names:
                label += "_"
            outputs.append(_shape(value, label, extents[value]))
            names.append(label)
            companions[name] = label
    marks = [n for n in graph.nodes() if isinstance(n.op, Bounded)]
    shaped = Graph(graph.name, graph.inputs, tuple(outputs), tuple(names))
    bare = substitute(shaped, {n.output: x for n in marks if (x := n.inputs[0]) is not None})
    return bare, companions


def without_marks(body: Graph) -> Graph:
    """Return the body of a loop without the marks; what it hands on must not be marked."""
    marks = [n for n in body.nodes() if isinstance(n.op, Bounded)]
    problems: list[GlowmcuError] = []
    extents = _Follower(problems.append).follow(body) if marks else {}
    if problems:
        raise problems[0]
    for value in body.outputs:
        if extents.get(value):
            raise UnsupportedError(
                f"the body of a loop hands on '{value.name}', whose size depends on the data",
                hint="make it of one size, for example by Pad, or reduce it in the body",
            )
    return substitute(body, {n.output: x for n in marks if (x := n.inputs[0]) is not None})


def _shape(value: Value, label: str, extents: Extents) -> Value:
    """Return the actual shape: the capacity, but for the bounded dimensions."""
    found = constant(f"{label}.capacity", np.asarray(value.shape, np.int32))
    for axis, extent in sorted(extents.items()):
        mask = constant(f"{label}.bounded{axis}", np.arange(value.type.rank) == axis)
        name = label if axis == max(extents) else f"{label}.{axis}"
        found = apply(Elementwise("where"), mask, extent, found, name=name).output
    return found


@dataclass
class _Follower:
    """Follows bounded dimensions through the nodes of a graph."""

    report: Callable[[GlowmcuError], None]
    extents: dict[Value, dict[int, Value]] = field(default_factory=dict)

    def follow(self, graph: Graph) -> dict[Value, dict[int, Value]]:
        for node in graph.nodes():
            if isinstance(node.op, Bounded):
                x, extent = node.inputs
                assert x is not None and extent is not None
                self.extents[node.output] = {**self._of(x), node.op.axis: extent}
            elif any(self._of(v) for v in node.inputs):
                self.extents[node.outputs[0]] = self._through(node)
        return self.extents

    def _of(self, value: Value | None) -> dict[int, Value]:
        return {} if value is None else self.extents.get(value, {})

    def _through(self, node: Node) -> dict[int, Value]:
        """Return the bounded dimensions of a node's output; report what would read beyond them."""
        op, kind, x = node.op, type(node.op).__name__, self._of(node.inputs[0])
        found: dict[int, Value] | None = None
        if kind in _ONE_BY_ONE:
            found = self._broadcast(node)
        elif isinstance(op, Transpose):
            found = {op.perm.index(axis): extent for axis, extent in x.items()}
        elif isinstance(op, Reshape):
            found = _reshaped(node, x)
        elif isinstance(op, Slice):
            shape = node.inputs[0].shape if node.inputs[0] else ()
            whole = all(op.starts[a] == 0 and op.shape[a] == shape[a] for a in x)
            found = x if whole else None
        elif isinstance(op, Reduce) and not x.keys() & set(op.axes):
            found = {a if op.keepdims else a - sum(r < a for r in op.axes): e for a, e in x.items()}
        elif kind == "Concat":
            found = self._broadcast(node)
            found = None if found is None or op.axis in found else found
        elif isinstance(op, Gather | GatherElements | GatherND):
            found = self._gathered(node)
        if found is None:
            self._refuse(node)
        return found or {}

    def _broadcast(self, node: Node) -> dict[int, Value] | None:
        found: dict[int, Value] = {}
        rank = node.outputs[0].type.rank
        for value in node.inputs:
            for axis, extent in self._of(value).items():
                assert value is not None
                place = axis + rank - value.type.rank
                if found.setdefault(place, extent) is not extent:
                    return None
        return found

    def _gathered(self, node: Node) -> dict[int, Value] | None:
        x, index = self._of(node.inputs[0]), self._of(node.inputs[1])
        op = node.op
        if x:
            return None
        return {a + op.axis: e for a, e in index.items()} if isinstance(op, Gather) else index

    def _refuse(self, node: Node) -> None:
        bounded = next(v for v in node.inputs if self._of(v))
        assert bounded is not None
        self.report(
            UnsupportedError(
                f"{type(node.op).__name__} of a tensor whose size depends on the data",
                where=f"node '{node.name}', which reads '{bounded.name}' of at most {bounded.type}",
                why="it would read beyond the elements that are meant",
                hint=f"make '{bounded.name}' an output of the model and go on in C",
            )
        )


def _reshaped(node: Node, x: Extents) -> dict[int, Value] | None:
    """Follow through a reshape that only adds or removes dimensions of size 1."""
    before = node.inputs[0].shape if node.inputs[0] else ()
    after = node.outputs[0].shape
    large = [[d for d, n in enumerate(s) if n != 1] for s in (before, after)]
    if [before[d] for d in large[0]] != [after[d] for d in large[1]]:
        return None
    if any(axis not in large[0] for axis in x):
        return dict(x) if before == after else None
    return {large[1][large[0].index(axis)]: extent for axis, extent in x.items()}
