"""Permutations of axes, of types, and of the nodes around a transpose."""

from __future__ import annotations

from dataclasses import replace

from glowmcu.core.types import TensorType
from glowmcu.graph.graph import Node, Value, constant
from glowmcu.ops.reshape import Reshape
from glowmcu.ops.transpose import Transpose
from glowmcu.passes.fold import move_above_dequantize
from glowmcu.passes.match import make, stored_constant


def inverse(perm: tuple[int, ...]) -> tuple[int, ...]:
    """Return the permutation that undoes `perm`."""
    return tuple(perm.index(i) for i in range(len(perm)))


def permuted(type_: TensorType, perm: tuple[int, ...]) -> TensorType:
    """Return the type of a transposed tensor; a quantization axis moves along."""
    quant = type_.quant
    if quant is not None and quant.axis is not None:
        quant = replace(quant, axis=perm.index(quant.axis))
    return TensorType(type_.dtype, tuple(type_.shape[i] for i in perm), quant)


def sunk(node: Node, op: object, inputs: list[Value | None], perm: tuple[int, ...]) -> Value:
    """Return Transpose(perm) of `op` on inputs from above the transpose, in place of the node."""
    y = node.output
    back = inverse(perm)
    above = make(op, *inputs, like=y, origin=node.origin, type_=permuted(y.type, back), perm=back)
    return make(Transpose(perm), above, like=y, origin=node.origin, type_=y.type)


def reshaped(value: Value, shape: tuple[int, ...]) -> Value | None:
    """Return the value under another shape; constants, dequantized ones too, offline."""
    if value.shape == shape:
        return value
    if value.type.quant is not None and value.type.quant.axis is not None:
        return None
    type_ = value.type.with_shape(shape)
    if value.data is not None:
        return constant(value.name, value.data.reshape(shape), type_)
    made = make(Reshape(shape), value, like=value, origin=(), type_=type_, name=f"{value.name}.r")
    if stored_constant(value) is not None and made.producer is not None:
        return move_above_dequantize(made.producer, {})
    return made
