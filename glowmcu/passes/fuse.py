"""Fusing: padding and activations become parameters of the layer next to them."""

from __future__ import annotations

import math
from dataclasses import replace

from glowmcu.graph.graph import Graph, Node, Value, constant
from glowmcu.graph.rewrite import rewrite
from glowmcu.ops.conv import Conv2D
from glowmcu.ops.elementwise import Elementwise
from glowmcu.ops.pad import Pad
from glowmcu.ops.pool import Pool2D
from glowmcu.ops.reshape import Reshape
from glowmcu.ops.standardize import Standardize
from glowmcu.ops.transpose import Transpose
from glowmcu.passes.linear import LINEAR
from glowmcu.passes.match import (
    Uses,
    bounds,
    clipped,
    elementwise,
    made_by,
    make,
    merged_origin,
    real_data,
    single,
)


def fuse_pad(graph: Graph) -> Graph:
    """Let convolutions and pools pad their input by themselves."""
    return rewrite(graph, (pad_into_window,))


def fuse_activations(graph: Graph) -> Graph:
    """Fold relu and clip into the layer or the elementwise function that feeds them."""
    return rewrite(graph, (scale_into_standardize, clip_before_movement, clip_into_producer))


def scale_into_standardize(node: Node, uses: Uses) -> Value | None:
    """Constants that multiply standardized rows, and are then added, are its scale and bias."""
    if not elementwise(node, "mul", "add"):
        return None
    for x, other in (node.inputs, node.inputs[::-1]):
        layer, data = made_by(x, Standardize), real_data(other)
        if layer is None or data is None or x is None or not single(x, uses):
            continue
        inputs = [*layer.inputs, None, None][:3]
        cols, place = x.shape[-1], 1 if node.op.fn == "mul" else 2
        if data.size != cols or data.shape[-1:] != (cols,) or any(inputs[place:]):
            continue
        inputs[place] = constant(f"{node.name}.{node.op.fn}", data.reshape(cols))
        while inputs[-1] is None:
            inputs.pop()
        y = node.output
        return make(layer.op, *inputs, like=y, origin=merged_origin(layer, node), type_=y.type)
    return None


_CLAMPED = (*LINEAR, Elementwise)


def clip_into_producer(node: Node, uses: Uses) -> Value | None:
    """A clip of a layer's result is the layer's clamp, within the clamp it has."""
    limits = bounds(node)
    x, y = node.inputs[0] if node.inputs else None, node.outputs[0]
    layer = made_by(x, *_CLAMPED)
    if limits is None or x is None or layer is None or not single(x, uses) or x.type != y.type:
        return None
    if not x.type.real().dtype.is_float:
        return None
    clamp = clipped(layer.op.clamp, limits)
    origin = merged_origin(layer, node)
    return make(replace(layer.op, clamp=clamp), *layer.inputs, like=y, origin=origin, type_=y.type)


def clip_before_movement(node: Node, uses: Uses) -> Value | None:
    """A clip of moved elements, or of maxima, goes first where a layer can take it in."""
    limits = bounds(node)
    x, y = node.inputs[0] if node.inputs else None, node.outputs[0]
    if limits is None or x is None or x.type != y.type or not _comes_from_layer(x, uses):
        return None
    movement = x.producer
    inner = None if movement is None else movement.inputs[0]
    if movement is None or inner is None:
        return None
    moved = make(
        node.op,
        inner,
        *node.inputs[1:],
        like=y,
        origin=node.origin,
        type_=inner.type,
        name=f"{y.name}.unmoved",
    )
    return make(movement.op, moved, like=y, origin=movement.origin, type_=y.type)


def _comes_from_layer(x: Value, uses: Uses) -> bool:
    """Tell whether x is a layer's result that was moved, with no other reader on the way."""
    moved = False
    while single(x, uses) and x.producer is not None:
        if isinstance(x.producer.op, _CLAMPED):
            return moved
        source = x.producer.inputs[0] if _keeps_order(x.producer) else None
        if source is None or source.type.quant != x.type.quant:
            return False
        x, moved = source, True
    return False


def _keeps_order(node: Node) -> bool:
    op = node.op
    maximum = isinstance(op, Pool2D) and op.kind == "max"
    return maximum or isinstance(op, (Reshape, Transpose))


def pad_into_window(node: Node, uses: Uses) -> Value | None:
    """Constant padding of height and width, also before a transpose, is a window's own padding."""
    if not isinstance(node.op, (Conv2D, Pool2D)):
        return None
    source = node.inputs[0]
    transpose = made_by(source, Transpose)
    pad = made_by(transpose.inputs[0] if transpose else source, Pad)
    if pad is None or source is None or pad.inputs[0] is None:
        return None
    perm = transpose.op.perm if transpose else (0, 1, 2, 3)
    x = pad.inputs[0]
    amounts = _spatial(pad.op, perm)
    if amounts is None or pad.op.mode != "constant" or x.type.quant != pad.types[0].quant:
        return None
    op: Conv2D | Pool2D | None = None
    if isinstance(node.op, Pool2D):
        op = _padded_pool(node.op, pad, amounts)
    elif pad.op.value == 0.0:
        op = replace(node.op, pads=_sum(node.op.pads, amounts))
    if op is None:
        return None
    if transpose is not None:
        x = make(transpose.op, x, like=x, origin=transpose.origin, perm=perm)
    origin = merged_origin(pad, node)
    y = node.output
    return make(op, x, *node.inputs[1:], like=y, origin=origin, type_=y.type)


def _spatial(op: Pad, perm: tuple[int, ...]) -> tuple[int, int, int, int] | None:
    """Return (top, left, bottom, right) where nothing but height and width grows."""
    rank = len(op.pads) // 2
    if rank != 4 or min(op.pads) < 0:
        return None
    begin = [op.pads[axis] for axis in perm]
    end = [op.pads[rank + axis] for axis in perm]
    if begin[0] or begin[3] or end[0] or end[3]:
        return None
    return begin[1], begin[2], end[1], end[2]


def _sum(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, int, int, int]:
    top, left, bottom, right = (x + y for x, y in zip(a, b, strict=True))
    return top, left, bottom, right


def _padded_pool(op: Pool2D, pad: Node, amounts: tuple[int, int, int, int]) -> Pool2D | None:
    """Return the pool that pads by itself, None where its own padding means something else."""
    pads = _sum(op.pads, amounts)
    if op.kind == "max":
        quant, dtype = pad.types[0].quant, pad.types[0].dtype
        lowest = -math.inf
        if quant is not None and quant.axis is None:
            lowest = quant.scale[0] * (dtype.low - quant.zero_point[0])
        return replace(op, pads=pads) if pad.op.value <= lowest else None
    if pad.op.value != 0.0 or any(op.pads):
        return None
    return replace(op, pads=pads, count_include_pad=True)
