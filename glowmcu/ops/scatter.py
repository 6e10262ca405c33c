"""Scatter: a copy of a tensor with elements replaced or combined at places that indices name."""

from __future__ import annotations

from typing import Any

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.types import Array, TensorType
from glowmcu.graph.graph import Value
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder
from glowmcu.ops.base import Example, Op, f32, i8, onnx_op
from glowmcu.ops.copy import Copy
from glowmcu.ops.gather import in_range
from glowmcu.ops.indexed_copy import REDUCTIONS, IndexedCopy, Terms, index_constant
from glowmcu.ops.onnx_node import OnnxNode
from glowmcu.ops.reshape import normal_axis
from glowmcu.ops.strided_copy import Ints, dense_strides


def emit_scatter(
    b: Builder,
    operands: tuple[Buffer, Buffer, Buffer],
    strides: tuple[Ints, Ints],
    terms: Terms,
    reduction: str,
) -> Buffer:
    """Emit a copy of x and the insertion; operands: x, indices, updates; strides: of y, indices."""
    x, index, updates = operands
    y = b.result()
    b.emit(Copy(y=y, x=x, bytes=x.nbytes))
    if updates.type.numel == 0:
        return y
    known = index.data is not None
    if index.data is not None:
        index = index_constant(b, index.data.reshape(-1, len(terms)), terms)
    b.emit(
        IndexedCopy(
            y=y,
            x=updates,
            index=index,
            shape=updates.type.shape,
            x_strides=dense_strides(updates.type.shape),
            y_strides=strides[0],
            index_strides=strides[1],
            terms=terms,
            known=known,
            scatter=True,
            reduction=reduction,
        )
    )
    return y


def _combined(x: Array, places: Any, updates: Array, reduction: str) -> Array:
    y = x.copy()
    if reduction == "none":
        y[places] = updates
    else:
        REDUCTIONS[reduction].at(y, places, updates)
    return y


class ScatterElements(Op):
    """y = x, then y[a, index[a, j, c], c] = updates[a, j, c], the index on dimension `axis`."""

    axis: int
    reduction: str = "none"

    def infer(self, x: TensorType, index: TensorType, updates: TensorType) -> TensorType:
        return x.with_quant(None)

    def reference(self, x: Array, index: Array, updates: Array) -> Array:
        places: list[Array] = list(np.indices(index.shape))
        places[self.axis] = in_range(index, x.shape[self.axis])
        return _combined(x, tuple(places), updates, self.reduction)

    def integer(self, inputs: Any, outputs: Any) -> bool:
        return _is_plain(inputs, outputs, self.reduction)

    def lower(self, b: Builder, x: Buffer, index: Buffer, updates: Buffer) -> Buffer:
        strides = dense_strides(x.type.shape)
        y_strides = (*strides[: self.axis], 0, *strides[self.axis + 1 :])
        terms = ((x.type.shape[self.axis], strides[self.axis]),)
        places = (y_strides, dense_strides(index.type.shape))
        return emit_scatter(b, (x, index, updates), places, terms, self.reduction)

    examples = (
        Example(
            (f32(3, 4), TensorType(dtypes.I64, (2, 4)), f32(2, 4)), {"axis": 0}, low=-3, high=3
        ),
        Example(
            (f32(2, 5), TensorType(dtypes.I64, (2, 3)), f32(2, 3)),
            {"axis": 1, "reduction": "add"},
            constants=(1,),
        ),
        Example(
            (i8(5), TensorType(dtypes.I64, (3,)), i8(3)), {"axis": 0}, output=i8(5), tolerance=0
        ),
    )


class ScatterND(Op):
    """y = x, then y[index[p..., 0], ..., index[p..., k - 1], c...] = updates[p..., c...]."""

    reduction: str = "none"

    def infer(self, x: TensorType, index: TensorType, updates: TensorType) -> TensorType:
        return x.with_quant(None)

    def reference(self, x: Array, index: Array, updates: Array) -> Array:
        found = tuple(in_range(index[..., i], x.shape[i]) for i in range(index.shape[-1]))
        return _combined(x, found, updates, self.reduction)

    def integer(self, inputs: Any, outputs: Any) -> bool:
        return _is_plain(inputs, outputs, self.reduction)

    def lower(self, b: Builder, x: Buffer, index: Buffer, updates: Buffer) -> Buffer:
        depth = index.type.shape[-1]
        strides = dense_strides(x.type.shape)
        free, rest = index.type.rank - 1, x.type.rank - depth
        y_strides = (*(0,) * free, *strides[depth:])
        i_strides = (*dense_strides(index.type.shape)[:-1], *(0,) * rest)
        terms = tuple((x.type.shape[i], strides[i]) for i in range(depth))
        return emit_scatter(b, (x, index, updates), (y_strides, i_strides), terms, self.reduction)

    examples = (
        Example((f32(4, 3, 2), TensorType(dtypes.I64, (3, 2)), f32(3, 2)), low=-3, high=3),
        Example(
            (f32(6), TensorType(dtypes.I64, (4, 1)), f32(4)), {"reduction": "max"}, low=-6, high=6
        ),
    )


def _is_plain(inputs: Any, outputs: Any, reduction: str) -> bool:
    """Tell whether elements are only moved: all of them mean the same."""
    x, y, updates = inputs[0], outputs[0], inputs[2]
    same = x.quant == y.quant == updates.quant and x.dtype == y.dtype == updates.dtype
    return bool(same and reduction == "none")


def _operands(node: OnnxNode) -> tuple[Value, Value, Value, str]:
    x, index, updates = node.value(0), node.value(1), node.value(2)
    reduction = node.attr("reduction", "none")
    if reduction not in ("none", *REDUCTIONS):
        node.fail(f"reduction '{reduction}' is not known")
    if reduction != "none" and x.type.dtype not in _NUMBERS:
        node.fail(f"reduction '{reduction}' of {x.type.dtype} is not supported")
    return x, index, updates, reduction


_NUMBERS = tuple(t for t in dtypes.ALL if t.is_integer or t in (dtypes.F32, dtypes.F64))


@onnx_op("ScatterElements", "Scatter")
def import_scatter_elements(node: OnnxNode) -> Value:
    """Constant or run-time indices; reductions none, add, mul, max, min."""
    x, index, updates, reduction = _operands(node)
    axis = normal_axis(node, node.attr("axis", 0), x.type.rank)
    op = ScatterElements(axis, reduction)
    return node.apply(op, x, index, updates).output


@onnx_op("ScatterND")
def import_scatter_nd(node: OnnxNode) -> Value:
    """Constant or run-time indices; reductions none, add, mul, max, min."""
    x, index, updates, reduction = _operands(node)
    op = ScatterND(reduction)
    return node.apply(op, x, index, updates).output
