"""Layout: transposes sink towards the outputs until they meet their inverse and vanish."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from glowmcu.graph.graph import Graph, Node, Value, constant
from glowmcu.graph.rewrite import Rule, rewrite
from glowmcu.ops.broadcast import Broadcast
from glowmcu.ops.cast import Cast
from glowmcu.ops.concat import Concat
from glowmcu.ops.dense import Dense
from glowmcu.ops.elementwise import Elementwise
from glowmcu.ops.gather import Gather
from glowmcu.ops.pad import Pad
from glowmcu.ops.quant import AsQuant, Dequantize, Quantize
from glowmcu.ops.reduce import Reduce
from glowmcu.ops.reshape import Reshape
from glowmcu.ops.slice import Slice
from glowmcu.ops.softmax import Softmax
from glowmcu.ops.transpose import Transpose, moves_nothing
from glowmcu.passes.clean import IDENTITY_RULES
from glowmcu.passes.fold import FOLDING_RULES, move_above_dequantize
from glowmcu.passes.match import Uses, made_by, make, stored_constant
from glowmcu.passes.permute import inverse, permuted, reshaped, sunk
from glowmcu.passes.reorder import (
    below_reshape,
    flatten_below,
    into_dense,
    out_of_dense,
    partly_below_reshape,
)

_MAX_TRIALS = 32


def sink_transposes(graph: Graph) -> Graph:
    """Move transposes down through other operators until they cancel, if fewer bytes move then."""
    best, cost = graph, transposed_bytes(graph)
    for rules in (LAYOUT_RULES, (*LAYOUT_RULES, partly_below_reshape)):
        trial = rewrite(best, rules)
        if transposed_bytes(trial) <= cost:
            best, cost = trial, transposed_bytes(trial)
    tried: set[str] = set()
    for _ in range(_MAX_TRIALS):
        node = next((n for n in best.nodes() if _one_sided(n) and n.names[0] not in tried), None)
        if node is None or cost == 0:
            break
        tried.add(node.names[0])
        trial = rewrite(rewrite(best, (_forced(node),)), LAYOUT_RULES)
        if transposed_bytes(trial) < cost:
            best, cost = trial, transposed_bytes(trial)
    return best


def transposed_bytes(graph: Graph) -> int:
    """Return how many bytes all transposes together move."""
    total = 0
    for node in graph.nodes():
        x = node.inputs[0] if isinstance(node.op, Transpose) else None
        if x is not None and not moves_nothing(x.shape, node.op.perm):
            total += x.type.nbytes
    return total


def below_one_input(node: Node, uses: Uses) -> Value | None:
    """f(transpose(x)) is transpose(f'(x)), with the axes of f renamed."""
    transpose = made_by(node.inputs[0], Transpose) if node.inputs else None
    if transpose is None or len(node.outputs) != 1:
        return None
    op = node.op
    if isinstance(op, Reduce):
        return _below_reduce(node, transpose)
    rename = _RENAMED.get(type(op))
    changed = rename(op, transpose.op.perm) if rename else None
    if changed is None or len(node.types[0].shape) != len(transpose.op.perm):
        return None
    return sunk(node, changed, [transpose.inputs[0], *node.inputs[1:]], transpose.op.perm)


def _renamed_quantize(op: Quantize, perm: tuple[int, ...]) -> Quantize:
    axis = op.quant.axis
    return op if axis is None else replace(op, quant=replace(op.quant, axis=perm[axis]))


def _renamed_as_quant(op: AsQuant, perm: tuple[int, ...]) -> AsQuant:
    quant = op.quant
    if quant is None or quant.axis is None:
        return op
    return AsQuant(replace(quant, axis=perm[quant.axis]))


def _renamed_pad(op: Pad, perm: tuple[int, ...]) -> Pad:
    rank = len(perm)
    back = inverse(perm)
    begin, end = op.pads[:rank], op.pads[rank:]
    return replace(op, pads=(*(begin[i] for i in back), *(end[i] for i in back)))


def _renamed_slice(op: Slice, perm: tuple[int, ...]) -> Slice:
    back = inverse(perm)
    starts, steps, shape = (
        tuple(field[i] for i in back) for field in (op.starts, op.steps, op.shape)
    )
    return Slice(starts=starts, steps=steps, shape=shape)


def _renamed_broadcast(op: Broadcast, perm: tuple[int, ...]) -> Broadcast | None:
    if len(op.shape) != len(perm):
        return None
    return replace(op, shape=tuple(op.shape[i] for i in inverse(perm)))


def _keeps_last(op: Softmax | Dense, perm: tuple[int, ...]) -> Softmax | Dense | None:
    return op if perm[-1] == len(perm) - 1 else None


def _renamed_gather(op: Gather, perm: tuple[int, ...]) -> Gather:
    return replace(op, axis=perm[op.axis])


_RENAMED: dict[type, Callable[..., object]] = {
    Quantize: _renamed_quantize,
    Dequantize: lambda op, perm: op,
    AsQuant: _renamed_as_quant,
    Cast: lambda op, perm: op,
    Pad: _renamed_pad,
    Slice: _renamed_slice,
    Broadcast: _renamed_broadcast,
    Softmax: _keeps_last,
    Dense: _keeps_last,
    Gather: _renamed_gather,
}


def _below_reduce(node: Node, transpose: Node) -> Value | None:
    perm, op = transpose.op.perm, node.op
    axes = tuple(sorted(perm[axis] for axis in op.axes))
    if len(axes) > 1 and op.kind in ("argmax", "argmin"):
        return None
    changed = replace(op, axes=axes)
    if op.keepdims:
        return sunk(node, changed, [transpose.inputs[0]], perm)
    kept = [axis for axis in perm if axis not in axes]
    rest = tuple(sorted(kept).index(axis) for axis in kept)
    return sunk(node, changed, [transpose.inputs[0]], rest)


def below_many_inputs(node: Node, uses: Uses) -> Value | None:
    """f(transpose(a), transpose(b), constants) is transpose(f(a, b, transposed constants))."""
    if not isinstance(node.op, (Elementwise, Concat)) or len(node.outputs) != 1:
        return None
    perm = _common_perm(node)
    return None if perm is None else _below(node, perm)


def _below(node: Node, perm: tuple[int, ...]) -> Value | None:
    rank = len(perm)
    if node.types[0].quant is not None and node.types[0].quant.axis is not None:
        return None
    inputs: list[Value | None] = []
    for value in node.inputs:
        lifted = None if value is None else _before(value, perm, isinstance(node.op, Concat))
        if lifted is None and value is not None:
            return None
        inputs.append(lifted)
    op = node.op
    if isinstance(op, Concat):
        op = replace(op, axis=perm[op.axis % rank])
    return sunk(node, op, inputs, perm)


def _common_perm(node: Node) -> tuple[int, ...] | None:
    """Return the permutation by which every operand is transposed, for which that matters."""
    rank = len(node.types[0].shape)
    found = {n.op.perm for v in node.inputs if (n := made_by(v, Transpose)) is not None}
    if len(found) != 1:
        return None
    (perm,) = found
    free = all(v is None or _free(v, perm) for v in node.inputs)
    return perm if free and len(perm) == rank else None


def _free(value: Value, perm: tuple[int, ...]) -> bool:
    """Tell whether the value before a transpose by perm can be had without moving a byte."""
    transpose = made_by(value, Transpose)
    if transpose is not None:
        return bool(transpose.op.perm == perm)
    if value.is_constant or value.type.numel == 1 or stored_constant(value) is not None:
        return True
    shape = (1,) * (len(perm) - value.type.rank) + value.shape
    return moves_nothing(shape, inverse(perm))


def _before(value: Value, perm: tuple[int, ...], whole: bool) -> Value | None:
    """Return the value that, transposed by perm, is `value`; scalars stay as they are."""
    transpose = made_by(value, Transpose)
    if transpose is not None and transpose.op.perm == perm:
        return transpose.inputs[0]
    if value.type.numel == 1 and not whole:
        return value if value.type.rank <= 1 else reshaped(value, (1,) * len(perm))
    full = reshaped(value, (1,) * (len(perm) - value.type.rank) + value.shape)
    back = inverse(perm)
    if full is None:
        return None
    if full.data is not None:
        data = np.ascontiguousarray(full.data.transpose(back))
        return constant(full.name, data, permuted(full.type, back))
    type_ = permuted(full.type, back)
    moved = make(
        Reshape(type_.shape) if moves_nothing(full.shape, back) else Transpose(back),
        full,
        like=full,
        origin=(),
        type_=type_,
        perm=back,
    )
    if stored_constant(full) is not None and moved.producer is not None:
        return move_above_dequantize(moved.producer, {})
    return moved


def _one_sided(node: Node) -> bool:
    """Tell whether only some of the operands that matter are transposed."""
    if not isinstance(node.op, (Elementwise, Concat)) or len(node.outputs) != 1:
        return False
    perms = {n.op.perm for v in node.inputs if (n := made_by(v, Transpose)) is not None}
    return bool(perms) and _common_perm(node) is None


def _forced(target: Node) -> Rule:
    def transpose_other_operands(node: Node, uses: Uses) -> Value | None:
        """A node of which one operand is transposed transposes the others instead."""
        if node is not target:
            return None
        perms = [n.op.perm for v in node.inputs if (n := made_by(v, Transpose)) is not None]
        perm = next((p for p in perms if len(p) == len(node.types[0].shape)), None)
        return None if perm is None else _below(node, perm)

    return transpose_other_operands


LAYOUT_RULES: tuple[Rule, ...] = (
    *IDENTITY_RULES,
    below_one_input,
    below_many_inputs,
    into_dense,
    out_of_dense,
    below_reshape,
    flatten_below,
    *FOLDING_RULES,
)
