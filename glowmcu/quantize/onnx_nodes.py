"""How each operator of a graph is written as ONNX nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper

from glowmcu.graph.graph import Node
from glowmcu.ops.broadcast import Broadcast
from glowmcu.ops.concat import Concat
from glowmcu.ops.conv import Conv2D
from glowmcu.ops.conv_transpose import ConvTranspose2D
from glowmcu.ops.dense import Dense
from glowmcu.ops.matmul import MatMul
from glowmcu.ops.pad import Pad
from glowmcu.ops.pool import Pool2D
from glowmcu.ops.reduce import Reduce
from glowmcu.ops.reshape import Reshape
from glowmcu.ops.slice import Slice
from glowmcu.ops.softmax import Softmax
from glowmcu.ops.transpose import Transpose
from glowmcu.quantize.onnx_functions import FUNCTION_WRITERS
from glowmcu.quantize.onnx_layers import LAYER_WRITERS
from glowmcu.quantize.onnx_loops import LOOP_WRITERS
from glowmcu.quantize.onnx_places import PLACE_WRITERS
from glowmcu.quantize.write import TO_FIRST, Layout, WriteNode, Writer, operands_of, unsupported

_REDUCE = {
    "sum": "ReduceSum",
    "mean": "ReduceMean",
    "max": "ReduceMax",
    "min": "ReduceMin",
    "prod": "ReduceProd",
    "l1": "ReduceL1",
    "l2": "ReduceL2",
    "sum_square": "ReduceSumSquare",
    "log_sum": "ReduceLogSum",
    "log_sum_exp": "ReduceLogSumExp",
}


def _window(writer: Writer, node: Node, kind: str, **attributes: Any) -> None:
    op, y = node.op, node.output
    operands = [writer.real(v, "first" if v.type.rank == 4 else "plain") for v in operands_of(node)]
    label = writer.label(y, "first")
    real = writer.emit(
        kind,
        operands,
        f"{label}.real",
        strides=op.strides,
        pads=op.pads,
        **attributes,
    )
    writer.result(y, writer.clamped(node, real, label), "first")


def _conv(writer: Writer, node: Node) -> None:
    if node.op.dtype is not None:
        unsupported(node, "it is a convolution of integers")
    weights = operands_of(node)[1]
    _window(
        writer,
        node,
        "Conv",
        kernel_shape=weights.shape[1:3],
        dilations=node.op.dilations,
        group=node.op.groups,
    )


def _conv_transpose(writer: Writer, node: Node) -> None:
    """ONNX has the input channels first in the weights: [C, O / groups, KH, KW]."""
    op, y = node.op, node.output
    x, weights, *rest = operands_of(node)
    outer, high, wide, inner = weights.shape
    parts = writer.ints((op.groups, outer // op.groups, high, wide, inner))
    split = writer.emit("Reshape", [writer.real(weights), parts], f"{weights.name}.split")
    moved = writer.emit("Transpose", [split], f"{weights.name}.moved", perm=(0, 4, 1, 2, 3))
    sizes = writer.ints((op.groups * inner, outer // op.groups, high, wide))
    w = writer.emit("Reshape", [moved, sizes], f"{weights.name}.first")
    label = writer.label(y, "first")
    real = writer.emit(
        "ConvTranspose",
        [writer.real(x, "first"), w, *(writer.real(v) for v in rest)],
        f"{label}.real",
        kernel_shape=(high, wide),
        strides=op.strides,
        pads=op.pads,
        dilations=op.dilations,
        output_padding=op.output_padding,
        group=op.groups,
    )
    writer.result(y, writer.clamped(node, real, label), "first")


def _pool(writer: Writer, node: Node) -> None:
    op = node.op
    attributes: dict[str, Any] = {"kernel_shape": op.kernel, "ceil_mode": int(any(op.extra))}
    if op.kind == "max":
        _window(writer, node, "MaxPool", dilations=op.dilations, **attributes)
        return
    if op.dilations != (1, 1):
        writer.need(19)
        attributes["dilations"] = op.dilations
    _window(writer, node, "AveragePool", count_include_pad=int(op.count_include_pad), **attributes)


def _dense(writer: Writer, node: Node) -> None:
    y = node.output
    x, weights, *rest = operands_of(node)
    operands = [writer.real(x), writer.real(weights)]
    if x.type.rank == 2:
        operands += [writer.real(v) for v in rest]
        real = writer.emit("Gemm", operands, f"{y.name}.real", transB=1)
    else:
        turned = writer.emit("Transpose", [operands[1]], f"{weights.name}.turned", perm=(1, 0))
        real = writer.emit("MatMul", [operands[0], turned], f"{y.name}.product")
        if rest:
            real = writer.emit("Add", [real, writer.real(rest[0])], f"{y.name}.real")
    writer.result(y, writer.clamped(node, real, y.name))


def _taken_to(writer: Writer, node: Node, operands: list[str]) -> list[str]:
    """Return operands of integers as the type that the node sums up in."""
    if node.op.dtype is None:
        return operands
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(node.op.dtype.numpy))
    names = [f"{node.output.name}.operand{i}" for i in range(len(operands))]
    return [writer.emit("Cast", [v], n, to=kind) for v, n in zip(operands, names, strict=True)]


def _matmul(writer: Writer, node: Node) -> None:
    operands = _taken_to(writer, node, [writer.real(v) for v in operands_of(node)])
    writer.result(node.output, writer.emit("MatMul", operands, f"{node.output.name}.real"))


def _softmax(writer: Writer, node: Node) -> None:
    (x,), y = operands_of(node), node.output
    kind = "LogSoftmax" if node.op.log else "Softmax"
    writer.result(y, writer.emit(kind, [writer.real(x)], f"{y.name}.real", axis=-1))


def _reduce(writer: Writer, node: Node) -> None:
    op, y = node.op, node.output
    (x,) = operands_of(node)
    layout = writer.layout(x)
    both = {1, 2} == set(op.axes)
    if layout == "first" and not (op.keepdims or both):
        layout = "plain"
    axes = [TO_FIRST.index(a) for a in op.axes] if layout == "first" else list(op.axes)
    real, label = writer.real(x, layout), f"{y.name}.real"
    keep = int(op.keepdims)
    if op.gives_index:
        kind = "ArgMax" if op.kind == "argmax" else "ArgMin"
        last = int(op.select_last)
        found = writer.emit(
            kind, [real], label, axis=axes[0], keepdims=keep, select_last_index=last
        )
    elif op.kind == "sum":
        found = writer.emit(
            "ReduceSum",
            [real, writer.ints(axes)],
            label,
            keepdims=keep,
            noop_with_empty_axes=1,
        )
    elif not axes:
        unsupported(node, "it is a reduction over no axis")
    else:
        if writer.opset >= 18:
            found = writer.emit(_REDUCE[op.kind], [real, writer.ints(axes)], label, keepdims=keep)
        else:
            found = writer.emit(_REDUCE[op.kind], [real], label, axes=axes, keepdims=keep)
    writer.result(y, found, layout if op.keepdims else "plain")


def _reshape(writer: Writer, node: Node) -> None:
    x, y = operands_of(node)[0], node.output
    source = writer.stored(x)
    writer.define(y, writer.emit("Reshape", [source, writer.ints(node.op.shape)], y.name))


def _transpose(writer: Writer, node: Node) -> None:
    (x,), y, perm = operands_of(node), node.output, node.op.perm
    if perm == TO_FIRST and writer.layout(x) == "first":
        writer.define(y, writer.stored(x, "first"))
    elif perm == (0, 2, 3, 1):
        writer.define(y, writer.stored(x), "first")
    else:
        writer.define(y, writer.emit("Transpose", [writer.stored(x)], y.name, perm=perm))


def _slice(writer: Writer, node: Node) -> None:
    op, y = node.op, node.output
    (x,) = operands_of(node)
    ends = []
    for start, step, size in zip(op.starts, op.steps, op.shape, strict=True):
        end = start + step * size
        ends.append(-(1 << 31) if end < 0 else end)
    axes = writer.ints(range(x.type.rank))
    sizes = [writer.ints(op.starts), writer.ints(ends), axes, writer.ints(op.steps)]
    writer.define(y, writer.emit("Slice", [writer.stored(x), *sizes], y.name))


def _pad(writer: Writer, node: Node) -> None:
    op, y = node.op, node.output
    (x,) = operands_of(node)
    operands = [writer.real(x), writer.ints(op.pads)]
    if op.mode == "constant":
        operands.append(writer.constant(np.array(op.value, np.float32), "padding"))
    writer.result(y, writer.emit("Pad", operands, f"{y.name}.real", mode=op.mode))


def _concat(writer: Writer, node: Node) -> None:
    y, values = node.output, operands_of(node)
    layout: Layout = "plain"
    if y.type.rank == 4 and all(writer.layout(v) == "first" for v in values if v.data is None):
        layout = "first"
    axis = TO_FIRST.index(node.op.axis) if layout == "first" else node.op.axis
    operands = [writer.real(v, layout) for v in values]
    writer.result(y, writer.emit("Concat", operands, f"{y.name}.real", axis=axis), layout)


def _broadcast(writer: Writer, node: Node) -> None:
    y = node.output
    operands = [writer.stored(operands_of(node)[0]), writer.ints(node.op.shape)]
    writer.define(y, writer.emit("Expand", operands, y.name))


WRITERS: dict[type, WriteNode] = {
    **FUNCTION_WRITERS,
    **LAYER_WRITERS,
    **LOOP_WRITERS,
    **PLACE_WRITERS,
    Broadcast: _broadcast,
    Concat: _concat,
    Conv2D: _conv,
    ConvTranspose2D: _conv_transpose,
    Dense: _dense,
    MatMul: _matmul,
    Pad: _pad,
    Pool2D: _pool,
    Reduce: _reduce,
    Reshape: _reshape,
    Slice: _slice,
    Softmax: _softmax,
    Transpose: _transpose,
}
