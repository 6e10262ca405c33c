"""Importers of ONNX's element-wise operators: the table's own names and those with attributes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.types import TensorType
from glowmcu.graph.graph import Value
from glowmcu.ops._functions import FUNCTIONS, HALVES
from glowmcu.ops._program import Fn
from glowmcu.ops.base import onnx_op
from glowmcu.ops.cast import Cast
from glowmcu.ops.elementwise import Elementwise
from glowmcu.ops.onnx_node import OnnxNode
from glowmcu.ops.reshape import Reshape


def _plain_importer(name: str, fn: Fn) -> Any:
    def import_plain(node: OnnxNode) -> Value:
        return elementwise(node, name, *(node.value(i) for i in range(fn.arity)))

    import_plain.__doc__ = f"Element-wise `{name}` with broadcasting."
    return import_plain


for _name, _fn in FUNCTIONS.items():
    if _fn.onnx:
        onnx_op(_fn.onnx)(_plain_importer(_name, _fn))


def elementwise(node: OnnxNode, fn: str, *inputs: Value, suffix: str = "") -> Value:
    """Apply a function of the table; the node's errors name types that it does not take."""
    if node.opset < 7 and node.attr("broadcast", 0):
        node.fail(
            "the 'broadcast' attribute of opset 6 and older",
            hint="convert the model with onnx.version_converter to opset 13 or later",
        )
    node.attr("consumed_inputs")
    halves = [x.type.dtype for x in inputs if x.type.dtype in HALVES]
    if halves and fn != "identity":
        return _in_float32(node, fn, inputs, halves[0], suffix)
    _require_known_type(node, fn, inputs[FUNCTIONS[fn].typed_by].type)
    try:
        return node.apply(Elementwise(fn), *inputs, suffix=suffix).output
    except (TypeError, ValueError) as error:
        node.fail(f"the operands do not fit together: {error}")


def _in_float32(
    node: OnnxNode, fn: str, inputs: tuple[Value, ...], half: dtypes.DType, suffix: str
) -> Value:
    """Compute on 16-bit floats: in float32, then rounded."""
    wide = [
        _as_type(node, x, dtypes.F32, f"{suffix}.operand{n}") if x.type.dtype in HALVES else x
        for n, x in enumerate(inputs)
    ]
    if FUNCTIONS[fn].result is not None:
        return elementwise(node, fn, *wide, suffix=suffix)
    y = elementwise(node, fn, *wide, suffix=f"{suffix}.f32")
    return node.apply(Cast(half), y, suffix=suffix).output


def _require_known_type(node: OnnxNode, fn: str, type_: TensorType) -> None:
    while FUNCTIONS[fn].steps:
        fn = FUNCTIONS[fn].steps[0].fn
    if not FUNCTIONS[fn].c.get(type_.dtype.kind):
        node.fail(f"elements of type {type_.dtype}", why="ONNX does not define it for them")


def scalar(node: OnnxNode, value: float, like: Value, suffix: str) -> Value:
    """Return a constant of rank 0 with the element type of another value."""
    return node.constant(np.asarray(value, like.type.dtype.numpy), suffix)


def _with_attributes(fn: str, **defaults: float) -> Any:
    """Return an importer of a function whose further arguments are attributes of the node."""

    def import_with_attributes(node: OnnxNode) -> Value:
        x = node.value(0)
        rest = [scalar(node, float(node.attr(n, d)), x, n) for n, d in defaults.items()]
        return elementwise(node, fn, x, *rest)

    names = ", ".join(defaults)
    import_with_attributes.__doc__ = f"Element-wise `{fn}`; constant {names}."
    return import_with_attributes


SELU = {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875}

onnx_op("LeakyRelu")(_with_attributes("leaky_relu", alpha=0.01))
onnx_op("Elu")(_with_attributes("elu", alpha=1.0))
onnx_op("Celu")(_with_attributes("celu", alpha=1.0))
onnx_op("Selu")(_with_attributes("selu", **SELU))
onnx_op("ThresholdedRelu")(_with_attributes("thresholded_relu", alpha=1.0))
onnx_op("HardSigmoid")(_with_attributes("hard_sigmoid", alpha=0.2, beta=0.5))
onnx_op("Shrink")(_with_attributes("shrink", lambd=0.5, bias=0.0))
onnx_op("Swish")(_with_attributes("swish", alpha=1.0))
onnx_op("QuickGelu", domain="com.microsoft")(_with_attributes("swish", alpha=1.702))


@onnx_op("Clip")
def import_clip(node: OnnxNode) -> Value:
    """Bounds as inputs (from opset 11) or attributes; an absent bound is none."""
    x = node.value(0)
    dtype = x.type.dtype
    lowest = -math.inf if dtype.is_float else dtype.low
    highest = math.inf if dtype.is_float else dtype.high
    if node.opset < 11:
        low: Value | None = scalar(node, float(node.attr("min", lowest)), x, "min")
        high: Value | None = scalar(node, float(node.attr("max", highest)), x, "max")
    else:
        low, high = node.optional(1), node.optional(2)
    if low is None and high is None:
        return elementwise(node, "identity", x)
    low = scalar(node, lowest, x, "min") if low is None else low
    high = scalar(node, highest, x, "max") if high is None else high
    return elementwise(node, "clip", x, low, high)


def _chain(node: OnnxNode, fn: str) -> Value:
    """Apply a function of two arguments to all inputs, from left to right."""
    inputs = [node.value(i) for i in range(len(node.inputs))]
    if len(inputs) == 1:
        return elementwise(node, "identity", inputs[0])
    result = inputs[0]
    for number, value in enumerate(inputs[1:]):
        last = number == len(inputs) - 2 and node.op_type != "Mean"
        result = elementwise(node, fn, result, value, suffix="" if last else f"part{number}")
    return result


@onnx_op("Sum", "Max", "Min")
def import_variadic(node: OnnxNode) -> Value:
    """One or more operands with broadcasting."""
    return _chain(node, {"Sum": "add", "Max": "max", "Min": "min"}[node.op_type])


@onnx_op("Mean")
def import_mean(node: OnnxNode) -> Value:
    """The mean of one or more operands with broadcasting."""
    if len(node.inputs) == 1:
        return _chain(node, "add")
    total = _chain(node, "add")
    return elementwise(node, "mul", total, scalar(node, 1 / len(node.inputs), total, "part"))


@onnx_op("PRelu")
def import_prelu(node: OnnxNode) -> Value:
    """A slope that broadcasts to x, or (as before opset 7) one number for each channel."""
    x, slope = node.value(0), node.value(1)
    per_channel = slope.type.rank == 1 and x.type.rank > 2 and slope.shape[0] == x.shape[1]
    if per_channel and slope.shape[0] not in (1, x.shape[-1]):
        shape = (slope.shape[0], *[1] * (x.type.rank - 2))
        slope = node.apply(Reshape(shape), slope, suffix="slopes").output
    return elementwise(node, "prelu", x, slope)


@onnx_op("Mod")
def import_mod(node: OnnxNode) -> Value:
    """fmod=1: the sign of the dividend, as in C; fmod=0: the sign of the divisor."""
    fn = "fmod" if node.attr("fmod", 0) else "mod"
    return elementwise(node, fn, node.value(0), node.value(1))


@onnx_op("BitShift")
def import_bit_shift(node: OnnxNode) -> Value:
    """Unsigned integers; a shift by all bits or more gives 0."""
    fn = "shift_left" if node.attr("direction") == "LEFT" else "shift_right"
    return elementwise(node, fn, node.value(0), node.value(1))


@onnx_op("IsInf")
def import_is_inf(node: OnnxNode) -> Value:
    """Infinities of both signs or of one."""
    negative, positive = node.attr("detect_negative", 1), node.attr("detect_positive", 1)
    x = node.value(0)
    if not negative and not positive:
        false = node.constant(np.zeros(x.shape, np.bool_), "false")
        return elementwise(node, "identity", false)
    fn = "is_inf" if negative and positive else "is_neg_inf" if negative else "is_pos_inf"
    return elementwise(node, fn, x)


@onnx_op("Gelu")
def import_gelu(node: OnnxNode) -> Value:
    """Exact, or approximate='tanh'."""
    fn = "gelu_tanh" if node.attr("approximate", "none") == "tanh" else "gelu"
    return elementwise(node, fn, node.value(0))


@onnx_op("Gelu", domain="com.microsoft")
def import_exact_gelu(node: OnnxNode) -> Value:
    """Exact."""
    return elementwise(node, "gelu", node.value(0))


@onnx_op("FastGelu", "BiasGelu", domain="com.microsoft")
def import_biased_gelu(node: OnnxNode) -> Value:
    """With an optional bias; FastGelu is the tanh form."""
    x, bias = node.value(0), node.optional(1)
    x = x if bias is None else elementwise(node, "add", x, bias, suffix="biased")
    return elementwise(node, "gelu_tanh" if node.op_type == "FastGelu" else "gelu", x)


@onnx_op("Pow")
def import_pow(node: OnnxNode) -> Value:
    """Operands of two types, the result has the first; small constant powers are products."""
    x, exponent = node.value(0), node.value(1)
    data = exponent.data
    if data is not None and data.size == 1 and exponent.type.rank <= x.type.rank:
        found = _simple_power(node, x, float(data.reshape(-1)[0]))
        if found is not None:
            return found
    common = x.type.dtype
    if not common.is_float and exponent.type.dtype.is_float:
        common = exponent.type.dtype
    base = _as_type(node, x, common, "base")
    power = _as_type(node, exponent, common, "exponent")
    if common is x.type.dtype:
        return elementwise(node, "pow", base, power)
    real = elementwise(node, "pow", base, power, suffix="real")
    return node.apply(Cast(x.type.dtype), real).output


def _simple_power(node: OnnxNode, x: Value, power: float) -> Value | None:
    if power == 2.0:
        return elementwise(node, "mul", x, x)
    if power == 3.0:
        return elementwise(node, "mul", elementwise(node, "mul", x, x, suffix="square"), x)
    if not x.type.dtype.is_float:
        return None
    if power == 0.5:
        return elementwise(node, "sqrt", x)
    return elementwise(node, "reciprocal", x) if power == -1.0 else None


def _as_type(node: OnnxNode, x: Value, dtype: dtypes.DType, suffix: str) -> Value:
    if x.type.dtype is dtype:
        return x
    if x.data is not None:
        return node.constant(x.data.astype(dtype.numpy), suffix)
    return node.apply(Cast(dtype), x, suffix=suffix).output


@onnx_op("BatchNormalization")
def import_batch_normalization(node: OnnxNode) -> Value:
    """Inference only: one multiplication and one addition for each channel (axis 1)."""
    node.attr("momentum")
    node.attr("spatial")
    if node.attr("training_mode", 0) or len([n for n in node.output_names if n]) > 1:
        node.fail(
            "batch normalization in training mode",
            why="its statistics would be computed at run time",
            hint="export the model for inference, as with model.eval() in PyTorch",
        )
    x = node.value(0)
    epsilon = float(node.attr("epsilon", 1e-5))
    if any(node.value(i).data is None for i in range(1, 5)):
        return _batch_normalization_at_run_time(node, x, epsilon)
    parts = (node.value(i).data for i in range(1, 5))
    shape = (-1, *[1] * max(x.type.rank - 2, 0))
    scale, bias, mean, variance = (np.asarray(p, np.float64).reshape(shape) for p in parts)
    factor = scale / np.sqrt(variance + epsilon)
    offset = bias - mean * factor
    dtype = x.type.dtype.numpy
    scaled = elementwise(
        node, "mul", x, node.constant(factor.astype(dtype), "factor"), suffix="scaled"
    )
    return elementwise(node, "add", scaled, node.constant(offset.astype(dtype), "offset"))


def _batch_normalization_at_run_time(node: OnnxNode, x: Value, epsilon: float) -> Value:
    """(x - mean) * scale / sqrt(variance + epsilon) + bias."""
    vectors = [node.value(i) for i in range(1, 5)]
    shape = (vectors[0].type.numel, *[1] * max(x.type.rank - 2, 0))
    scale, bias, mean, variance = (
        node.apply(Reshape(shape), v, suffix=f"{v.name}.channels").output for v in vectors
    )
    centred = elementwise(node, "sub", x, mean, suffix="centred")
    shifted = elementwise(
        node, "add", variance, scalar(node, epsilon, x, "epsilon"), suffix="shifted"
    )
    root = elementwise(node, "sqrt", shifted, suffix="deviation")
    factor = elementwise(node, "div", scale, root, suffix="factor")
    return elementwise(
        node, "add", elementwise(node, "mul", centred, factor, suffix="scaled"), bias
    )
