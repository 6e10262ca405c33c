"""How operators that look up, place, sort or sum along an axis are written as ONNX nodes."""

from __future__ import annotations

from glowmcu.graph.graph import Node
from glowmcu.ops.cumulative import CumSum
from glowmcu.ops.gather import Gather, GatherElements, GatherND
from glowmcu.ops.pool import MaxPoolIndices2D
from glowmcu.ops.scatter import ScatterElements, ScatterND
from glowmcu.ops.select import SortOrder
from glowmcu.quantize.write import WriteNode, Writer, operands_of, unsupported


def _gather(writer: Writer, node: Node) -> None:
    y, op = node.output, node.op
    operands = [writer.stored(v) for v in operands_of(node)]
    attributes = {"batch_dims": op.batch_dims} if isinstance(op, GatherND) else {"axis": op.axis}
    writer.define(y, writer.emit(type(op).__name__, operands, y.name, **attributes))


def _scatter(writer: Writer, node: Node) -> None:
    y, op = node.output, node.op
    x, index, updates = operands_of(node)
    operands = [writer.real(x), writer.stored(index), writer.real(updates)]
    attributes = {"axis": op.axis} if isinstance(op, ScatterElements) else {}
    if op.reduction != "none":
        writer.need(18)
        attributes["reduction"] = op.reduction
    writer.result(y, writer.emit(type(op).__name__, operands, f"{y.name}.real", **attributes))


def _sort(writer: Writer, node: Node) -> None:
    (x,), y, op = operands_of(node), node.output, node.op
    operands = [writer.real(x), writer.ints([op.count])]
    names = [f"{y.name}.values", y.name]
    writer.define(
        y, writer.emit_all("TopK", operands, names, axis=op.axis, largest=int(op.largest))[1]
    )


def _cumulative(writer: Writer, node: Node) -> None:
    (x,), y, op = operands_of(node), node.output, node.op
    if op.product:
        unsupported(node, "it is a cumulative product")
    operands = [writer.real(x), writer.ints(op.axis)]
    attributes = {"exclusive": int(op.exclusive), "reverse": int(op.reverse)}
    writer.result(y, writer.emit("CumSum", operands, f"{y.name}.real", **attributes))


def _pool_places(writer: Writer, node: Node) -> None:
    (x,), pool = operands_of(node), node.op.pool
    y, places = node.outputs
    names = [f"{writer.label(y, 'first')}.real", writer.label(places, "first")]
    real, found = writer.emit_all(
        "MaxPool",
        [writer.real(x, "first")],
        names,
        kernel_shape=pool.kernel,
        strides=pool.strides,
        pads=pool.pads,
        dilations=pool.dilations,
        ceil_mode=int(any(pool.extra)),
        storage_order=int(node.op.column_major),
    )
    writer.result(y, real, "first")
    writer.define(places, found, "first")


PLACE_WRITERS: dict[type, WriteNode] = {
    CumSum: _cumulative,
    Gather: _gather,
    GatherElements: _gather,
    GatherND: _gather,
    MaxPoolIndices2D: _pool_places,
    ScatterElements: _scatter,
    ScatterND: _scatter,
    SortOrder: _sort,
}
