"""Graphs written back as standard ONNX: Dequantize, the operator on reals, Quantize."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NoReturn

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import glowmcu
from glowmcu.core import dtypes
from glowmcu.core.types import Array, Quant, TensorType
from glowmcu.errors import OptionError, UnsupportedError
from glowmcu.graph.graph import Graph, Node, Value
from glowmcu.ops.quant import AsQuant, Dequantize, Quantize, StayReal

Layout = Literal["plain", "first"]
"""plain: as in the graph, channels last; first: channels first, for tensors of four dimensions."""

TO_FIRST, TO_LAST = (0, 3, 1, 2), (0, 2, 3, 1)
_OPSET = 17


class _NewerOpset(Exception):
    """Something was to be written that only a newer set of operators has."""

    def __init__(self, opset: int) -> None:
        self.opset = opset
        super().__init__(opset)


class Writer:
    """Collects the ONNX nodes of a graph, the tensors in the layout in which they are needed."""

    def __init__(self, opset: int = _OPSET) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self.opset = opset
        self._names: dict[tuple[Value, Layout, bool], str] = {}
        self._constants: dict[str, str] = {}
        self._taken: set[str] = set()

    def need(self, opset: int) -> None:
        """Say that an operator is in this set of operators first: all is written in it."""
        if opset > self.opset:
            raise _NewerOpset(opset)

    def unique(self, wanted: str) -> str:
        """Return a name that no other tensor has."""
        name, number = wanted or "value", 1
        while name in self._taken:
            number += 1
            name = f"{wanted}_{number}"
        self._taken.add(name)
        return name

    def constant(self, data: Array, name: str) -> str:
        """Return the name of an initializer; equal data become one."""
        key = hashlib.sha256(f"{data.dtype}{data.shape}".encode() + data.tobytes()).hexdigest()
        if key not in self._constants:
            self._constants[key] = self.unique(name)
            tensor = numpy_helper.from_array(np.ascontiguousarray(data).reshape(data.shape))
            tensor.name = self._constants[key]
            self.initializers.append(tensor)
        return self._constants[key]

    def emit(self, op: str, inputs: Sequence[str], name: str, **attributes: Any) -> str:
        """Add a node with one output and return the output's name."""
        return self.emit_all(op, inputs, [name], **attributes)[0]

    def emit_all(
        self, op: str, inputs: Sequence[str], names: Sequence[str], **attributes: Any
    ) -> list[str]:
        """Add a node and return its outputs' names; "" stands for one that is left out."""
        outputs = [self.unique(name) if name else "" for name in names]
        label = next(filter(None, outputs))
        node = helper.make_node(op, list(inputs), outputs, name=f"{label}:{op}", **attributes)
        self.nodes.append(node)
        return outputs

    @contextmanager
    def inside(self) -> Iterator[list[onnx.NodeProto]]:
        """Collect the nodes of a graph in a node; what they define is known there only."""
        outer, names = self.nodes, dict(self._names)
        self.nodes = []
        try:
            yield self.nodes
        finally:
            self.nodes, self._names = outer, names

    def ints(self, values: Any) -> str:
        """Return the name of constant sizes, axes or places."""
        return self.constant(np.asarray(values, np.int64), "sizes")

    def number(self, value: float, name: str = "number") -> str:
        """Return the name of a constant number of float32."""
        return self.constant(np.array(value, np.float32), name)

    def layout(self, value: Value) -> Layout:
        """Return the layout in which a value is there already."""
        stored = _source(value)
        found = [key for key in self._names if key[0] in (value, stored)]
        return found[0][1] if found else "plain"

    def define(self, value: Value, name: str, layout: Layout = "plain") -> None:
        """Say which ONNX tensor holds a value's stored numbers."""
        self._names[value, layout, False] = name

    def label(self, value: Value, layout: Layout) -> str:
        """Return a good name for a value: the ONNX tensor's where it is that tensor."""
        original: Layout = "first" if value.perm == TO_LAST else "plain"
        return value.name if layout == original else f"{value.name}.{layout}"

    def stored(self, value: Value, layout: Layout = "plain") -> str:
        """Return the tensor that holds a value's stored numbers, in the layout wanted."""
        key = (value, layout, False)
        if key in self._names:
            return self._names[key]
        if value.data is not None:
            data = value.data if layout == "plain" else value.data.transpose(TO_FIRST)
            self._names[key] = self.constant(data, value.name)
            return self._names[key]
        other: Layout = "first" if layout == "plain" else "plain"
        there = self._names[value, other, False]
        perm = TO_FIRST if layout == "first" else TO_LAST
        shape = [value.shape[i] for i in TO_FIRST] if layout == "first" else list(value.shape)
        label = self.label(value, layout)
        if value.shape[3] == 1 or value.shape[1:3] == (1, 1):
            moved = self.emit("Reshape", [there, self.constant(np.array(shape), "shape")], label)
        else:
            moved = self.emit("Transpose", [there], label, perm=perm)
        self._names[key] = moved
        return moved

    def real(self, value: Value, layout: Layout = "plain") -> str:
        """Return the tensor of a value's real numbers: what it stores, dequantized."""
        if value.type.quant is None:
            return self.stored(value, layout)
        key = (value, layout, True)
        if key not in self._names:
            axis = _moved_axis(value.type.quant, value.type, layout)
            operands = [self.stored(value, layout), *self._quant(value.type, value.type.quant)]
            self._names[key] = self.emit(
                "DequantizeLinear", operands, f"{self.label(value, layout)}.real", **axis
            )
        return self._names[key]

    def _quant(self, type_: TensorType, quant: Quant) -> tuple[str, str]:
        if type_.dtype in (dtypes.I16, dtypes.U16):
            self.need(21)
        scale, zero = np.array(quant.scale, np.float32), np.array(quant.zero_point)
        if quant.axis is None:
            scale, zero = scale.reshape(()), zero.reshape(())
        zero = zero.astype(type_.dtype.numpy)
        return self.constant(scale, "scale"), self.constant(zero, "zero_point")

    def result(self, value: Value, real: str, layout: Layout = "plain") -> None:
        """Take a tensor of real numbers as a value, quantized if the value is."""
        quant = value.type.quant
        if quant is None:
            self.define(value, real, layout)
            return
        if value.type.dtype == dtypes.I32:
            raise UnsupportedError(
                f"'{value.name}' cannot be written as ONNX",
                why="QuantizeLinear makes no int32",
            )
        axis = _moved_axis(quant, value.type, layout)
        operands = [real, *self._quant(value.type, quant)]
        label = self.label(value, layout)
        self.define(value, self.emit("QuantizeLinear", operands, label, **axis), layout)

    def clamped(self, node: Node, real: str, label: str) -> str:
        """Return a tensor with the activation that an operator has taken in."""
        clamp = getattr(node.op, "clamp", None)
        if clamp is None:
            return real
        low, high = clamp
        if (low, high) == (0.0, np.inf):
            return self.emit("Relu", [real], f"{label}.relu")
        dtype = node.types[0].real().dtype.numpy
        limits = ["" if np.isinf(v) else self.constant(np.array(v, dtype), "limit") for v in clamp]
        return self.emit("Clip", [real, *limits], f"{label}.clip")


WriteNode = Callable[[Writer, Node], None]


def operands_of(node: Node) -> list[Value]:
    """Return the inputs that are there."""
    return [v for v in node.inputs if v is not None]


def unsupported(node: Node, why: str) -> NoReturn:
    """Raise an error that names the node."""
    raise UnsupportedError(f"'{node.name}' cannot be written as ONNX", why=why)


def _source(value: Value) -> Value | None:
    node = value.producer
    return node.inputs[0] if node is not None and isinstance(node.op, Dequantize) else None


def _moved_axis(quant: Quant, type_: TensorType, layout: Layout) -> dict[str, int]:
    if quant.axis is None:
        return {}
    axis = quant.axis % type_.rank
    return {"axis": axis if layout == "plain" else TO_FIRST.index(axis)}


_SINCE = {
    dtypes.I4: 21,
    dtypes.U4: 21,
    dtypes.E2M1: 23,
    dtypes.E8M0: 24,
    dtypes.I2: 25,
    dtypes.U2: 25,
}
"""The opset that brought an element type, where it is newer than the one written by default."""


def to_onnx(graph: Graph) -> onnx.ModelProto:
    """Return a graph as an ONNX model that means the same to any runtime.

    Raises UnsupportedError at operators that there is no ONNX node for.
    """
    opset = _OPSET
    while True:
        try:
            return _written(graph, Writer(opset))
        except _NewerOpset as newer:
            opset = newer.opset


def _written(graph: Graph, writer: Writer) -> onnx.ModelProto:
    for value in graph.values():
        writer.need(_SINCE.get(value.type.dtype, 0))
    inputs = []
    for value in graph.inputs:
        writer.define(value, writer.unique(value.name))
        inputs.append(info(value.name, value.type))
    outputs = [info(n, v.type) for n, v in zip(graph.output_names, graph.outputs, strict=True)]
    for name in graph.output_names:
        writer.unique(name)
    write_nodes(writer, graph)
    for name, value in zip(graph.output_names, graph.outputs, strict=True):
        writer.nodes.append(helper.make_node("Identity", [writer.stored(value)], [name], name=name))
    proto = helper.make_graph(writer.nodes, graph.name, inputs, outputs, writer.initializers)
    opset = [helper.make_opsetid("", writer.opset)]
    version = helper.find_min_ir_version_for(opset)
    model = helper.make_model(proto, opset_imports=opset, ir_version=version)
    model.producer_name, model.producer_version = "glowmcu", glowmcu.__version__
    onnx.checker.check_model(model, full_check=True)
    return model


def write_nodes(writer: Writer, graph: Graph) -> None:
    """Write the nodes of a graph, or of a loop's body, whose inputs are defined."""
    from glowmcu.quantize.onnx_nodes import WRITERS

    for node in graph.nodes():
        if isinstance(node.op, Quantize):
            _write_quantize(writer, node)
        elif isinstance(node.op, Dequantize | AsQuant | StayReal):
            _write_meaning(writer, node)
        else:
            write = WRITERS.get(type(node.op))
            if write is None:
                raise UnsupportedError(
                    f"'{node.name}' cannot be written as ONNX",
                    why=f"no ONNX node does the same as {type(node.op).__name__}",
                    hint="compile the network with --quantize instead of exporting it",
                )
            write(writer, node)


def save_onnx(graph: Graph, path: Path) -> None:
    """Write a graph as an ONNX file."""
    model = to_onnx(graph)
    try:
        path.write_bytes(model.SerializeToString(deterministic=True))
    except OSError as error:
        raise OptionError(f"cannot write '{path}'", why=str(error)) from None


def info(name: str, type_: TensorType) -> onnx.ValueInfoProto:
    """Return what ONNX says of a graph's input or output."""
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(type_.dtype.numpy))
    return helper.make_tensor_value_info(name, kind or TensorProto.FLOAT, type_.shape)


def _write_quantize(writer: Writer, node: Node) -> None:
    x, y = node.inputs[0], node.output
    assert x is not None
    layout = writer.layout(x)
    writer.result(y, writer.real(x, layout), layout)


def _write_meaning(writer: Writer, node: Node) -> None:
    """Write what changes no stored number, or gives the real ones."""
    x, y = node.inputs[0], node.output
    assert x is not None
    layout = writer.layout(x)
    dequantizes = isinstance(node.op, Dequantize)
    if dequantizes and x.data is not None:
        layout = "first" if x.type.rank == 4 else "plain"
    writer.define(y, writer.real(x, layout) if dequantizes else writer.stored(x, layout), layout)
