"""The body of Loop or Scan, imported where it stands; rows put together; elements taken out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx

from glowmcu.errors import InvalidModelError
from glowmcu.frontend.choice import Importing
from glowmcu.frontend.extent import without_marks
from glowmcu.frontend.rolled import closed
from glowmcu.frontend.scope import Scope
from glowmcu.frontend.tensors import dtype_of
from glowmcu.graph.graph import Value
from glowmcu.ops.concat import Concat
from glowmcu.ops.loop import NUMBER, Loop
from glowmcu.ops.onnx_node import OnnxNode
from glowmcu.ops.reshape import Reshape, normal_axis
from glowmcu.ops.slice import part

MAX_NODES = 4096
"""Nodes of all iterations together that are unrolled where a loop in C cannot be made."""


@dataclass
class Body:
    """The body of a loop, and where it is imported; `done` counts the iterations unrolled."""

    graph: onnx.GraphProto
    scope: Scope
    seen: OnnxNode
    importing: Importing
    place: str = ""
    done: int = 0

    def run(self, arguments: Sequence[Value | None], prefix: str = "") -> list[Value | None]:
        """Import the body; return its outputs."""
        scope = self.scope
        inner = Scope(
            opsets=scope.opsets,
            attributes=scope.attributes,
            prefix=f"{self.seen.label}/{self.place}{prefix}",
            outer=scope,
            calls=scope.calls,
        )
        names = [i.name for i in self.graph.input]
        inner.values.update(zip(names, arguments, strict=True))
        self.importing.body(self.graph, inner, f"body of node '{self.seen.label}'")
        return [inner.value(o.name) for o in self.graph.output]

    def run_again(self, arguments: Sequence[Value | None]) -> list[Value | None]:
        """Import the body for the next one of unrolled iterations."""
        self.done += 1
        if self.done * max(1, len(self.graph.node)) > MAX_NODES:
            self.seen.fail(
                f"its iterations have more than {MAX_NODES} nodes",
                why="it cannot become a loop in C, so that every iteration is code of its own",
                hint="give the loop a constant trip count, and values that keep their shapes",
            )
        return self.run(arguments, f"{self.done - 1}/")

    def value(self, name: str, like: Value) -> Value:
        """Return an input of the body as a graph, of the type of a value."""
        made = Value(f"{self.seen.label}/{self.place}{name}", like.type)
        self.importing.declare(made)
        return made

    def number(self) -> Value:
        """Return the number of an iteration of a body as a graph."""
        return self.value("number", Value("", NUMBER))

    def check_signature(self, inputs: int, outputs: int) -> None:
        """Refuse a body that does not fit the node."""
        found = len(self.graph.input), len(self.graph.output)
        if found != (inputs, outputs):
            raise InvalidModelError(
                f"the body of {self.seen.op_type} has {found[0]} inputs and {found[1]} outputs "
                f"instead of {inputs} and {outputs}",
                where=f"node '{self.seen.label}'",
            )


@dataclass(frozen=True)
class Rolled:
    """A body as a graph: what it reads of outside, and how a loop in C uses it."""

    op: Loop
    outside: tuple[Value, ...]

    def applied(
        self,
        body: Body,
        first: Sequence[Value],
        limit: Value | None = None,
        condition: Value | None = None,
    ) -> list[Value]:
        """Return the last states, the stacked rows and the number of iterations."""
        count = len(first) + len(self.op.axes) + 1
        suffix = f"{body.place}loop" if body.place else ""
        inputs = (limit, condition, *first, *self.outside)
        return list(body.seen.apply(self.op, *inputs, suffix=suffix, outputs=count).outputs)


def rolled(
    body: Body,
    number: Value,
    states: Sequence[Value],
    results: Sequence[Value | None],
    axes: Sequence[int],
    count: int,
) -> Rolled:
    """Return a body as a graph; results: new states, rows, and perhaps whether to go on.

    Raises UnsupportedError where a state changes its type from one iteration to the next.
    """
    seen = body.seen
    known = [v for v in results if v is not None]
    if len(known) < len(results):
        seen.fail("a result of its body is not known")
    for state, new in zip(states, known, strict=False):
        if state.type != new.type:
            seen.fail(
                "a value that it hands on changes its type",
                why=f"'{new.name}' is {new.type} after an iteration and {state.type} before it",
                hint="let it keep its shape, as by Pad; few iterations, whose number is constant, "
                "become layers one after the other instead",
            )
    graph, outside = closed((number, *states), known, f"{seen.label}/{body.place}body")
    rows = known[len(states) :]
    axes = [normal_axis(seen, a, r.type.rank + 1) for a, r in zip(axes, rows, strict=False)]
    goes_on = len(rows) > len(axes)
    op = Loop(without_marks(graph), count, len(states), tuple(axes), goes_on)
    return Rolled(op, outside)


def stacked(
    seen: OnnxNode,
    rows: Sequence[Value | None],
    axis: int,
    output: onnx.ValueInfoProto,
    suffix: str,
) -> Value | None:
    """Return rows put together along a new axis."""
    present = [r for r in rows if r is not None]
    if len(present) < len(rows):
        return None
    if not present:
        tensor = output.type.tensor_type
        shape = [d.dim_value for d in tensor.shape.dim]
        if not tensor.HasField("shape") or not all(shape):
            seen.fail(f"the shape of output '{output.name}' is unknown, as no iteration is made")
        dtype = dtype_of(tensor.elem_type, f"output '{output.name}'")
        return seen.constant(np.zeros((0, *shape), dtype.numpy), suffix)
    first = present[0].type
    for row in present:
        if row.type != first:
            seen.fail(f"the iterations give different types: {first} and {row.type}")
    axis = normal_axis(seen, axis, first.rank + 1)
    op = Reshape((*first.shape[:axis], 1, *first.shape[axis:]))
    made = [seen.apply(op, row, suffix=f"{suffix}.row{n}").output for n, row in enumerate(present)]
    if len(made) == 1:
        return made[0]
    return seen.apply(Concat(axis), *made, suffix=suffix).output


def element(seen: OnnxNode, x: Value, axis: int, index: int, suffix: str) -> Value:
    """Return the part of x at an index of an axis, without that axis."""
    piece = seen.apply(part(x.type, axis, index, 1), x, suffix=f"{suffix}.part").output
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    return seen.apply(Reshape(shape), piece, suffix=suffix).output
