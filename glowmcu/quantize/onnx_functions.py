"""How functions of elements are written as ONNX nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import helper

from glowmcu.core import dtypes
from glowmcu.core.dtypes import DType
from glowmcu.graph.graph import Node, Value
from glowmcu.ops._functions import FUNCTIONS
from glowmcu.ops.cast import Cast
from glowmcu.ops.elementwise import Elementwise
from glowmcu.passes.match import real_data, scalar
from glowmcu.quantize.write import (
    TO_FIRST,
    Layout,
    WriteNode,
    Writer,
    operands_of,
    unsupported,
)

Expression = Any
"""An operand ("x", "a", "b"), a number, or a tuple of an ONNX operator and expressions."""

_ATTRIBUTES: dict[str, tuple[str, tuple[str, ...]]] = {
    "leaky_relu": ("LeakyRelu", ("alpha",)),
    "elu": ("Elu", ("alpha",)),
    "celu": ("Celu", ("alpha",)),
    "selu": ("Selu", ("alpha", "gamma")),
    "shrink": ("Shrink", ("lambd", "bias")),
    "hard_sigmoid": ("HardSigmoid", ("alpha", "beta")),
    "thresholded_relu": ("ThresholdedRelu", ("alpha",)),
}
"""Functions whose constants are attributes in ONNX."""

_NODES: dict[str, tuple[str, dict[str, Any]]] = {
    "max": ("Max", {}),
    "min": ("Min", {}),
    "pow": ("Pow", {}),
    "fmod": ("Mod", {"fmod": 1}),
    "is_inf": ("IsInf", {}),
    "is_pos_inf": ("IsInf", {"detect_negative": 0}),
    "is_neg_inf": ("IsInf", {"detect_positive": 0}),
    "gelu": ("Gelu", {}),
    "gelu_tanh": ("Gelu", {"approximate": "tanh"}),
}
"""Functions whose table does not say what they are called in ONNX."""

_NEEDS = {
    "gelu": 20,
    "gelu_tanh": 20,
    "mish": 18,
    "bitwise_not": 18,
    "bitwise_and": 18,
    "bitwise_or": 18,
    "bitwise_xor": 18,
}

_NEGATIVE: Expression = ("Less", "x", 0)
_ELU: Expression = ("Where", _NEGATIVE, ("Mul", "a", ("Sub", ("Exp", "x"), 1)), "x")
_CLIP: Expression = ("Min", ("Max", "x", "a"), "b")
_EXPRESSIONS: dict[str, Expression] = {
    "leaky_relu": ("Where", _NEGATIVE, ("Mul", "x", "a"), "x"),
    "prelu": ("Where", _NEGATIVE, ("Mul", "x", "a"), "x"),
    "elu": _ELU,
    "celu": ("Where", _NEGATIVE, ("Mul", "a", ("Sub", ("Exp", ("Div", "x", "a")), 1)), "x"),
    "selu": ("Mul", "b", _ELU),
    "thresholded_relu": ("Where", ("Greater", "x", "a"), "x", 0),
    "shrink": (
        "Where",
        ("Less", "x", ("Neg", "a")),
        ("Add", "x", "b"),
        ("Where", ("Greater", "x", "a"), ("Sub", "x", "b"), 0),
    ),
    "swish": ("Mul", "x", ("Sigmoid", ("Mul", "a", "x"))),
    "hard_sigmoid": ("Min", ("Max", ("Add", ("Mul", "x", "a"), "b"), 0), 1),
    "clip": _CLIP,
    "clamp": _CLIP,
    "mod": ("Sub", "x", ("Mul", ("Floor", ("Div", "x", "a")), "a")),
}
"""What functions are made of where no ONNX node takes their operands."""


def _elementwise(writer: Writer, node: Node) -> None:
    op, y = node.op, node.output
    values = operands_of(node)
    running = [v for v in values if real_data(v) is None]
    layout: Layout = "plain"
    if y.type.rank == 4 and running and all(v.shape == y.shape for v in running):
        layout = "first" if any(writer.layout(v) == "first" for v in running) else "plain"
    operands = [_operand(writer, v, y, layout) for v in values]
    writer.need(_NEEDS.get(op.fn, 0))
    label = writer.label(y, layout)
    real = _function(writer, node, operands, f"{label}.real")
    writer.result(y, writer.clamped(node, real, label), layout)


def _function(writer: Writer, node: Node, operands: Sequence[str], label: str) -> str:
    """Write a function of real operands; return its result."""
    fn, values = node.op.fn, operands_of(node)
    numbers = [scalar(v) for v in values[1:]]
    operand = values[FUNCTIONS[fn].typed_by].type.real().dtype
    if fn == "identity":
        return operands[0]
    if fn in _ATTRIBUTES and operand == dtypes.F32 and None not in numbers:
        kind, names = _ATTRIBUTES[fn]
        return writer.emit(kind, operands[:1], label, **dict(zip(names, numbers, strict=True)))
    if fn in ("clip", "clamp") and all(v.type.rank == 0 for v in values[1:]):
        return writer.emit("Clip", operands, label)
    if fn == "mod" and operand.is_integer:
        return writer.emit("Mod", operands, label)
    if fn == "dequantize" or fn.startswith("quantize_"):
        return _requantized(writer, node, operands, label)
    if fn in _EXPRESSIONS:
        named = dict(zip("xab", operands, strict=False))
        return _expression(writer, _EXPRESSIONS[fn], named, operand, label)
    kind, attributes = _NODES.get(fn, (FUNCTIONS[fn].onnx, {}))
    if not kind:
        unsupported(node, f"it is the function {fn}")
    return writer.emit(kind, operands, label, **attributes)


def _expression(
    writer: Writer, found: Expression, operands: dict[str, str], dtype: DType, label: str
) -> str:
    """Write an expression; its numbers are of one type."""
    if isinstance(found, str):
        return operands[found]
    if not isinstance(found, tuple):
        return writer.constant(np.array(found, dtype.numpy), "number")
    kind, *parts = found
    inputs = [_expression(writer, part, operands, dtype, label) for part in parts]
    return writer.emit(kind, inputs, label)


def _requantized(writer: Writer, node: Node, operands: Sequence[str], label: str) -> str:
    """Write a quantization whose scale and zero point are operands like any other."""
    x, scale, zero = operands
    point = writer.emit("Cast", [zero], f"{label}.zero", to=_code(dtypes.F32))
    if node.op.fn == "dequantize":
        stored = writer.emit("Cast", [x], f"{label}.stored", to=_code(dtypes.F32))
        return writer.emit("Mul", [writer.emit("Sub", [stored, point], label), scale], label)
    dtype = node.output.type.dtype
    if dtype.bits > 16:
        unsupported(node, f"it quantizes to {dtype}")
    units = writer.emit("Round", [writer.emit("Div", [x, scale], label)], label)
    moved = writer.emit("Add", [units, point], label)
    limits = [writer.number(dtype.low, "limit"), writer.number(dtype.high, "limit")]
    inside = writer.emit("Clip", [moved, *limits], label)
    return writer.emit("Cast", [inside], label, to=_code(dtype))


def _operand(writer: Writer, value: Value, y: Value, layout: Layout) -> str:
    """Return an operand that broadcasts against a result in its layout."""
    data = real_data(value)
    if layout == "plain" or (data is None and value.type.rank == 4):
        return writer.real(value, layout)
    if value.type.numel == 1 or value.type.rank == 4:
        return writer.real(value, layout if value.type.rank == 4 else "plain")
    shape = [1] * (4 - value.type.rank) + list(value.shape)
    sizes = writer.ints([shape[i] for i in TO_FIRST])
    if sum(d > 1 for d in value.shape) > 1:
        wide = writer.emit("Reshape", [writer.real(value), writer.ints(shape)], value.name)
        return writer.emit("Transpose", [wide], value.name, perm=TO_FIRST)
    return writer.emit("Reshape", [writer.real(value), sizes], value.name)


def _cast(writer: Writer, node: Node) -> None:
    """ONNX does not say what becomes of reals that an integer has no room for: they are clipped."""
    (x,), y, dtype = operands_of(node), node.output, node.op.dtype
    real = writer.real(x)
    if x.type.real().dtype == dtypes.F32 and dtype.is_integer and dtype.bits <= 16:
        limits = [writer.number(dtype.low, "limit"), writer.number(dtype.high, "limit")]
        real = writer.emit("Clip", [real, *limits], f"{y.name}.clip")
    writer.result(y, writer.emit("Cast", [real], f"{y.name}.real", to=_code(dtype)))


def _code(dtype: DType) -> int:
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype.numpy)))


FUNCTION_WRITERS: dict[type, WriteNode] = {Cast: _cast, Elementwise: _elementwise}
