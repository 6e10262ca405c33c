"""Graph to Function: every node's card emits its instructions, in the order of the schedule."""

from __future__ import annotations

from collections.abc import Mapping

from glowmcu.graph.graph import Graph, Node, Value
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder, Function
from glowmcu.lowering.schedule import schedule
from glowmcu.ops.copy import Copy
from glowmcu.ops.repack import emit_packed, unpacked


def lower(
    graph: Graph, order: tuple[Node, ...], name: str, states: Mapping[str, str] | None = None
) -> Function:
    """Return the function that computes the graph's outputs, one node after the other.

    states  inputs that are kept from one call to the next -> outputs that they take over
    """
    states = states or {}
    buffers: dict[Value, Buffer] = {
        # a state comes to hold another tensor on the way
        v: Buffer(v.name, v.type.in_memory(), "state")
        if v.name in states
        else Buffer(v.name, v.type.in_memory(), "input", tensor=v.name, perm=v.perm)
        for v in graph.inputs
    }
    builder = Builder(lower_body=lambda body, inputs: _lower_body(builder, body, inputs))
    _lower_nodes(builder, order, buffers)
    outputs: dict[str, Buffer] = {}
    for value, output_name in zip(graph.outputs, graph.output_names, strict=True):
        buffer = _buffer_of(value, buffers)
        if buffer.root.kind in ("constant", "state"):
            type_ = value.type.in_memory()
            target = Buffer(output_name, type_, "activation", tensor=output_name)
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
        inputs = [None if v is None else _buffer_of(v, buffers) for v in node.inputs]
        buffers.update(zip(node.outputs, _lower_node(builder, node, inputs), strict=True))


def _lower_node(builder: Builder, node: Node, inputs: list[Buffer | None]) -> tuple[Buffer, ...]:
    """Emit the instructions of one node; return its outputs as memory holds them.

    An operator sees elements of a byte or more: small types are unpacked before it and packed
    after it.
    """
    wanted = tuple(
        Buffer(v.name, v.type.in_memory(), "activation", tensor=v.name, perm=v.perm)
        for v in node.outputs
    )
    if not node.op.same_bytes:
        inputs = [b and unpacked(builder, b) for b in inputs]
    whole = any(b is not None and b.type.packed for b in inputs)
    builder.results = tuple(
        Buffer(f"{y.name}.bytes", y.type.in_bytes(), "activation")
        if y.type.packed and not whole
        else y
        for y in wanted
    )
    found = node.op.lower(builder, *inputs)
    results = found if isinstance(found, tuple) else (found,)
    return tuple(_as_wanted(builder, y, r) for y, r in zip(wanted, results, strict=True))


def _as_wanted(builder: Builder, y: Buffer, result: Buffer) -> Buffer:
    """Return the result of an operator, packed where that is how memory holds it."""
    if not y.type.packed or result.type.packed:
        return result
    emit_packed(builder, y, result)
    return y


def _lower_body(builder: Builder, body: Graph, inputs: tuple[Buffer, ...]) -> tuple[Buffer, ...]:
    """Emit the graph inside of the node being lowered; return the buffers of its outputs."""
    node = builder.name, builder.origin, builder.results
    buffers = dict(zip(body.inputs, inputs, strict=True))
    _lower_nodes(builder, schedule(body), buffers)
    builder.name, builder.origin, builder.results = node
    return tuple(unpacked(builder, _buffer_of(value, buffers)) for value in body.outputs)


def _buffer_of(value: Value, buffers: dict[Value, Buffer]) -> Buffer:
    if value not in buffers:
        assert value.data is not None, f"{value.name} is read before it is computed"
        buffers[value] = Buffer(value.name, value.type.in_memory(), "constant", value.data)
    return buffers[value]


def _copied(builder: Builder, target: Buffer, source: Buffer) -> Buffer:
    builder.name, builder.origin = target.name, ()
    builder.emit(Copy(y=target, x=source, bytes=source.nbytes))
    return target
