"""Loop and Scan: the body once for every iteration, whose number is known at compile time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx

from glowmcu.errors import InvalidModelError
from glowmcu.frontend.choice import Branch, apply_importer, chosen
from glowmcu.frontend.scope import Scope
from glowmcu.frontend.tensors import dtype_of
from glowmcu.graph.graph import Value, constant
from glowmcu.ops.concat import Concat
from glowmcu.ops.onnx_node import OnnxNode
from glowmcu.ops.reshape import Reshape, normal_axis
from glowmcu.ops.slice import part

FEW = 16
"""So many iterations are unrolled whatever the size of the body."""
MAX_NODES = 4096
"""Nodes of all iterations together that are imported where they are more than a few."""


@dataclass
class _Body:
    """The body of a loop, and where it is imported."""

    graph: onnx.GraphProto
    scope: Scope
    seen: OnnxNode
    branch: Branch
    done: int = 0
    place: str = ""

    def run(self, arguments: Sequence[Value | None]) -> list[Value | None]:
        """Import the body once more; return its outputs."""
        self.done += 1
        self._check_size()
        scope = self.scope
        inner = Scope(
            opsets=scope.opsets,
            attributes=scope.attributes,
            prefix=f"{self.seen.label}/{self.place}{self.done - 1}/",
            outer=scope,
            calls=scope.calls,
        )
        names = [i.name for i in self.graph.input]
        inner.values.update(zip(names, arguments, strict=True))
        self.branch(self.graph, inner, f"body of node '{self.seen.label}'")
        return [inner.value(o.name) for o in self.graph.output]

    def check_signature(self, inputs: int, outputs: int) -> None:
        """Refuse a body that does not fit the node."""
        found = len(self.graph.input), len(self.graph.output)
        if found != (inputs, outputs):
            raise InvalidModelError(
                f"the body of {self.seen.op_type} has {found[0]} inputs and {found[1]} outputs "
                f"instead of {inputs} and {outputs}",
                where=f"node '{self.seen.label}'",
            )

    def _check_size(self) -> None:
        if self.done > FEW and self.done * max(1, len(self.graph.node)) > MAX_NODES:
            self.seen.fail(
                f"its iterations have more than {MAX_NODES} nodes",
                why="every iteration becomes code of its own",
                hint="shorten the sequence, or export the loop as a recurrent layer or a reduction",
            )


def import_loop(
    node: onnx.NodeProto, scope: Scope, seen: OnnxNode, branch: Branch
) -> tuple[Value | None, ...]:
    """Return the outputs of Loop: carried values, then one row of each scan output an iteration.

    A condition that is known at run time only keeps the carried values as they are once it is
    false.
    """
    body = _Body(seen.attr("body"), scope, seen, branch)
    carried: list[Value | None] = [seen.value(n) for n in range(2, len(seen.inputs))]
    count = len(carried)
    body.check_signature(2 + count, 1 + len(node.output))
    limit = seen.const(0, "the trip count")
    trips = None if limit is None else int(limit.reshape(-1)[0])
    condition = seen.optional(1)
    active = _Active(seen)
    rows: list[list[Value | None]] = [[] for _ in node.output[count:]]
    while (trips is None or body.done < trips) and active.goes_on(condition):
        if trips is None and active.condition is not None:
            seen.fail(
                "it ends by a condition that is known at run time only",
                why="without a trip count there is no bound on the iterations",
                hint="give the loop a constant trip count when exporting",
            )
        number = constant(f"{seen.label}/{body.done}/number", np.asarray(body.done, np.int64))
        going = constant(f"{seen.label}/{body.done}/condition", np.asarray(True))
        condition, *found = body.run((number, going, *carried))
        carried = [
            active.choose(f"{seen.label}/{body.done}/{n}", new, old)
            for n, (new, old) in enumerate(zip(found[:count], carried, strict=True))
        ]
        for row, value in zip(rows, found[count:], strict=True):
            row.append(value)
        if condition is None:
            break
    if any(rows) and active.condition is not None and any(seen.output_names[count:]):
        seen.const(1, "the condition, on which the shape of an output depends,")
        seen.fail(
            "the number of iterations, and with it an output's shape, is known at run time only",
            hint="make the condition a constant when exporting",
        )
    results = body.graph.output[1 + count :]
    return (
        *carried,
        *(
            _stacked(seen, r, 0, o, f"scan{n}")
            for n, (r, o) in enumerate(zip(rows, results, strict=True))
        ),
    )


@dataclass
class _Active:
    """Whether an iteration takes place: surely, or where `condition` holds at run time."""

    seen: OnnxNode
    condition: Value | None = None

    def goes_on(self, condition: Value | None) -> bool:
        """Take in the condition of the next iteration; False where it surely does not happen."""
        if condition is None:
            return True
        if condition.type.numel != 1:
            self.seen.fail(f"the condition has {condition.type.numel} elements instead of one")
        if condition.data is not None:
            return bool(condition.data.item())
        if condition.type.rank:
            condition = self.seen.apply(Reshape(()), condition, suffix="condition").output
        if self.condition is not None:
            name = f"{condition.name}.all"
            active = self.condition
            condition = apply_importer(self.seen, "Where", name, active, condition, active)
        self.condition = condition
        return True

    def choose(self, name: str, new: Value | None, old: Value | None) -> Value | None:
        """Return a carried value after an iteration."""
        return new if self.condition is None else chosen(self.seen, name, self.condition, new, old)


def _stacked(
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


@dataclass(frozen=True)
class _Scan:
    """Axes and directions (1: backwards) of the scanned inputs and outputs; body and states."""

    body: _Body
    seen: OnnxNode
    input_axes: tuple[int, ...]
    backward: tuple[int, ...]
    output_axes: tuple[int, ...]
    prepend: tuple[int, ...]
    names: dict[str, int] = field(default_factory=dict)

    def run(
        self, states: Sequence[Value | None], scanned: Sequence[Value], place: str
    ) -> list[Value | None]:
        """Return the last states and the stacked outputs."""
        axes = [
            normal_axis(self.seen, a, x.type.rank)
            for a, x in zip(self.input_axes, scanned, strict=True)
        ]
        lengths = {x.shape[a] for a, x in zip(axes, scanned, strict=True)}
        if len(lengths) != 1:
            self.seen.fail(f"the scanned inputs have different lengths: {sorted(lengths)}")
        (length,) = lengths
        results = self.body.graph.output[len(states) :]
        rows: list[list[Value | None]] = [[] for _ in results]
        self.body.done, self.body.place = 0, place
        carried = list(states)
        for step in range(length):
            parts = [
                _element(self.seen, x, a, length - 1 - step if back else step, f"{place}{n}.{step}")
                for n, (x, a, back) in enumerate(zip(scanned, axes, self.backward, strict=True))
            ]
            found = self.body.run((*carried, *parts))
            carried = found[: len(carried)]
            for row, value in zip(rows, found[len(carried) :], strict=True):
                row.append(value)
        stacked = [
            _stacked(self.seen, r[::-1] if back else r, a, o, f"{place}scan{n}")
            for n, (r, a, back, o) in enumerate(
                zip(rows, self.output_axes, self.prepend, results, strict=True)
            )
        ]
        return [*carried, *stacked]


def import_scan(
    node: onnx.NodeProto, scope: Scope, seen: OnnxNode, branch: Branch
) -> tuple[Value | None, ...]:
    """Return the outputs of Scan: the last states, then the stacked outputs of all steps."""
    body = _Body(seen.attr("body"), scope, seen, branch)
    scans = int(seen.attr("num_scan_inputs"))
    batched = seen.opset < 9
    if batched and seen.optional(0) is not None:
        seen.fail("sequence_lens is not supported", hint="export with opset 9 or later")
    inputs = [seen.value(n) for n in range(int(batched), len(seen.inputs))]
    count = len(inputs) - scans
    if scans < 1 or count < 0:
        seen.fail(f"{scans} of its {len(inputs)} inputs are to be scanned")
    body.check_signature(len(inputs), len(node.output))
    scanned = inputs[count:]
    outputs = len(node.output) - count
    backward = seen.attr("directions" if batched else "scan_input_directions", (0,) * scans)
    scan = _Scan(
        body,
        seen,
        tuple(seen.attr("scan_input_axes", (0,) * scans)),
        tuple(backward),
        tuple(seen.attr("scan_output_axes", (0,) * outputs)),
        tuple(seen.attr("scan_output_directions", (0,) * outputs)),
    )
    if not batched:
        return tuple(scan.run(inputs[:count], scanned, ""))
    found = list(_by_sample(scan, inputs[:count], scanned))
    results = body.graph.output
    return tuple(
        _stacked(seen, rows, 0, o, f"batch{n}")
        for n, (rows, o) in enumerate(zip(zip(*found, strict=True), results, strict=True))
    )


def _by_sample(
    scan: _Scan, states: Sequence[Value | None], scanned: Sequence[Value]
) -> Iterator[list[Value | None]]:
    """Scan each sample of a batch alone."""
    every = [*(s for s in states if s is not None), *scanned]
    for sample in range(scanned[0].shape[0]):
        place = f"sample{sample}."
        parts = [_element(scan.seen, x, 0, sample, f"{place}input{n}") for n, x in enumerate(every)]
        yield scan.run(parts[: len(states)], parts[len(states) :], place)


def _element(seen: OnnxNode, x: Value, axis: int, index: int, suffix: str) -> Value:
    """Return the part of x at an index of an axis, without that axis."""
    piece = seen.apply(part(x.type, axis, index, 1), x, suffix=f"{suffix}.part").output
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    return seen.apply(Reshape(shape), piece, suffix=suffix).output
