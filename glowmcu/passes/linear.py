"""Linear layers: products with constants become dense; scales per channel go into weights."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from glowmcu.core.dtypes import DType
from glowmcu.core.types import Array, TensorType
from glowmcu.graph.graph import Graph, Node, Value, constant
from glowmcu.graph.rewrite import rewrite
from glowmcu.ops.conv import Conv2D
from glowmcu.ops.conv_transpose import ConvTranspose2D
from glowmcu.ops.dense import Dense
from glowmcu.ops.matmul import MatMul
from glowmcu.ops.quant import Dequantize
from glowmcu.ops.reshape import Reshape
from glowmcu.ops.transpose import Transpose
from glowmcu.passes.fold import move_above_dequantize
from glowmcu.passes.match import (
    Uses,
    elementwise,
    made_by,
    make,
    merged_origin,
    real_data,
    single,
)

LINEAR = (Conv2D, ConvTranspose2D, Dense)
CHANNEL_AXIS = 0
"""The axis of the weights that counts output channels, in all linear layers."""


def operations(node: Node) -> int:
    """Return how many multiplications a layer does, how many results another operator has."""
    weights = node.inputs[1] if isinstance(node.op, LINEAR) else None
    each = 1 if weights is None else math.prod(weights.shape[1:])
    return sum(type_.numel for type_ in node.types) * each


def matmul_to_dense(graph: Graph) -> Graph:
    """Turn products with a constant matrix, and the bias added to them, into dense layers."""
    return rewrite(graph, (constant_matmul, scale_after))


def fold_scales(graph: Graph) -> Graph:
    """Fold products and sums per channel (batch normalization, bias) into linear layers."""
    rules = (scale_after_reshape, scale_after, scale_before_reshape, scale_before)
    return rewrite(graph, rules)


def constant_matmul(node: Node, uses: Uses) -> Value | None:
    """MatMul(x, constant [K, N]) is a dense layer with the transposed weights."""
    if not isinstance(node.op, MatMul):
        return None
    x, w = node.inputs
    if x is None or w is None or real_data(w) is None or real_data(x) is not None:
        return None
    if w.type.rank < 2 or any(d != 1 for d in w.shape[:-2]):
        return None
    if w.type.rank > max(x.type.rank, 2) or not w.type.real().dtype.is_float:
        return None
    weights = _matrix(w)
    if weights is None:
        return None
    y = node.output
    return make(Dense(), x, weights, like=y, origin=node.origin, type_=y.type)


def _matrix(w: Value) -> Value | None:
    """Return the constant w [..., K, N] as [N, K]; integers behind a Dequantize stay integers."""
    inner, outer = w.shape[-2:]
    if w.data is not None:
        if w.type.quant is not None and w.type.quant.axis is not None:
            return None
        data = np.ascontiguousarray(w.data.reshape(inner, outer).T)
        return constant(w.name, data, w.type.with_shape((outer, inner)))
    shape, matrix, transposed = w.shape, (inner, outer), (outer, inner)
    value: Value | None = w
    if shape != matrix:
        value = _stored_moved(Reshape(matrix), w, w.type.with_shape(matrix), None)
    return (
        None
        if value is None
        else _stored_moved(Transpose((1, 0)), value, w.type.with_shape(transposed), (1, 0))
    )


def _stored_moved(
    op: Reshape | Transpose, w: Value, type_: TensorType, perm: tuple[int, ...] | None
) -> Value | None:
    """Apply data movement to the integers behind a Dequantize."""
    step = make(op, w, like=w, origin=(), type_=type_, perm=perm)
    return None if step.producer is None else move_above_dequantize(step.producer, {})


def scale_after(node: Node, uses: Uses) -> Value | None:
    """a * layer(x) + d with constants a, d per channel is the layer with other weights and bias."""
    found = _affine(node)
    layer = made_by(found[0], *LINEAR) if found else None
    if found is None or layer is None or not _open(layer, uses):
        return None
    _, factor, shift = found
    y = node.output
    if layer.types[0] != y.type:
        return None
    x, weights, bias = (*layer.inputs, None)[:3]
    assert weights is not None
    if factor is not None:
        scaled = scaled_weights(weights, factor)
        if scaled is None:
            return None
        weights = scaled
    new_bias = _new_bias(node, bias, factor, shift, y.shape[-1])
    if new_bias is None:
        return None
    origin = merged_origin(layer, node)
    return make(layer.op, x, weights, new_bias, like=y, origin=origin, type_=y.type)


def scale_after_reshape(node: Node, uses: Uses) -> Value | None:
    """What is done per channel to a reshaped layer can be done before the reshape."""
    found = _affine(node)
    reshape = made_by(found[0], Reshape) if found else None
    if found is None or reshape is None or not single(found[0], uses):
        return None
    inner = reshape.inputs[0]
    layer = made_by(inner, *LINEAR)
    if inner is None or layer is None or not _open(layer, uses):
        return None
    if inner.shape[-1] != found[0].shape[-1] or node.types[0] != found[0].type:
        return None
    operands = [inner if v is found[0] else _flat(v) for v in node.inputs]
    y = node.output
    moved = make(
        node.op, *operands, like=y, origin=node.origin, type_=inner.type, name=f"{y.name}.flat"
    )
    return make(reshape.op, moved, like=y, origin=reshape.origin, type_=y.type)


def _flat(value: Value | None) -> Value | None:
    """Return a constant per channel as a vector, so that it broadcasts against any rank."""
    data = real_data(value)
    assert value is not None
    assert data is not None
    return value if value.type.rank <= 1 else constant(value.name, data.reshape(-1))


def scale_before(node: Node, uses: Uses) -> Value | None:
    """layer(a * x + d) is the layer with other weights and bias; d only where nothing is padded."""
    source = node.inputs[0] if isinstance(node.op, LINEAR) else None
    found = _affine(None if source is None else source.producer)
    if found is None or source is None or not single(source, uses):
        return None
    x, factor, shift = found
    weights = _absorbing_weights(node, shift)
    if weights is None or x.type != source.type:
        return None
    bias = node.inputs[2] if len(node.inputs) > 2 else None
    assert weights.data is not None
    w = weights.data.astype(np.float64)
    if shift is not None:
        columns = _by_input_channel(node.op, weights.shape, shift)
        total = (w * columns).reshape(weights.shape[0], -1).sum(axis=1)
        bias = _sum_bias(bias, total, weights.type.dtype)
        if bias is None:
            return None
    if factor is not None:
        w = w * _by_input_channel(node.op, weights.shape, factor)
        weights = constant(weights.name, w.astype(weights.data.dtype))
    origin = merged_origin(source.producer, node)
    y = node.output
    return make(node.op, x, weights, bias, like=y, origin=origin, type_=y.type)


def scale_before_reshape(node: Node, uses: Uses) -> Value | None:
    """What is done per channel before a reshape can be done after it, where a layer absorbs it."""
    source = node.inputs[0] if isinstance(node.op, LINEAR) else None
    reshape = made_by(source, Reshape)
    scaled = None if reshape is None else reshape.inputs[0]
    found = _affine(None if scaled is None else scaled.producer)
    if reshape is None or source is None or scaled is None or found is None:
        return None
    x, _, shift = found
    if not (single(source, uses) and single(scaled, uses)) or x.type != scaled.type:
        return None
    if source.shape[-1] != scaled.shape[-1] or _absorbing_weights(node, shift) is None:
        return None
    affine = scaled.producer
    assert affine is not None
    name = f"{x.name}.flat"
    flat = make(reshape.op, x, like=x, origin=reshape.origin, type_=source.type, name=name)
    operands = [flat if v is x else _flat(v) for v in affine.inputs]
    after = make(affine.op, *operands, like=source, origin=affine.origin, type_=source.type)
    y = node.output
    return make(node.op, after, *node.inputs[1:], like=y, origin=node.origin, type_=y.type)


def _absorbing_weights(node: Node, shift: Array | None) -> Value | None:
    """Return the layer's real weights if they can absorb what is done to its input before."""
    weights, op = node.inputs[1], node.op
    if weights is None or weights.data is None or weights.type.quant:
        return None
    every_sum_is_whole = isinstance(op, Dense) or (isinstance(op, Conv2D) and not any(op.pads))
    return weights if shift is None or every_sum_is_whole else None


def _affine(node: Node | None) -> tuple[Value, Array | None, Array | None] | None:
    """Return (x, a, d) where node computes a * x + d with constants per last axis (None: 1, 0)."""
    if node is None or not elementwise(node, "add", "sub", "mul", "div", "neg"):
        return None
    x = node.inputs[0]
    if node.op.fn == "neg" and x is not None:
        return x, np.full(1, -1.0), None
    x, other = node.inputs[:2]
    flipped = real_data(x) is not None
    if flipped:
        x, other = other, x
    data = real_data(other)
    if x is None or data is None or x.shape != node.types[0].shape or x.type.quant:
        return None
    if not x.type.dtype.is_float or any(d != 1 for d in data.shape[:-1]) or x.type.rank == 0:
        return None
    c = data.reshape(-1).astype(np.float64)
    match node.op.fn, flipped:
        case "add", _:
            return x, None, c
        case "mul", _:
            return x, c, None
        case "sub", False:
            return x, None, -c
        case "sub", True:
            return x, np.full(1, -1.0), c
        case "div", False if np.all(c != 0):
            return x, 1.0 / c, None
    return None


def _open(layer: Node, uses: Uses) -> bool:
    """Tell whether nothing else reads the layer's result and no activation closes it."""
    weights = layer.inputs[1]
    return (
        single(layer.output, uses)
        and layer.op.clamp is None
        and layer.types[0].quant is None
        and real_data(weights) is not None
    )


def scaled_weights(weights: Value, factor: Array) -> Value | None:
    """Multiply constant weights per output channel; integers keep their values and get new scales.

    None where integers cannot express the result exactly.
    """
    channels, axis = weights.shape[CHANNEL_AXIS], CHANNEL_AXIS
    factor = np.broadcast_to(factor, (channels,))
    along = [1] * weights.type.rank
    along[axis] = channels
    if weights.data is not None:
        data = weights.data.astype(np.float64) * factor.reshape(along)
        return constant(weights.name, data.astype(weights.data.dtype))
    dequantizing = made_by(weights, Dequantize)
    stored = dequantizing.inputs[0] if dequantizing else None
    if stored is None or stored.data is None or stored.type.quant is None:
        return None
    quant, dtype = stored.type.quant, stored.type.dtype
    if quant.axis not in (None, axis) or any(quant.zero_point) or np.any(factor == 0):
        return None
    negative = np.broadcast_to((factor < 0).reshape(along), stored.shape)
    if np.any(stored.data[negative] == dtype.low):
        return None
    scale = np.broadcast_to(np.asarray(quant.scale), (channels,)) * np.abs(factor)
    scales = tuple(float(s) for s in scale.astype(np.float32))
    type_ = stored.type.with_quant(
        replace(quant, scale=scales, zero_point=(0,) * channels, axis=axis)
    )
    data = np.where(negative, -stored.data, stored.data).astype(dtype.numpy)
    return make(
        Dequantize(),
        constant(stored.name, data, type_),
        like=weights,
        origin=(),
        type_=weights.type,
        name=f"{weights.name}.scaled",
    )


def _new_bias(
    node: Node, bias: Value | None, factor: Array | None, shift: Array | None, channels: int
) -> Value | None:
    """Return bias * factor + shift; a constant that is the whole bias is taken as it is."""
    if bias is None and shift is not None and elementwise(node, "add"):
        for value in node.inputs:
            if value is not None and value.shape == (channels,) and real_data(value) is not None:
                return value
    old = np.zeros(channels) if bias is None else real_data(bias)
    if old is None:
        return None
    new = old.astype(np.float64) * (1.0 if factor is None else factor)
    new = np.broadcast_to(new + (0.0 if shift is None else shift), (channels,))
    return constant(f"{node.names[0]}.bias", new.astype(node.types[0].dtype.numpy))


def _sum_bias(bias: Value | None, add: Array, dtype: DType) -> Value | None:
    old = np.zeros(add.shape) if bias is None else real_data(bias)
    if old is None:
        return None
    name = "bias" if bias is None else bias.name
    return constant(name, (old.astype(np.float64) + add).astype(dtype.numpy))


def _by_input_channel(
    op: Conv2D | ConvTranspose2D | Dense, shape: tuple[int, ...], values: Array
) -> Array:
    """Shape values per input channel to broadcast against the weights, whatever the groups."""
    groups = 1 if isinstance(op, Dense) else op.groups
    values = np.broadcast_to(values, (shape[-1] * groups,)).reshape(groups, 1, shape[-1])
    rows = np.broadcast_to(values, (groups, shape[0] // groups, shape[-1]))
    return rows.reshape(shape[0], *(1,) * (len(shape) - 2), shape[-1])
