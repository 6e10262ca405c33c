"""ONNX's Scan: a loop in C over sequences, or its steps one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import onnx

from glowmcu.frontend.choice import Importing, Refused, apply_importer
from glowmcu.frontend.loop_body import Body, Rolled, element, rolled, stacked
from glowmcu.frontend.rolled import is_better_unrolled
from glowmcu.frontend.scope import Scope
from glowmcu.graph.graph import Value
from glowmcu.ops.gather import Gather
from glowmcu.ops.onnx_node import OnnxNode
from glowmcu.ops.reshape import normal_axis
from glowmcu.ops.slice import Slice


@dataclass(frozen=True)
class _Scan:
    """Axes and directions (1: backwards) of the scanned inputs and outputs; the body."""

    body: Body
    input_axes: tuple[int, ...]
    backward: tuple[int, ...]
    output_axes: tuple[int, ...]
    prepend: tuple[int, ...]

    def run(self, states: Sequence[Value], scanned: Sequence[Value]) -> list[Value | None]:
        """Return the last states and the stacked outputs."""
        seen, importing = self.body.seen, self.body.importing
        axes = [
            normal_axis(seen, a, x.type.rank) for a, x in zip(self.input_axes, scanned, strict=True)
        ]
        lengths = {x.shape[a] for a, x in zip(axes, scanned, strict=True)}
        if len(lengths) != 1:
            seen.fail(f"the scanned inputs have different lengths: {sorted(lengths)}")
        (length,) = lengths
        made = importing.attempt(lambda: self._roll(states, scanned, axes, length))
        if isinstance(made, Refused) or is_better_unrolled(length, made.op.body):
            unrolled = importing.attempt(lambda: self._unroll(states, scanned, axes, length))
            if not isinstance(unrolled, Refused):
                return unrolled
            if isinstance(made, Refused):
                raise made.error
        *found, _ = made.applied(self.body, states)
        rows = zip(found[len(states) :], made.op.axes, self.prepend, strict=True)
        turned = (_reversed(seen, r, a) if back else r for r, a, back in rows)
        return [*found[: len(states)], *turned]

    def _roll(
        self, states: Sequence[Value], scanned: Sequence[Value], axes: Sequence[int], length: int
    ) -> Rolled:
        """Import the body once, as a graph that takes its elements by their number."""
        body, seen = self.body, self.body.seen
        if length == 0:
            seen.fail("its sequences are empty")
        number = body.number()
        carried = [body.value(f"state{n}", v) for n, v in enumerate(states)]
        parts = []
        for n, (x, axis, back) in enumerate(zip(scanned, axes, self.backward, strict=True)):
            index = number
            if back:
                last = seen.constant(np.asarray(length - 1, np.int32), "last")
                index = apply_importer(seen, "Sub", f"{number.name}.{n}", last, number)
            parts.append(seen.apply(Gather(axis), x, index, suffix=f"{body.place}{n}").output)
        found = body.run((*carried, *parts))
        return rolled(body, number, carried, found, self.output_axes, length)

    def _unroll(
        self, states: Sequence[Value], scanned: Sequence[Value], axes: Sequence[int], length: int
    ) -> list[Value | None]:
        """Import the body once for every step."""
        body, seen = self.body, self.body.seen
        results = body.graph.output[len(states) :]
        rows: list[list[Value | None]] = [[] for _ in results]
        body.done = 0
        carried = list[Value | None](states)
        for step in range(length):
            parts = []
            for n, (x, axis, back) in enumerate(zip(scanned, axes, self.backward, strict=True)):
                at = length - 1 - step if back else step
                parts.append(element(seen, x, axis, at, f"{body.place}{n}.{step}"))
            found = body.run_again((*carried, *parts))
            carried = found[: len(carried)]
            for row, value in zip(rows, found[len(carried) :], strict=True):
                row.append(value)
        together = zip(rows, self.output_axes, self.prepend, results, strict=True)
        return [
            *carried,
            *(
                stacked(seen, r[::-1] if back else r, a, o, f"{body.place}scan{n}")
                for n, (r, a, back, o) in enumerate(together)
            ),
        ]


def _reversed(seen: OnnxNode, rows: Value, axis: int) -> Value:
    """Return rows in the opposite order."""
    starts = tuple(n - 1 if a == axis else 0 for a, n in enumerate(rows.shape))
    steps = tuple(-1 if a == axis else 1 for a in range(rows.type.rank))
    op = Slice(starts, steps, rows.shape)
    return seen.apply(op, rows, suffix=f"{rows.name}.reversed").output


def import_scan(
    node: onnx.NodeProto, scope: Scope, seen: OnnxNode, importing: Importing
) -> tuple[Value | None, ...]:
    """Return the outputs of Scan: the last states, then the stacked outputs of all steps."""
    body = Body(seen.attr("body"), scope, seen, importing)
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
    scan = _Scan(
        body,
        _each(seen, "scan_input_axes", scans),
        _each(seen, "directions" if batched else "scan_input_directions", scans, (0, 1)),
        _each(seen, "scan_output_axes", outputs),
        _each(seen, "scan_output_directions", outputs, (0, 1)),
    )
    if not batched:
        return tuple(scan.run(inputs[:count], scanned))
    found = list(_by_sample(scan, inputs[:count], scanned))
    results = body.graph.output
    return tuple(
        stacked(seen, rows, 0, o, f"batch{n}")
        for n, (rows, o) in enumerate(zip(zip(*found, strict=True), results, strict=True))
    )


def _each(
    seen: OnnxNode, name: str, count: int, known: Sequence[int] | None = None
) -> tuple[int, ...]:
    """Return an attribute with a number for each scanned input or output, 0 where it is absent."""
    found = tuple(int(n) for n in seen.attr(name, (0,) * count))
    if len(found) != count:
        seen.fail(f"{name} has {len(found)} numbers for {count} tensors")
    if known is not None and not set(found) <= set(known):
        seen.fail(f"{name} {list(found)} has numbers other than {' and '.join(map(str, known))}")
    return found


def _by_sample(
    scan: _Scan, states: Sequence[Value], scanned: Sequence[Value]
) -> Iterator[list[Value | None]]:
    """Scan each sample of a batch alone."""
    every = [*states, *scanned]
    for sample in range(scanned[0].shape[0]):
        place = scan.body.place = f"sample{sample}."
        seen = scan.body.seen
        parts = [element(seen, x, 0, sample, f"{place}input{n}") for n, x in enumerate(every)]
        yield scan.run(parts[: len(states)], parts[len(states) :])
