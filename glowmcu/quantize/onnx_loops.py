"""How a loop is written as an ONNX Loop, its body as a graph in that node."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

from glowmcu.graph.graph import Node
from glowmcu.ops.loop import NUMBER, Loop
from glowmcu.quantize.write import WriteNode, Writer, info, unsupported, write_nodes


def _loop(writer: Writer, node: Node) -> None:
    """Write a loop with one more state, which counts the iterations."""
    op, body = node.op, node.op.body
    (limit, condition), values = node.inputs[:2], [v for v in node.inputs[2:] if v is not None]
    if op.axes and (limit is not None or condition is not None or op.goes_on):
        unsupported(node, "it stacks rows and may end early, what it makes is as large as it gets")
    most = writer.constant(np.array(op.count, np.int64), "trips")
    if limit is not None:
        wide = writer.emit("Cast", [writer.stored(limit)], "limit", to=TensorProto.INT64)
        most = writer.emit("Min", [wide, most], "trips")
    first = [writer.stored(v) for v in values[: op.states]]
    first.append(writer.constant(np.array(0, np.int32), "none_done"))
    outside = [writer.stored(v) for v in values[op.states :]]

    with writer.inside() as nodes:
        number, going = writer.unique("number"), writer.unique("going")
        done = writer.unique("done")
        states = [writer.unique(v.name) for v in body.inputs[1 : 1 + op.states]]
        narrow = writer.emit("Cast", [number], "narrow_number", to=TensorProto.INT32)
        for value, name in zip(body.inputs, (narrow, *states, *outside), strict=True):
            writer.define(value, name)
        write_nodes(writer, body)
        results = [writer.stored(v) for v in body.outputs]
        one = writer.constant(np.array(1, np.int32), "one")
        results.insert(op.states, writer.emit("Add", [done, one], "one_more"))
        more = results.pop() if op.goes_on else going
        names = [writer.emit("Identity", [r], "result") for r in (more, *results)]
    types = [v.type for v in body.outputs[: op.states + len(op.axes)]]
    types.insert(op.states, NUMBER)
    graph = helper.make_graph(
        nodes,
        writer.unique("body"),
        [
            helper.make_tensor_value_info(number, TensorProto.INT64, []),
            helper.make_tensor_value_info(going, TensorProto.BOOL, []),
            *(info(n, v.type) for n, v in zip(states, body.inputs[1:], strict=False)),
            info(done, NUMBER),
        ],
        [
            helper.make_tensor_value_info(names[0], TensorProto.BOOL, []),
            *(info(n, t) for n, t in zip(names[1:], types, strict=True)),
        ],
    )
    asked = "" if condition is None else writer.stored(condition)
    order = [*range(op.states), len(node.outputs) - 1, *range(op.states, len(node.outputs) - 1)]
    labels = [node.outputs[n].name for n in order]
    found = writer.emit_all("Loop", [most, asked, *first], labels, body=graph)
    for n, name in zip(order, found, strict=True):
        writer.define(node.outputs[n], name)
    for axis, value in zip(op.axes, node.outputs[op.states :], strict=False):
        perm = list(range(1, value.type.rank))
        perm.insert(axis, 0)
        stacked = writer.stored(value)
        writer.define(value, writer.emit("Transpose", [stacked], f"{value.name}.rows", perm=perm))


LOOP_WRITERS: dict[type, WriteNode] = {Loop: _loop}
