"""How each operator of a graph is written as ONNX nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from onnx import helper

from glowmcu.errors import UnsupportedError
from glowmcu.graph.graph import Node, Value
from glowmcu.ops._functions import FUNCTIONS
from glowmcu.ops.broadcast import Broadcast
from glowmcu.ops.cast import Cast
from glowmcu.ops.concat import Concat
from glowmcu.ops.conv import Conv2D
from glowmcu.ops.conv_transpose import ConvTranspose2D
from glowmcu.ops.dense import Dense
from glowmcu.ops.elementwise import Elementwise
from glowmcu.ops.gather import Gather
from glowmcu.ops.matmul import MatMul
from glowmcu.ops.pad import Pad
from glowmcu.ops.pool import Pool2D
from glowmcu.ops.reduce import Reduce
from glowmcu.ops.reshape import Reshape
from glowmcu.ops.slice import Slice
from glowmcu.ops.softmax import Softmax
from glowmcu.ops.transpose import Transpose
from glowmcu.passes.match import real_data, scalar
from glowmcu.quantize.write import TO_FIRST, Layout, Writer

_ATTRIBUTES = {  # functions whose constants are attributes in ONNX
    "leaky_relu": ("LeakyRelu", ("alpha",)),
    "elu": ("Elu", ("alpha",)),
    "celu": ("Celu", ("alpha",)),
    "hard_sigmoid": ("HardSigmoid", ("alpha", "beta")),
    "thresholded_relu": ("ThresholdedRelu", ("alpha",)),
}
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


def _ints(writer: Writer, values: Any) -> str:
    return writer.constant(np.asarray(values, np.int64), "sizes")


def _operands(node: Node) -> list[Value]:
    return [v for v in node.inputs if v is not None]


def _elementwise(writer: Writer, node: Node) -> None:
    op, y = node.op, node.output
    values = _operands(node)
    running = [v for v in values if real_data(v) is None]
    layout: Layout = "plain"
    if y.type.rank == 4 and running and all(v.shape == y.shape for v in running):
        layout = "first" if any(writer.layout(v) == "first" for v in running) else "plain"
    label = writer.label(y, layout)
    if op.fn == "identity":
        real = writer.real(values[0], layout)
    elif op.fn in _ATTRIBUTES:
        kind, names = _ATTRIBUTES[op.fn]
        numbers = [scalar(v) for v in values[1:]]
        if any(n is None for n in numbers):
            _unsupported(node, f"{op.fn} with parameters that are not single numbers")
        attributes = dict(zip(names, numbers, strict=True))
        real = writer.emit(kind, [writer.real(values[0], layout)], f"{label}.real", **attributes)
    else:
        kind = {"clip": "Clip", "gelu": "Gelu"}.get(op.fn) or FUNCTIONS[op.fn].onnx
        if kind is None:
            _unsupported(node, f"the function {op.fn}")
        if op.fn == "gelu":
            writer.opset = 20
        operands = [_operand(writer, v, y, layout) for v in values]
        real = writer.emit(str(kind), operands, f"{label}.real")
    writer.result(y, writer.clamped(op, real, label), layout)


def _operand(writer: Writer, value: Value, y: Value, layout: Layout) -> str:
    """Return an operand that broadcasts against a result in its layout."""
    data = real_data(value)
    if layout == "plain" or (data is None and value.type.rank == 4):
        return writer.real(value, layout)
    if value.type.numel == 1 or value.type.rank == 4:
        return writer.real(value, layout if value.type.rank == 4 else "plain")
    shape = [1] * (4 - value.type.rank) + list(value.shape)
    sizes = _ints(writer, [shape[i] for i in TO_FIRST])
    if sum(d > 1 for d in value.shape) > 1:
        wide = writer.emit("Reshape", [writer.real(value), _ints(writer, shape)], value.name)
        return writer.emit("Transpose", [wide], value.name, perm=TO_FIRST)
    return writer.emit("Reshape", [writer.real(value), sizes], value.name)


def _unsupported(node: Node, what: str) -> NoReturn:
    raise UnsupportedError(f"'{node.name}' cannot be written as ONNX", why=f"it is {what}")


def _window(writer: Writer, node: Node, kind: str, **attributes: Any) -> None:
    op, y = node.op, node.output
    operands = [writer.real(v, "first" if v.type.rank == 4 else "plain") for v in _operands(node)]
    label = writer.label(y, "first")
    real = writer.emit(
        kind,
        operands,
        f"{label}.real",
        strides=op.strides,
        pads=op.pads,
        **attributes,
    )
    writer.result(y, writer.clamped(op, real, label), "first")


def _conv(writer: Writer, node: Node) -> None:
    if node.op.dtype is not None:
        _unsupported(node, "a convolution of integers")
    weights = _operands(node)[1]
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
    x, weights, *rest = _operands(node)
    outer, high, wide, inner = weights.shape
    parts = _ints(writer, (op.groups, outer // op.groups, high, wide, inner))
    split = writer.emit("Reshape", [writer.real(weights), parts], f"{weights.name}.split")
    moved = writer.emit("Transpose", [split], f"{weights.name}.moved", perm=(0, 4, 1, 2, 3))
    sizes = _ints(writer, (op.groups * inner, outer // op.groups, high, wide))
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
    writer.result(y, writer.clamped(op, real, label), "first")


def _pool(writer: Writer, node: Node) -> None:
    op = node.op
    attributes: dict[str, Any] = {"kernel_shape": op.kernel, "ceil_mode": int(any(op.extra))}
    if op.kind == "max":
        _window(writer, node, "MaxPool", dilations=op.dilations, **attributes)
        return
    if op.dilations != (1, 1):
        writer.opset = max(writer.opset, 19)
        attributes["dilations"] = op.dilations
    _window(writer, node, "AveragePool", count_include_pad=int(op.count_include_pad), **attributes)


def _dense(writer: Writer, node: Node) -> None:
    op, y = node.op, node.output
    x, weights, *rest = _operands(node)
    operands = [writer.real(x), writer.real(weights)]
    if x.type.rank == 2:
        operands += [writer.real(v) for v in rest]
        real = writer.emit("Gemm", operands, f"{y.name}.real", transB=1)
    else:
        turned = writer.emit("Transpose", [operands[1]], f"{weights.name}.turned", perm=(1, 0))
        real = writer.emit("MatMul", [operands[0], turned], f"{y.name}.product")
        if rest:
            real = writer.emit("Add", [real, writer.real(rest[0])], f"{y.name}.real")
    writer.result(y, writer.clamped(op, real, y.name))


def _taken_to(writer: Writer, node: Node, operands: list[str]) -> list[str]:
    """Return operands of integers as the type that the node sums up in."""
    if node.op.dtype is None:
        return operands
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(node.op.dtype.numpy))
    names = [f"{node.output.name}.operand{i}" for i in range(len(operands))]
    return [writer.emit("Cast", [v], n, to=kind) for v, n in zip(operands, names, strict=True)]


def _matmul(writer: Writer, node: Node) -> None:
    operands = _taken_to(writer, node, [writer.real(v) for v in _operands(node)])
    writer.result(node.output, writer.emit("MatMul", operands, f"{node.output.name}.real"))


def _softmax(writer: Writer, node: Node) -> None:
    (x,), y = _operands(node), node.output
    kind = "LogSoftmax" if node.op.log else "Softmax"
    writer.result(y, writer.emit(kind, [writer.real(x)], f"{y.name}.real", axis=-1))


def _reduce(writer: Writer, node: Node) -> None:
    op, y = node.op, node.output
    (x,) = _operands(node)
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
            [real, _ints(writer, axes)],
            label,
            keepdims=keep,
            noop_with_empty_axes=1,
        )
    elif not axes:
        _unsupported(node, "a reduction over no axis")
    else:
        if writer.opset >= 18:
            found = writer.emit(_REDUCE[op.kind], [real, _ints(writer, axes)], label, keepdims=keep)
        else:
            found = writer.emit(_REDUCE[op.kind], [real], label, axes=axes, keepdims=keep)
    writer.result(y, found, layout if op.keepdims else "plain")


def _reshape(writer: Writer, node: Node) -> None:
    x, y = _operands(node)[0], node.output
    source = writer.stored(x)
    writer.define(y, writer.emit("Reshape", [source, _ints(writer, node.op.shape)], y.name))


def _transpose(writer: Writer, node: Node) -> None:
    (x,), y, perm = _operands(node), node.output, node.op.perm
    if perm == TO_FIRST and writer.layout(x) == "first":
        writer.define(y, writer.stored(x, "first"))
    elif perm == (0, 2, 3, 1):
        writer.define(y, writer.stored(x), "first")
    else:
        writer.define(y, writer.emit("Transpose", [writer.stored(x)], y.name, perm=perm))


def _slice(writer: Writer, node: Node) -> None:
    op, y = node.op, node.output
    (x,) = _operands(node)
    ends = []
    for start, step, size in zip(op.starts, op.steps, op.shape, strict=True):
        end = start + step * size
        ends.append(-(1 << 31) if end < 0 else end)
    axes = _ints(writer, range(x.type.rank))
    sizes = [_ints(writer, op.starts), _ints(writer, ends), axes, _ints(writer, op.steps)]
    writer.define(y, writer.emit("Slice", [writer.stored(x), *sizes], y.name))


def _pad(writer: Writer, node: Node) -> None:
    op, y = node.op, node.output
    (x,) = _operands(node)
    operands = [writer.real(x), _ints(writer, op.pads)]
    if op.mode == "constant":
        operands.append(writer.constant(np.array(op.value, np.float32), "padding"))
    writer.result(y, writer.emit("Pad", operands, f"{y.name}.real", mode=op.mode))


def _concat(writer: Writer, node: Node) -> None:
    y, values = node.output, _operands(node)
    layout: Layout = "plain"
    if y.type.rank == 4 and all(writer.layout(v) == "first" for v in values if v.data is None):
        layout = "first"
    axis = TO_FIRST.index(node.op.axis) if layout == "first" else node.op.axis
    operands = [writer.real(v, layout) for v in values]
    writer.result(y, writer.emit("Concat", operands, f"{y.name}.real", axis=axis), layout)


def _gather(writer: Writer, node: Node) -> None:
    y = node.output
    operands = [writer.stored(v) for v in _operands(node)]
    writer.define(y, writer.emit("Gather", operands, y.name, axis=node.op.axis))


def _broadcast(writer: Writer, node: Node) -> None:
    y = node.output
    operands = [writer.stored(_operands(node)[0]), _ints(writer, node.op.shape)]
    writer.define(y, writer.emit("Expand", operands, y.name))


def _cast(writer: Writer, node: Node) -> None:
    (x,), y = _operands(node), node.output
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(node.op.dtype.numpy))
    writer.result(y, writer.emit("Cast", [writer.real(x)], f"{y.name}.real", to=kind))


WRITERS: dict[type, Callable[[Writer, Node], None]] = {
    Broadcast: _broadcast,
    Cast: _cast,
    Concat: _concat,
    Conv2D: _conv,
    ConvTranspose2D: _conv_transpose,
    Dense: _dense,
    Elementwise: _elementwise,
    Gather: _gather,
    MatMul: _matmul,
    Pad: _pad,
    Pool2D: _pool,
    Reduce: _reduce,
    Reshape: _reshape,
    Slice: _slice,
    Softmax: _softmax,
    Transpose: _transpose,
}
