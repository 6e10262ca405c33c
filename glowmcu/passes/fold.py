"""Folding: what is known when compiling is computed when compiling."""

from __future__ import annotations

from glowmcu.core.types import Quant, dequantize
from glowmcu.graph.evaluate import evaluate_node
from glowmcu.graph.graph import Graph, Node, Value, constant
from glowmcu.graph.rewrite import Rule, rewrite
from glowmcu.ops.broadcast import Broadcast
from glowmcu.ops.elementwise import Elementwise
from glowmcu.ops.loop import takes_long
from glowmcu.ops.quant import Dequantize
from glowmcu.ops.reshape import Reshape
from glowmcu.ops.slice import Slice
from glowmcu.ops.transpose import Transpose
from glowmcu.passes.match import Uses, made_by, make

_LARGE = 64 * 1024
_GROWTH = 4


def fold_constants(graph: Graph) -> Graph:
    """Compute nodes whose inputs are all constant; keep dequantized weights as integers."""
    return rewrite(graph, (move_above_dequantize, broadcast_by_reader, constant_node))


def fold_dequantized(graph: Graph) -> Graph:
    """Turn the integer constants that only float operators read into float constants."""
    return rewrite(graph, (dequantized_constant, *FOLDING_RULES))


def constant_node(node: Node, uses: Uses) -> tuple[Value, ...] | None:
    """A node that reads constants only is its result, unless that is far larger than they are."""
    if not node.inputs or isinstance(node.op, Dequantize) or takes_long(node):
        return None
    if any(v is not None and v.data is None for v in node.inputs):
        return None
    size = sum(v.type.nbytes for v in node.inputs if v is not None)
    grown = sum(t.nbytes for t in node.types)
    if grown > _LARGE and grown > _GROWTH * size:
        return None
    arrays = evaluate_node(node, [None if v is None else v.data for v in node.inputs])
    return tuple(
        constant(name, array.astype(type_.dtype.numpy, copy=False), type_)
        for name, array, type_ in zip(node.names, arrays, node.types, strict=True)
    )


def move_above_dequantize(node: Node, uses: Uses) -> Value | None:
    """A transpose, reshape or slice of a dequantized constant acts on the integers, offline."""
    if not isinstance(node.op, (Transpose, Reshape, Slice)):
        return None
    dequantizing = made_by(node.inputs[0], Dequantize)
    stored = None if dequantizing is None else dequantizing.inputs[0]
    if stored is None or stored.data is None:
        return None
    try:
        type_ = node.op.infer(stored.type)
    except TypeError:
        return None
    moved = constant(stored.name, node.op.reference(stored.data), type_)
    return make(Dequantize(), moved, like=node.output, origin=node.origin, type_=node.types[0])


def broadcast_by_reader(node: Node, uses: Uses) -> Value | None:
    """An elementwise function broadcasts by itself what a Broadcast node would make larger."""
    if not isinstance(node.op, Elementwise) or len(node.outputs) != 1:
        return None
    small = list(node.inputs)
    for i, value in enumerate(node.inputs):
        made = made_by(value, Broadcast)
        if made is None or made.inputs[0] is None:
            continue
        others = [v.shape for j, v in enumerate(small) if j != i and v is not None]
        if _broadcast([made.inputs[0].shape, *others]) == node.types[0].shape:
            small[i] = made.inputs[0]
    if all(a is b for a, b in zip(small, node.inputs, strict=True)):
        return None
    return make(node.op, *small, like=node.output, origin=node.origin, type_=node.types[0])


def _broadcast(shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    rank = max(len(s) for s in shapes)
    padded = [(1,) * (rank - len(s)) + s for s in shapes]
    return tuple(next((d for d in dims if d != 1), 1) for dims in zip(*padded, strict=True))


def dequantized_constant(node: Node, uses: Uses) -> Value | None:
    """What remains of dequantized constants is folded to float."""
    if not isinstance(node.op, Dequantize):
        return None
    stored = node.inputs[0]
    if stored is None or stored.data is None:
        return None
    quant = stored.type.quant or Quant.per_tensor(1.0)
    data = dequantize(stored.data, quant)
    return constant(node.names[0], data.astype(node.types[0].dtype.numpy, copy=False))


FOLDING_RULES: tuple[Rule, ...] = (move_above_dequantize, broadcast_by_reader, constant_node)
