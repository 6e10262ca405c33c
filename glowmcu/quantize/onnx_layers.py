"""How resizing, standardization and recurrent layers are written as ONNX nodes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from glowmcu.graph.graph import Node, Value
from glowmcu.ops._recurrent import ACTIVATIONS, CELLS
from glowmcu.ops._resize_taps import Axis
from glowmcu.ops.interpolate import Interpolate
from glowmcu.ops.recurrent import DEFAULTS, Recurrent
from glowmcu.ops.resize import Resize2D
from glowmcu.ops.standardize import Standardize
from glowmcu.quantize.write import WriteNode, Writer, operands_of, unsupported

_USED = {"rnn": 1, "gru": 2, "lstm": 3}
"""How many activations a direction names in ONNX."""


def _resize(writer: Writer, node: Node) -> None:
    (x,), y, op = operands_of(node), node.output, node.op
    coordinates = {axis.coordinates for axis in (op.height, op.width) if axis.scale != 1.0}
    if len(coordinates) > 1:
        unsupported(node, "its axes are resized by different rules")
    chosen = coordinates.pop() if coordinates else op.height.coordinates
    axes = (Axis(x.shape[0], x.shape[0], 1.0), Axis(x.shape[3], x.shape[3], 1.0))
    attributes = _coordinates(writer, chosen, op.mode)
    if op.mode == "nearest":
        attributes["nearest_mode"] = _rounding(node, op)
    sizes = _sizes(writer, node, (*axes, op.height, op.width))
    label = writer.label(y, "first")
    real = writer.emit("Resize", [writer.real(x, "first"), *sizes], f"{label}.real", **attributes)
    writer.result(y, real, "first")


def _rounding(node: Node, op: Any) -> str:
    """Return ONNX's rounding; that of before opset 11 goes down, but up where an axis shrinks."""
    if op.rounding != "simple":
        return str(op.rounding)
    found = {"ceil" if a.scale < 1 else "floor" for a in (op.height, op.width) if a.scale != 1.0}
    if len(found) > 1:
        unsupported(node, "one of its axes grows and one shrinks, by the rules before opset 11")
    return found.pop() if found else "floor"


def _coordinates(writer: Writer, coordinates: str, mode: str) -> dict[str, Any]:
    if coordinates == "half_pixel_symmetric":
        writer.need(19)
    return {"coordinate_transformation_mode": coordinates, "mode": mode}


def _sizes(writer: Writer, node: Node, axes: tuple[Axis, ...]) -> list[str]:
    """Return the inputs roi, scales and sizes: of the last two the one that says both."""
    roi = ""
    if any(axis.roi != (0.0, 1.0) for axis in axes):
        ends = [[axis.roi[n] for axis in axes] for n in (0, 1)]
        roi = writer.constant(np.asarray(ends, np.float32).reshape(-1), "roi")
    scales = np.asarray([axis.scale for axis in axes], np.float32)
    sizes = np.asarray([axis.size for axis in axes], np.float32)
    if all(math.isclose(axis.scale * axis.size, axis.out, rel_tol=1e-6) for axis in axes):
        return [roi, "", writer.ints([axis.out for axis in axes])]
    if np.array_equal(np.floor(sizes * scales), [axis.out for axis in axes]):
        return [roi, writer.constant(scales, "scales")]
    return unsupported(node, "its size does not follow from its scale")


def _interpolate(writer: Writer, node: Node) -> None:
    """One axis is resized as the rows of an image."""
    (x,), y, op = operands_of(node), node.output, node.op
    before, after = math.prod(x.shape[: op.axis]), math.prod(x.shape[op.axis + 1 :])
    shape = writer.ints([1, before, op.how.size, after])
    image = writer.emit("Reshape", [writer.real(x), shape], f"{y.name}.image")
    axes = (Axis(1, 1, 1.0), Axis(before, before, 1.0), op.how, Axis(after, after, 1.0))
    attributes = _coordinates(writer, op.how.coordinates, op.mode)
    if op.antialias:
        writer.need(18)
        attributes["antialias"] = 1
    attributes["exclude_outside"] = int(op.exclude_outside)
    if op.how.coordinates == "tf_crop_and_resize":
        attributes["extrapolation_value"] = op.extrapolation
    if op.mode == "cubic":
        attributes["cubic_coeff_a"] = op.cubic_a
    sizes = _sizes(writer, node, axes)
    resized = writer.emit("Resize", [image, *sizes], f"{y.name}.resized", **attributes)
    writer.result(y, writer.emit("Reshape", [resized, writer.ints(y.shape)], f"{y.name}.real"))


def _standardize(writer: Writer, node: Node) -> None:
    x, scale, bias = (*node.inputs, None, None)[:3]
    y, op = node.output, node.op
    assert x is not None
    real, label = writer.real(x), f"{y.name}.real"
    factors = None if scale is None else writer.real(scale)
    added = None if bias is None else writer.real(bias)
    if op.centre:
        ones = factors or writer.constant(np.ones(x.shape[-1:], np.float32), "ones")
        operands = [real, ones] if added is None else [real, ones, added]
        found = writer.emit("LayerNormalization", operands, label, epsilon=op.epsilon)
        writer.result(y, found)
        return
    square = writer.emit("Mul", [real, real], f"{y.name}.square")
    if writer.opset >= 18:
        mean = writer.emit("ReduceMean", [square, writer.ints([-1])], f"{y.name}.mean")
    else:
        mean = writer.emit("ReduceMean", [square], f"{y.name}.mean", axes=[-1])
    moved = writer.emit("Add", [mean, writer.number(op.epsilon)], f"{y.name}.moved")
    root = writer.emit("Sqrt", [moved], f"{y.name}.root")
    found = writer.emit("Div", [real, root], f"{label}.standardized")
    if factors is not None:
        found = writer.emit("Mul", [found, factors], f"{label}.scaled")
    if added is not None:
        found = writer.emit("Add", [found, added], label)
    writer.result(y, found)


def _recurrent(writer: Writer, node: Node) -> None:
    op = node.op
    x, w, r, b, rb, lengths, h0, c0, peephole = (*node.inputs, *[None] * 9)[:9]
    assert r is not None
    operands = [_optional(writer, v) for v in (x, w, r)]
    operands += [_bias(writer, node, b, rb), _optional(writer, lengths)]
    operands += [_optional(writer, v) for v in (h0, c0, peephole)]
    if op.cell != "lstm":
        operands = operands[:6]
    while not operands[-1]:
        operands.pop()
    y, *states = node.outputs if op.sequence else (None, *node.outputs)
    names = ["" if v is None else f"{v.name}.real" for v in (y, *states)]
    attributes = {"hidden_size": r.shape[2], "direction": op.direction}
    attributes |= _activations(op, r.shape[0])
    if math.isfinite(op.clip):
        attributes["clip"] = op.clip
    if op.cell == "gru":
        attributes["linear_before_reset"] = int(op.linear_before_reset)
    if op.cell == "lstm":
        attributes["input_forget"] = int(op.input_forget)
    found = writer.emit_all(op.cell.upper(), operands, names, **attributes)
    for value, real in zip((y, *states), found, strict=True):
        if value is not None:
            writer.result(value, real)


def _optional(writer: Writer, value: Value | None) -> str:
    return "" if value is None else writer.real(value)


def _bias(writer: Writer, node: Node, b: Value | None, rb: Value | None) -> str:
    """Return both biases: that of the input, and zeros but for the candidate's own."""
    if b is None and rb is None:
        return ""
    r = node.inputs[2]
    assert r is not None
    directions, rows, hidden = r.shape
    zeros = np.zeros((directions, rows), np.float32)
    first = writer.constant(zeros, "zeros") if b is None else writer.real(b)
    if rb is None:
        second = [writer.constant(zeros, "zeros")]
    else:
        gates = (CELLS[node.op.cell] - 1) * hidden
        second = [writer.constant(zeros[:, :gates], "zeros"), writer.real(rb)]
    return writer.emit("Concat", [first, *second], f"{node.names[0]}.bias", axis=1)


def _activations(op: Any, directions: int) -> dict[str, Any]:
    """Return the attributes of the activations; each takes its parameters from lists in turn."""
    used = (op.activations or DEFAULTS[op.cell])[: _USED[op.cell]] * directions
    alpha = [a for name, a, _ in used if ACTIVATIONS[name].alpha is not None]
    beta = [b for name, _, b in used if ACTIVATIONS[name].beta is not None]
    found: dict[str, Any] = {"activations": [_NAMES.get(n, n.capitalize()) for n, _, _ in used]}
    if alpha:
        found["activation_alpha"] = alpha
    if beta:
        found["activation_beta"] = beta
    return found


_NAMES = {
    "leakyrelu": "LeakyRelu",
    "thresholdedrelu": "ThresholdedRelu",
    "scaledtanh": "ScaledTanh",
    "hardsigmoid": "HardSigmoid",
}
"""ONNX's spelling, where it is more than a capital letter."""


LAYER_WRITERS: dict[type, WriteNode] = {
    Interpolate: _interpolate,
    Recurrent: _recurrent,
    Resize2D: _resize,
    Standardize: _standardize,
}
