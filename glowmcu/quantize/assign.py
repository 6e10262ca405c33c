"""Assignment: from ranges and the kinds of operators to a scale and zero point for every value."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.dtypes import DType
from glowmcu.core.types import Array, Quant
from glowmcu.graph.graph import Graph, Node, Value
from glowmcu.ops.concat import Concat
from glowmcu.ops.elementwise import Elementwise
from glowmcu.ops.pad import Pad
from glowmcu.ops.softmax import Softmax
from glowmcu.options import Schema
from glowmcu.passes.qdq import moves_data
from glowmcu.quantize.calibrate import is_real
from glowmcu.quantize.ranges import Range

_UNIT = Quant.per_tensor(1 / 256, -128)
_FIXED = {"softmax": _UNIT, "sigmoid": _UNIT, "tanh": Quant.per_tensor(1 / 128, 0)}
_LEAST_SCALE = 2.0**-100
_HEADROOM = 2.0
"""How far int16 reaches beyond what was seen: of its bits one is worth that."""


def assign(
    graph: Graph,
    ranges: Mapping[Value, Range],
    schema: Schema = "asymmetric",
    dtype: DType = dtypes.I8,
) -> dict[Value, Quant]:
    """Return the quantization of every value with a range, for storing it as int8 or int16.

    Values that are moved, not computed, share one; softmax, sigmoid and tanh have the ones that
    their results fill.
    """
    fixed = {v: q for v in ranges if (q := _fixed(v, schema, dtype)) is not None}
    root: dict[Value, Value] = {}

    def find(value: Value) -> Value:
        while value in root:
            value = root[value]
        return value

    for node in graph.nodes():
        sources = shared_sources(node)
        group = [v for v in (*sources, *node.outputs) if v in ranges]
        if len(sources) > 1 and any(find(v) in fixed for v in group):
            continue
        for value in group[1:]:
            first, other = find(group[0]), find(value)
            if first is not other:
                root[other] = first
    spans: dict[Value, Range] = {}
    for value, span in ranges.items():
        key = find(value)
        spans[key] = spans[key].union(span) if key in spans else span
    return {
        v: fixed.get(find(v)) or activation_quant(spans[find(v)], schema, dtype) for v in ranges
    }


def shared_sources(node: Node) -> tuple[Value, ...]:
    """Return the inputs whose quantization the node's output shares."""
    op = node.op
    if isinstance(op, Concat) or chooses(node):
        return tuple(v for v in node.inputs if v is not None and is_real(v))
    return tuple(v for v in node.inputs[:1] if v is not None) if only_moves(node) else ()


def chooses(node: Node) -> bool:
    """Tell whether every element of the result is an element of one of the inputs."""
    op = node.op
    return isinstance(op, Elementwise) and op.fn in ("max", "min") and op.clamp is None


def only_moves(node: Node) -> bool:
    """Tell whether a node moves numbers that int8 can stand for; padding may be infinite."""
    return moves_data(node) and not (isinstance(node.op, Pad) and math.isinf(node.op.value))


def _fixed(value: Value, schema: Schema, dtype: DType) -> Quant | None:
    """Return the quantization of results whose range is known."""
    found = _FIXED.get(_known(value))
    if found is None or (dtype == dtypes.I8 and schema in ("asymmetric", "symmetric-uint8")):
        return found
    return Quant.per_tensor(-1 / dtype.low, 0)


def _known(value: Value) -> str:
    """Return the name of the function whose result a value is, "" where it has no fixed range."""
    op = None if value.producer is None else value.producer.op
    if isinstance(op, Softmax) and not op.log:
        return "softmax"
    return op.fn if isinstance(op, Elementwise) and op.clamp is None else ""


def activation_quant(span: Range, schema: Schema = "asymmetric", dtype: DType = dtypes.I8) -> Quant:
    """Return the quantization of a range as int8 or int16; zero is represented exactly.

    That of int16 is symmetric whatever the schema, and reaches twice as far: there are bits enough.
    """
    low, high = min(span.low, 0.0), max(span.high, 0.0)
    wide = dtype != dtypes.I8
    if not wide and (schema == "asymmetric" or (schema == "symmetric-uint8" and low == 0.0)):
        scale = float(np.float32((high - low) / 255))
        zero = 0 if scale < _LEAST_SCALE else round(dtype.low - low / scale)
    else:
        reach = _HEADROOM if wide else 1.0
        scale, zero = float(np.float32(reach * max(high / dtype.high, low / dtype.low))), 0
    if scale < _LEAST_SCALE:
        return Quant.per_tensor(1.0, 0)
    if schema == "power-of-two":
        scale = 2.0 ** math.ceil(math.log2(scale))
    return Quant.per_tensor(scale, min(max(zero, dtype.low), dtype.high))


def weight_quant(weights: Array, axis: int | None, floor: Array, schema: Schema) -> Quant:
    """Return symmetric int8 scales per index of `axis` (None: one), none below `floor`."""
    others = tuple(i for i in range(weights.ndim) if i != axis)
    largest = np.abs(weights).max(axis=others, initial=0.0).astype(np.float64)
    return symmetric_scales(largest / 127, axis, floor, schema)


def symmetric_scales(scale: Array, axis: int | None, floor: Array, schema: Schema) -> Quant:
    """Return the quantization with these scales, none below `floor`; powers of two if asked."""
    scale = np.maximum(scale, floor if axis is not None else floor.max(initial=0.0))
    scale = np.where(scale < _LEAST_SCALE, 1.0, scale)
    if schema == "power-of-two":
        scale = 2.0 ** np.ceil(np.log2(scale))
    scales = tuple(float(s) for s in np.atleast_1d(scale.astype(np.float32)))
    return Quant(scales, (0,) * len(scales), axis)


def bias_floor(bias: Array | None, x: Quant, channels: int, dtype: DType = dtypes.I8) -> Array:
    """Return the weight scales below which the bias would need more than 24 bits, int16: 30.

    Channels of (nearly) zero weights would else have a bias that overflows the accumulator.
    """
    if bias is None:
        return np.zeros(channels)
    most = 2.0 ** (24 if dtype == dtypes.I8 else 30)
    return np.abs(bias.astype(np.float64)) / (x.scale[0] * most)
