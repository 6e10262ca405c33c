"""Transposes and reshapes: which of the two can go first, and flattening before dense layers."""

from __future__ import annotations

import math

import numpy as np

from glowmcu.core.types import Array, Quant
from glowmcu.graph.graph import Node, Value, constant
from glowmcu.ops.dense import Dense
from glowmcu.ops.elementwise import Elementwise
from glowmcu.ops.quant import AsQuant, Dequantize, Quantize
from glowmcu.ops.reshape import Reshape
from glowmcu.ops.transpose import Transpose, moves_nothing
from glowmcu.passes.match import Uses, made_by, make, merged_origin, single, stored_constant
from glowmcu.passes.permute import inverse, permuted, reshaped, sunk


def below_reshape(node: Node, uses: Uses) -> Value | None:
    """A reshape that splits and merges axes which the transpose keeps together goes first."""
    return _below_reshape(node, partly=False)


def partly_below_reshape(node: Node, uses: Uses) -> Value | None:
    """Of a transpose the part that moves whole groups of axes goes below the reshape."""
    return _below_reshape(node, partly=True)


def _below_reshape(node: Node, partly: bool) -> Value | None:
    transpose = made_by(node.inputs[0], Transpose) if isinstance(node.op, Reshape) else None
    if transpose is None or transpose.inputs[0] is None:
        return None
    x, y, perm = transpose.inputs[0], node.output, transpose.op.perm
    if x.type.quant is not None and x.type.quant.axis is not None:
        return None
    groups = _groups(tuple(x.shape[i] for i in perm), y.shape)
    places = (
        [] if groups is None else [_place([perm[i] for i in old], x.shape) for old, _ in groups]
    )
    if groups is None or None in places:
        return None
    order = sorted(range(len(groups)), key=lambda g: places[g] or 0)
    inner = tuple(perm[i] for g in order for i in groups[g][0])
    after = [axis for g in order for axis in groups[g][1]]
    outer = tuple(after.index(axis) for axis in range(len(after)))
    straight = moves_nothing(x.shape, inner)
    if outer == tuple(range(len(outer))):
        flat = make(Reshape(y.shape), x, like=y, origin=node.origin, type_=y.type)
        return flat if straight else None
    if not straight and not partly:
        return None
    if not straight:
        type_ = permuted(x.type, inner)
        x = make(Transpose(inner), x, like=x, origin=transpose.origin, type_=type_, perm=inner)
    return sunk(node, Reshape(tuple(y.shape[axis] for axis in after)), [x], outer)


def _place(axes: list[int], shape: tuple[int, ...]) -> int | None:
    """Return where a group of axes begins; None where other axes lie between them."""
    long = sorted(axis for axis in axes if shape[axis] != 1)
    if not long:
        return min(axes, default=-1)
    between = set(range(long[0], long[-1])) - set(long)
    return None if any(shape[axis] != 1 for axis in between) else long[0]


def _groups(old: tuple[int, ...], new: tuple[int, ...]) -> list[tuple[list[int], list[int]]] | None:
    """Split two shapes of equal size into the shortest runs of axes with equal products."""
    if 0 in old:
        return None
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(old) or j < len(new):
        left, right = [i] if i < len(old) else [], [j] if j < len(new) else []
        i, j = i + len(left), j + len(right)
        while math.prod(old[a] for a in left) != math.prod(new[a] for a in right):
            if math.prod(old[a] for a in left) < math.prod(new[a] for a in right):
                left.append(i)
                i += 1
            else:
                right.append(j)
                j += 1
        groups.append((left, right))
    return groups


def flatten_below(node: Node, uses: Uses) -> Value | None:
    """A function of single elements goes before a reshape of a transpose that it cannot pass."""
    reshape = made_by(node.inputs[0], Reshape) if node.inputs else None
    if reshape is None or made_by(reshape.inputs[0], Transpose) is None:
        return None
    if not isinstance(node.op, (Elementwise, Quantize, Dequantize, AsQuant)):
        return None
    x, y = reshape.inputs[0], node.output
    if any(v is not None and v.type.numel != 1 for v in node.inputs[1:]) or x is None:
        return None
    if y.shape != reshape.types[0].shape or any(
        t.quant is not None and t.quant.axis is not None for t in (x.type, y.type)
    ):
        return None
    rest = [v if v is None or v.type.rank <= 1 else reshaped(v, (1,)) for v in node.inputs[1:]]
    moved = make(
        node.op,
        x,
        *rest,
        like=y,
        origin=node.origin,
        type_=y.type.with_shape(x.shape),
        name=f"{y.name}.unflattened",
    )
    return make(reshape.op, moved, like=y, origin=reshape.origin, type_=y.type)


def into_dense(node: Node, uses: Uses) -> Value | None:
    """Dense(flatten(transpose(x))) is Dense(flatten(x)) with the weights' columns in x's order."""
    if not isinstance(node.op, Dense):
        return None
    flatten = made_by(node.inputs[0], Reshape)
    transpose = made_by(None if flatten is None else flatten.inputs[0], Transpose)
    weights = node.inputs[1]
    if flatten is None or transpose is None or transpose.inputs[0] is None or weights is None:
        return None
    x, perm, flat = transpose.inputs[0], transpose.op.perm, flatten.output
    inner = tuple(x.shape[i] for i in perm)
    lead = next((k for k in range(len(perm)) if math.prod(inner[k:]) == flat.shape[-1]), None)
    if lead is None or perm[:lead] != tuple(range(lead)):
        return None
    back = inverse(tuple(p - lead for p in perm[lead:]))
    order = np.arange(flat.shape[-1]).reshape(inner[lead:]).transpose(back).reshape(-1)
    moved = _columns(weights, order)
    if moved is None:
        return None
    straight = make(
        Reshape(flat.shape),
        x,
        like=flat,
        origin=flatten.origin,
        type_=flat.type,
        name=flat.name if moves_nothing(x.shape, perm) else f"{x.name}.flat",
    )
    origin = merged_origin(transpose, flatten, node)
    y = node.output
    return make(node.op, straight, moved, *node.inputs[2:], like=y, origin=origin, type_=y.type)


def out_of_dense(node: Node, uses: Uses) -> Value | None:
    """transpose(unflatten(Dense(x))) is unflatten(Dense(x)) with rows of the weights reordered."""
    unflatten = made_by(node.inputs[0], Reshape) if isinstance(node.op, Transpose) else None
    dense = made_by(None if unflatten is None else unflatten.inputs[0], Dense)
    if unflatten is None or dense is None or dense.types[0].quant is not None:
        return None
    if not (single(unflatten.output, uses) and single(dense.output, uses)):
        return None
    perm, inner, rows = node.op.perm, unflatten.types[0].shape, dense.types[0].shape[-1]
    lead = next((k for k in range(len(inner)) if math.prod(inner[k:]) == rows), None)
    if lead is None or perm[:lead] != tuple(range(lead)):
        return None
    within = tuple(p - lead for p in perm[lead:])
    order = np.arange(rows).reshape(inner[lead:]).transpose(within).reshape(-1)
    x, *constants = dense.inputs
    moved = [None if v is None else _rows(v, order) for v in constants]
    if any(new is None and old is not None for new, old in zip(moved, constants, strict=True)):
        return None
    y, flat = node.output, dense.output
    origin = merged_origin(dense, unflatten, node)
    other = make(
        dense.op, x, *moved, like=flat, origin=origin, type_=flat.type, name=f"{y.name}.flat"
    )
    return make(Reshape(y.shape), other, like=y, origin=node.origin, type_=y.type)


def _rows(value: Value, order: Array) -> Value | None:
    """Return constant weights or a bias, also dequantized ones, with rows in another order."""
    stored = stored_constant(value)
    source = value if stored is None else stored
    if source.data is None:
        return None
    type_ = source.type
    if type_.quant is not None and type_.quant.axis is not None:
        if type_.quant.axis != 0:
            return None
        scale, zero = (
            tuple(t[i] for i in order) for t in (type_.quant.scale, type_.quant.zero_point)
        )
        type_ = type_.with_quant(Quant(scale, zero, 0))
    return _same_meaning(value, stored, constant(source.name, source.data[order], type_))


def _columns(weights: Value, order: Array) -> Value | None:
    """Return constant weights [N, K], also dequantized ones, with columns in another order."""
    stored = stored_constant(weights)
    source = weights if stored is None else stored
    if source.data is None or (source.type.quant and source.type.quant.axis == 1):
        return None
    data = np.ascontiguousarray(source.data[:, order])
    return _same_meaning(weights, stored, constant(source.name, data, source.type))


def _same_meaning(old: Value, stored: Value | None, new: Value) -> Value:
    """Return the reordered constant, dequantized where the old one was."""
    if stored is None:
        return new
    name = f"{old.name}.reordered"
    return make(Dequantize(), new, like=old, origin=(), type_=old.type, name=name)
