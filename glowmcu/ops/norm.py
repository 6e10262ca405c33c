"""Importers of the normalizations that are composed of reductions and element-wise functions."""

from __future__ import annotations

import math

import numpy as np

from glowmcu.core import dtypes
from glowmcu.graph.graph import Value
from glowmcu.ops.base import onnx_op
from glowmcu.ops.elementwise_onnx import elementwise, scalar
from glowmcu.ops.onnx_node import OnnxNode
from glowmcu.ops.pool import Pool2D
from glowmcu.ops.reduce import Reduce
from glowmcu.ops.reshape import Reshape
from glowmcu.ops.standardize import Standardize


def reduced(node: OnnxNode, kind: str, axes: tuple[int, ...], x: Value, suffix: str) -> Value:
    """Reduce x along axes that stay with size 1."""
    return node.apply(Reduce(kind, axes), x, suffix=suffix).output


def _standardized(
    node: OnnxNode, x: Value, first: int, epsilon: float, centre: bool = True
) -> Value:
    """Return (x - mean) / sqrt(variance + epsilon) over all axes from `first` on."""
    axes = tuple(range(first, x.type.rank))
    if x.type.dtype is not dtypes.F32:
        return _with_statistics(node, x, axes, epsilon, centre)[0]
    shape = (*x.shape[:first], math.prod(x.shape[first:]))
    rows = x if shape == x.shape else node.apply(Reshape(shape), x, suffix="rows").output
    y = node.apply(Standardize(epsilon, centre), rows, suffix="standardized").output
    return y if shape == x.shape else node.apply(Reshape(x.shape), y, suffix="shaped").output


def _with_statistics(
    node: OnnxNode, x: Value, axes: tuple[int, ...], epsilon: float, centre: bool = True
) -> tuple[Value, Value, Value]:
    """Return (x - mean) / sqrt(variance + epsilon), the mean, the inverse deviation."""
    mean = reduced(node, "mean", axes, x, "mean") if centre else x
    centred = elementwise(node, "sub", x, mean, suffix="centred") if centre else x
    square = elementwise(node, "mul", centred, centred, suffix="square")
    variance = reduced(node, "mean", axes, square, "variance")
    inverse = _inverse_root(node, variance, epsilon)
    return elementwise(node, "mul", centred, inverse, suffix="standardized"), mean, inverse


def _inverse_root(node: OnnxNode, x: Value, epsilon: float) -> Value:
    shifted = elementwise(node, "add", x, scalar(node, epsilon, x, "epsilon"), suffix="shifted")
    root = elementwise(node, "sqrt", shifted, suffix="deviation")
    return elementwise(node, "reciprocal", root, suffix="inverse")


def _affine(node: OnnxNode, x: Value, scale: Value | None, bias: Value | None) -> Value:
    """Return the node's output: x * scale + bias, either of which may be absent."""
    if scale is None and bias is None:
        return elementwise(node, "identity", x)
    if scale is not None:
        x = elementwise(node, "mul", x, scale, suffix="" if bias is None else "scaled")
    return x if bias is None else elementwise(node, "add", x, bias)


def _first_axis(node: OnnxNode, x: Value) -> int:
    axis = int(node.attr("axis", -1))
    return axis + x.type.rank if axis < 0 else axis


@onnx_op("LayerNormalization")
def import_layer_normalization(node: OnnxNode) -> tuple[Value, ...] | Value:
    """Over all axes from `axis` on, with scale and optional bias; mean and deviation on demand."""
    node.attr("stash_type")
    x = node.value(0)
    first, epsilon = _first_axis(node, x), float(node.attr("epsilon", 1e-5))
    scale, bias = node.optional(1), node.optional(2)
    if not any(node.output_names[1:]):
        y = _affine(node, _standardized(node, x, first, epsilon), scale, bias)
        return y if len(node.output_names) == 1 else (y,) * len(node.output_names)
    axes = tuple(range(first, x.type.rank))
    standard, mean, inverse = _with_statistics(node, x, axes, epsilon)
    return (_affine(node, standard, scale, bias), mean, inverse)[: len(node.output_names)]


@onnx_op("RMSNormalization", "SimplifiedLayerNormalization")
def import_rms_normalization(node: OnnxNode) -> Value:
    """Divided by the root of the mean square over all axes from `axis` on, then scaled."""
    node.attr("stash_type")
    x = node.value(0)
    epsilon = float(node.attr("epsilon", 1e-5))
    y = _standardized(node, x, _first_axis(node, x), epsilon, centre=False)
    return _affine(node, y, node.optional(1), None)


def _per_channel(node: OnnxNode, value: Value | None, rank: int) -> Value | None:
    """Return a vector of channels shaped to broadcast along axis 1."""
    if value is None:
        return None
    shape = (value.type.numel, *[1] * (rank - 2))
    if value.data is not None:
        return node.constant(value.data.reshape(shape), value.name.rpartition("/")[2])
    return node.apply(Reshape(shape), value, suffix=f"{value.name}.channels").output


@onnx_op("InstanceNormalization")
def import_instance_normalization(node: OnnxNode) -> Value:
    """Each channel of each sample by its own mean and deviation."""
    x = node.value(0)
    standard = _standardized(node, x, 2, float(node.attr("epsilon", 1e-5)))
    rank = x.type.rank
    scale, bias = (_per_channel(node, node.value(i), rank) for i in (1, 2))
    return _affine(node, standard, scale, bias)


@onnx_op("GroupNormalization")
def import_group_normalization(node: OnnxNode) -> Value:
    """Groups of channels by their mean and deviation; scales per group (opset 18) or channel."""
    node.attr("stash_type")
    x, groups = node.value(0), int(node.attr("num_groups"))
    batch, channels, *rest = x.shape
    shape = (batch, groups, channels // groups * math.prod(rest))
    grouped = node.apply(Reshape(shape), x, suffix="groups").output
    epsilon = float(node.attr("epsilon", 1e-5))
    standard = _standardized(node, grouped, 2, epsilon)
    if node.value(1).type.numel == groups and groups != channels:
        scale, bias = (_per_channel(node, node.value(i), 3) for i in (1, 2))
        standard = _affine(node, standard, scale, bias)
        return node.apply(Reshape(x.shape), standard).output
    back = node.apply(Reshape(x.shape), standard, suffix="channels").output
    scale, bias = (_per_channel(node, node.value(i), x.type.rank) for i in (1, 2))
    return _affine(node, back, scale, bias)


@onnx_op("MeanVarianceNormalization")
def import_mean_variance_normalization(node: OnnxNode) -> Value:
    """Over `axes`, by default batch, height and width."""
    x = node.value(0)
    axes = tuple(int(a) % x.type.rank for a in node.attr("axes", (0, 2, 3)))
    mean = reduced(node, "mean", axes, x, "mean")
    centred = elementwise(node, "sub", x, mean, suffix="centred")
    square = elementwise(node, "mul", centred, centred, suffix="square")
    root = elementwise(
        node, "sqrt", reduced(node, "mean", axes, square, "variance"), suffix="deviation"
    )
    shifted = elementwise(node, "add", root, scalar(node, 1e-9, root, "epsilon"), suffix="shifted")
    return elementwise(node, "div", centred, shifted)


@onnx_op("LpNormalization")
def import_lp_normalization(node: OnnxNode) -> Value:
    """x divided by its norm along one axis, p = 1 or 2; a row of zeros stays zero."""
    x = node.value(0)
    axis, p = int(node.attr("axis", -1)), int(node.attr("p", 2))
    norm = reduced(node, "l1" if p == 1 else "l2", (axis % x.type.rank,), x, "norm")
    zero, one = scalar(node, 0, x, "zero"), scalar(node, 1, x, "one")
    is_zero = elementwise(node, "equal", norm, zero, suffix="is_zero")
    safe = elementwise(node, "where", is_zero, one, norm, suffix="safe")
    return elementwise(node, "div", x, safe)


@onnx_op("LRN")
def import_lrn(node: OnnxNode) -> Value:
    """Local response normalization across channels (axis 1), a moving average of squares."""
    x, size = node.value(0), int(node.attr("size"))
    alpha, beta = float(node.attr("alpha", 1e-4)), float(node.attr("beta", 0.75))
    bias = scalar(node, float(node.attr("bias", 1.0)), x, "bias")
    square = elementwise(node, "mul", x, x, suffix="square")
    plane = (*x.shape[:2], 1, math.prod(x.shape[2:]))
    rows = node.apply(Reshape(plane), square, suffix="rows").output
    before = (size - 1) // 2
    pool = Pool2D(
        "average", (size, 1), pads=(before, 0, size - 1 - before, 0), count_include_pad=True
    )
    mean = node.apply(pool, rows, suffix="mean").output
    back = node.apply(Reshape(x.shape), mean, suffix="channels").output
    scaled = elementwise(node, "mul", back, scalar(node, alpha, x, "alpha"), suffix="scaled")
    shifted = elementwise(node, "add", scaled, bias, suffix="shifted")
    power = scalar(node, -beta, x, "power")
    return elementwise(node, "mul", x, elementwise(node, "pow", shifted, power, suffix="powers"))


@onnx_op("Hardmax")
def import_hardmax(node: OnnxNode) -> Value:
    """1 at the first largest element along an axis, 0 elsewhere."""
    x = node.value(0)
    axis = int(node.attr("axis", -1 if node.opset >= 13 else 1)) % x.type.rank
    shape, flat = x.shape, x
    if node.opset < 13:
        rows = (math.prod(shape[:axis]), math.prod(shape[axis:]))
        flat, axis = node.apply(Reshape(rows), x, suffix="flat").output, 1
    place = node.apply(Reduce("argmax", (axis,)), flat, suffix="place").output
    count = flat.shape[axis]
    columns = np.arange(count, dtype=np.int64).reshape((-1, *[1] * (flat.type.rank - axis - 1)))
    hit = elementwise(node, "equal", place, node.constant(columns, "columns"), suffix="hit")
    one, zero = scalar(node, 1, x, "one"), scalar(node, 0, x, "zero")
    y = elementwise(node, "where", hit, one, zero, suffix="" if flat.shape == shape else "rows")
    return y if flat.shape == shape else node.apply(Reshape(shape), y).output
