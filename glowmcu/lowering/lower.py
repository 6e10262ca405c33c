"""Graph to Function: every node's card emits its instructions, in the order of the schedule."""

from __future__ import annotations

from collections.abc import Mapping

from glowmcu.graph.graph import Graph, Node, Value
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder, Function
from glowmcu.ops.copy import Copy


def lower(
    graph: Graph, order: tuple[Node, ...], name: str, states: Mapping[str, str] | None = None
) -> Function:
    """Return the function that computes the graph's outputs, one node after the other.

    states  inputs that are kept from one call to the next -> outputs that they take over
    """
    states = states or {}
    buffers: dict[Value, Buffer] = {
        v: Buffer(v.name, v.type, "state")  # it comes to hold another tensor on the way
        if v.name in states
        else Buffer(v.name, v.type, "input", tensor=v.name, perm=v.perm)
        for v in graph.inputs
    }
    builder = Builder()

    def buffer_of(value: Value) -> Buffer:
        if value not in buffers:
            assert value.data is not None, f"{value.name} is read before it is computed"
            buffers[value] = Buffer(value.name, value.type, "constant", value.data)
        return buffers[value]

    for node in order:
        builder.name, builder.origin = node.name, node.origin
        builder.results = tuple(
            Buffer(v.name, v.type, "activation", tensor=v.name, perm=v.perm) for v in node.outputs
        )
        inputs = [None if v is None else buffer_of(v) for v in node.inputs]
        found = node.op.lower(builder, *inputs)
        results = found if isinstance(found, tuple) else (found,)
        buffers.update(zip(node.outputs, results, strict=True))

    outputs: dict[str, Buffer] = {}
    for value, output_name in zip(graph.outputs, graph.output_names, strict=True):
        buffer = buffer_of(value)
        if buffer.root.kind in ("constant", "state"):
            target = Buffer(output_name, value.type, "activation", tensor=output_name)
            buffer = _copied(builder, target, buffer)
        outputs[output_name] = buffer
    kept = {buffers[v]: outputs[states[v.name]] for v in graph.inputs if v.name in states}
    for state, new in kept.items():
        _copied(builder, state, new)
    visible = {n: b for n, b in outputs.items() if n not in states.values()}
    return Function(
        name,
        tuple(buffers[v] for v in graph.inputs if v.name not in states),
        tuple(visible.values()),
        tuple(visible),
        tuple(builder.instructions),
        tuple(kept),
    )


def _copied(builder: Builder, target: Buffer, source: Buffer) -> Buffer:
    builder.name, builder.origin = target.name, ()
    builder.emit(Copy(y=target, x=source, bytes=source.nbytes))
    return target
