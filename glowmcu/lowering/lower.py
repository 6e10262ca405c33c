"""Graph to Function: every node's card emits its instructions, in the order of the schedule."""

from __future__ import annotations

from collections.abc import Mapping

from glowmcu.graph.graph import Graph, Node, Value
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder, Function
from glowmcu.lowering.schedule import schedule
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
    builder = Builder(lower_body=lambda body, inputs: _lower_body(builder, body, inputs))
    _lower_nodes(builder, order, buffers)
    outputs: dict[str, Buffer] = {}
    for value, output_name in zip(graph.outputs, graph.output_names, strict=True):
        buffer = _buffer_of(value, buffers)
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


def _lower_nodes(builder: Builder, order: tuple[Node, ...], buffers: dict[Value, Buffer]) -> None:
    """Emit the instructions of nodes; `buffers` says where values lie and takes in the results."""
    for node in order:
        builder.name, builder.origin = node.name, node.origin
        builder.results = tuple(
            Buffer(v.name, v.type, "activation", tensor=v.name, perm=v.perm) for v in node.outputs
        )
        inputs = [None if v is None else _buffer_of(v, buffers) for v in node.inputs]
        found = node.op.lower(builder, *inputs)
        results = found if isinstance(found, tuple) else (found,)
        buffers.update(zip(node.outputs, results, strict=True))


def _lower_body(builder: Builder, body: Graph, inputs: tuple[Buffer, ...]) -> tuple[Buffer, ...]:
    """Emit the graph inside of the node being lowered; return the buffers of its outputs."""
    node = builder.name, builder.origin, builder.results
    buffers = dict(zip(body.inputs, inputs, strict=True))
    _lower_nodes(builder, schedule(body), buffers)
    builder.name, builder.origin, builder.results = node
    return tuple(_buffer_of(value, buffers) for value in body.outputs)


def _buffer_of(value: Value, buffers: dict[Value, Buffer]) -> Buffer:
    if value not in buffers:
        assert value.data is not None, f"{value.name} is read before it is computed"
        buffers[value] = Buffer(value.name, value.type, "constant", value.data)
    return buffers[value]


def _copied(builder: Builder, target: Buffer, source: Buffer) -> Buffer:
    builder.name, builder.origin = target.name, ()
    builder.emit(Copy(y=target, x=source, bytes=source.nbytes))
    return target
