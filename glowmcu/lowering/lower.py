"""Graph to Function: every node's card emits its instructions, in the order of the schedule."""

from __future__ import annotations

from glowmcu.graph.graph import Graph, Node, Value
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder, Function
from glowmcu.ops.copy import Copy


def lower(graph: Graph, order: tuple[Node, ...], name: str) -> Function:
    """Return the function that computes the graph's outputs, one node after the other."""
    buffers: dict[Value, Buffer] = {
        v: Buffer(v.name, v.type, "input", tensor=v.name, perm=v.perm) for v in graph.inputs
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

    outputs = []
    for value, output_name in zip(graph.outputs, graph.output_names, strict=True):
        buffer = buffer_of(value)
        if buffer.root.kind == "constant":
            target = Buffer(output_name, value.type, "activation", tensor=output_name)
            builder.name, builder.origin = output_name, ()
            builder.emit(Copy(y=target, x=buffer, bytes=buffer.nbytes))
            buffer = target
        outputs.append(buffer)
    return Function(
        name,
        tuple(buffers[v] for v in graph.inputs),
        tuple(outputs),
        graph.output_names,
        tuple(builder.instructions),
    )
