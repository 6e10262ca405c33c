"""Quantize and Dequantize brought next to the arithmetic they enclose, cancelled, made int8."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.passes import record
from glowmcu.core.types import Quant, TensorType, dequantize, quantize
from glowmcu.graph.graph import Graph, Node, Value, constant
from glowmcu.graph.rewrite import Rule, rewrite, substitute
from glowmcu.ops.broadcast import Broadcast
from glowmcu.ops.concat import Concat
from glowmcu.ops.elementwise import Elementwise
from glowmcu.ops.gather import Gather
from glowmcu.ops.pad import Pad
from glowmcu.ops.pool import Pool2D
from glowmcu.ops.quant import AsQuant, Dequantize, Quantize
from glowmcu.ops.reshape import Reshape
from glowmcu.ops.slice import Slice
from glowmcu.ops.transpose import Transpose
from glowmcu.passes.match import Uses, bounds, made_by, make, single
from glowmcu.passes.permute import inverse
from glowmcu.passes.weights import WEIGHT_RULES

_SIGNED = {dtypes.U8: dtypes.I8, dtypes.U16: dtypes.I16}
"""Unsigned types and those that their integers are computed with in."""
_MOVEMENT = (Transpose, Reshape, Slice, Broadcast, Gather, Pad, Concat)


def gather_quantization(graph: Graph) -> Graph:
    """Move Dequantize below and Quantize above data movement, annotations up to graph inputs."""
    return _quantized_inputs(rewrite(graph, CANONICAL_RULES))


def make_signed(graph: Graph) -> Graph:
    """Store uint8 activations as int8, uint16 as int16, zero points lowered by half the range;
    make weights symmetric."""
    return rewrite(graph, (*SIGNED_RULES, *WEIGHT_RULES, *CANONICAL_RULES))


def moves_data(node: Node) -> bool:
    """Tell whether a node only chooses and moves elements of its first input (Concat: of all)."""
    op = node.op
    return isinstance(op, _MOVEMENT) or (isinstance(op, Pool2D) and op.kind == "max")


def _sources(node: Node) -> tuple[Value | None, ...]:
    return node.inputs if isinstance(node.op, Concat) else node.inputs[:1]


def _is_per_tensor(quant: Quant | None) -> bool:
    return quant is not None and quant.axis is None


def _moved(node: Node, sources: list[Value], type_: TensorType, like: Value, name: str) -> Value:
    """Return the movement of other sources: those of quantized type where it moved reals."""
    rest = () if isinstance(node.op, Concat) else node.inputs[1:]
    return make(node.op, *sources, *rest, like=like, origin=node.origin, type_=type_, name=name)


def dequantize_below_movement(node: Node, uses: Uses) -> Value | None:
    """Data movement of dequantized values moves the stored integers instead."""
    if not moves_data(node):
        return None
    stored: list[Value] = []
    for value in _sources(node):
        made = made_by(value, Dequantize)
        source = made.inputs[0] if made else None
        if source is None or not _is_per_tensor(source.type.quant):
            return None
        if source.type.dtype in _SIGNED:  # becomes signed first
            return None
        stored.append(source)
    first = stored[0].type
    if any((s.type.quant, s.type.dtype) != (first.quant, first.dtype) for s in stored):
        return None
    if all(s.is_constant for s in stored):
        return None
    if isinstance(node.op, Pad) and not _is_stored_exactly(node.op, first):
        return None
    y = node.output
    type_ = TensorType(first.dtype, y.shape, first.quant)
    if not _can_move(node, [s.type for s in stored], type_):
        return None
    moved = _moved(node, stored, type_, y, f"{y.name}.stored")
    return make(Dequantize(), moved, like=y, origin=node.origin, type_=y.type)


def _is_stored_exactly(op: Pad, type_: TensorType) -> bool:
    """Tell whether what the padding consists of is a number that the type can store."""
    assert type_.quant is not None
    value = np.asarray(op.value, np.float32)
    stored = quantize(value, type_.quant, type_.dtype)
    return op.mode != "constant" or bool(dequantize(stored, type_.quant) == value)


def _can_move(node: Node, types: list[TensorType], result: TensorType) -> bool:
    if node.op.raw:
        return True
    rest = () if isinstance(node.op, Concat) else node.inputs[1:]
    all_types = (*types, *(None if v is None else v.type for v in rest))
    return bool(node.op.integer(all_types, (result,)))


def quantize_above_movement(node: Node, uses: Uses) -> Value | None:
    """Quantizing before data movement gives the same and moves a quarter of the bytes."""
    if not isinstance(node.op, Quantize) or not _is_per_tensor(node.op.quant):
        return None
    if node.op.dtype in _SIGNED:  # becomes signed first
        return None
    y = node.output
    source = node.inputs[0]
    movement = None if source is None else source.producer
    if movement is None or source is None or not moves_data(movement) or not single(source, uses):
        return None
    before = [v for v in _sources(movement) if v is not None]
    types = [y.type.with_shape(v.shape) for v in before]
    if not _can_move(movement, types, y.type):
        return None
    if isinstance(movement.op, Transpose):
        back = inverse(movement.op.perm)
        first = make(node.op, *before, like=y, origin=node.origin, type_=types[0], perm=back)
        return _moved(movement, [first], y.type, y, "")
    quantized = [
        make(node.op, v, like=v, origin=node.origin, type_=t, name=f"{v.name}.quantized")
        for v, t in zip(before, types, strict=True)
    ]
    return _moved(movement, quantized, y.type, y, "")


def annotation_above_movement(node: Node, uses: Uses) -> Value | None:
    """What integers mean is said before they are moved, so that it reaches their origin."""
    if not isinstance(node.op, AsQuant) or not _is_per_tensor(node.op.quant):
        return None
    y, source = node.output, node.inputs[0]
    movement = None if source is None else source.producer
    if movement is None or source is None or not single(source, uses) or source.type.quant:
        return None
    if not moves_data(movement) or isinstance(movement.op, Pad):
        return None
    before = [v for v in _sources(movement) if v is not None]
    types = [y.type.with_shape(v.shape) for v in before]
    if not _can_move(movement, types, y.type):
        return None
    annotated = [
        make(node.op, v, like=v, origin=node.origin, type_=t)
        for v, t in zip(before, types, strict=True)
    ]
    return _moved(movement, annotated, y.type, y, "")


def annotated_constant(node: Node, uses: Uses) -> Value | None:
    """An annotated constant is a constant of that quantized type."""
    x = node.inputs[0] if isinstance(node.op, AsQuant) else None
    return None if x is None or x.data is None else constant(x.name, x.data, node.types[0])


def annotation_of_annotation(node: Node, uses: Uses) -> Value | None:
    """Of two annotations in a row only the last one counts."""
    first = made_by(node.inputs[0], AsQuant) if isinstance(node.op, AsQuant) else None
    if first is None:
        return None
    y = node.output
    return make(node.op, first.inputs[0], like=y, origin=node.origin, type_=y.type)


def same_annotation(node: Node, uses: Uses) -> Value | None:
    """Saying again what integers mean is saying nothing."""
    x = node.inputs[0] if isinstance(node.op, AsQuant) else None
    return x if x is not None and x.type == node.types[0] else None


def same_quantization(node: Node, uses: Uses) -> Value | None:
    """Quantizing what was dequantized with the same scale and zero point changes nothing."""
    dequantizing = made_by(node.inputs[0], Dequantize) if isinstance(node.op, Quantize) else None
    stored = dequantizing.inputs[0] if dequantizing else None
    return stored if stored is not None and stored.type == node.types[0] else None


def saturating_clip(node: Node, uses: Uses) -> Value | None:
    """A clip before Quantize is dropped where saturation does it, else it acts on the integers."""
    if not isinstance(node.op, Quantize) or not _is_per_tensor(node.op.quant):
        return None
    source, y = node.inputs[0], node.output
    clip = None if source is None else source.producer
    limits = bounds(clip)
    if limits is None or clip is None or source is None or not single(source, uses):
        return None
    x = clip.inputs[0]
    if x is None or x.type.quant is not None or made_by(x, Dequantize):
        return None
    if saturates(limits, y.type):
        return make(node.op, x, like=y, origin=node.origin, type_=y.type)
    quantized = make(
        node.op, x, like=x, origin=node.origin, type_=y.type, name=f"{x.name}.quantized"
    )
    types = tuple(None if v is None else v.type for v in (quantized, *clip.inputs[1:]))
    if not clip.op.integer(types, (y.type,)):
        return None
    return make(clip.op, quantized, *clip.inputs[1:], like=y, origin=clip.origin, type_=y.type)


def saturates(limits: tuple[float, float], type_: TensorType) -> bool:
    """Tell whether every stored integer of the type lies within the limits."""
    assert type_.quant is not None
    stored = quantize(np.asarray(limits, np.float32), type_.quant, type_.dtype)
    return bool(stored[0] == type_.dtype.low and stored[1] == type_.dtype.high)


CANONICAL_RULES: tuple[Rule, ...] = (
    annotated_constant,
    same_annotation,
    annotation_of_annotation,
    annotation_above_movement,
    same_quantization,
    dequantize_below_movement,
    quantize_above_movement,
    saturating_clip,
)


def _quantized_inputs(graph: Graph) -> Graph:
    """Give every integer graph input the quantization that all its readers see in it."""
    mapping: dict[Value, Value] = {}
    nodes = graph.nodes()
    for value in graph.inputs:
        readers = [n for n in nodes if value in n.inputs]
        quants = {n.op.quant if isinstance(n.op, AsQuant) else None for n in readers}
        quant = quants.pop() if len(quants) == 1 else None
        if quant is None or value.type.quant or value in graph.outputs:
            continue
        known = Value(value.name, value.type.with_quant(quant), perm=value.perm)
        mapping[value] = known
        mapping.update({n.output: known for n in readers})
        record("quantized_input")
    return substitute(graph, mapping) if mapping else graph


def _signed(type_: TensorType) -> TensorType:
    """Return the signed type whose stored integers are those of an unsigned one less its middle."""
    assert type_.quant is not None
    signed = _SIGNED[type_.dtype]
    zero = tuple(z + signed.low for z in type_.quant.zero_point)
    return TensorType(signed, type_.shape, replace(type_.quant, zero_point=zero))


def unsigned_quantize(node: Node, uses: Uses) -> Value | None:
    """Quantize to uint8 by way of int8, which the next Dequantize can read; uint16 likewise."""
    if not isinstance(node.op, Quantize) or node.types[0].dtype not in _SIGNED:
        return None
    x, y = node.inputs[0], node.output
    made = made_by(x, Dequantize)
    signed = _signed(y.type)
    if made is not None and made.inputs[0] is not None and made.inputs[0].type == signed:
        return None
    assert signed.quant is not None
    small = make(
        Quantize(signed.dtype, signed.quant),
        x,
        like=y,
        origin=node.origin,
        type_=signed,
        name=f"{y.name}.signed",
    )
    real = make(
        Dequantize(), small, like=y, origin=node.origin, type_=signed.real(), name=f"{y.name}.real"
    )
    return make(node.op, real, like=y, origin=node.origin, type_=y.type)


def unsigned_dequantize(node: Node, uses: Uses) -> Value | None:
    """Dequantize unsigned: before data movement; constants and graph inputs become signed."""
    if not isinstance(node.op, Dequantize) or node.inputs[0] is None:
        return None
    x, y = node.inputs[0], node.output
    if x.type.dtype not in _SIGNED or x.type.quant is None:
        return None
    signed = _signed(x.type)
    if x.data is not None:
        data = (x.data.astype(np.int32) + signed.dtype.low).astype(signed.dtype.numpy)
        small = constant(x.name, data, signed)
    elif x.producer is not None and moves_data(x.producer) and _is_per_tensor(x.type.quant):
        before = [v for v in _sources(x.producer) if v is not None]
        if any(v.type.quant != x.type.quant for v in before):
            return None
        reals = [
            make(node.op, v, like=v, origin=node.origin, type_=v.type.real(), name=f"{v.name}.real")
            for v in before
        ]
        return _moved(x.producer, reals, y.type, y, "")
    elif x.producer is None or isinstance(x.producer.op, AsQuant):
        small = make(
            Elementwise("identity"),
            x,
            like=x,
            origin=node.origin,
            type_=signed,
            name=f"{x.name}.signed",
        )
    else:
        return None
    return make(node.op, small, like=y, origin=node.origin, type_=y.type)


def same_reals(node: Node, uses: Uses) -> Value | None:
    """Dequantize(Quantize to unsigned(Dequantize(signed))) of one meaning is the first one."""
    if not isinstance(node.op, Dequantize):
        return None
    quantizing = made_by(node.inputs[0], Quantize)
    first = made_by(quantizing.inputs[0], Dequantize) if quantizing else None
    if quantizing is None or first is None or first.inputs[0] is None:
        return None
    stored = first.inputs[0]
    unsigned = quantizing.types[0]
    if unsigned.dtype not in _SIGNED or stored.type != _signed(unsigned):
        return None
    return first.output


SIGNED_RULES: tuple[Rule, ...] = (
    unsigned_quantize,
    unsigned_dequantize,
    same_reals,
)
