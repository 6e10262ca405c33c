"""Layers of float64 become layers of float32 before a network is quantized."""

from __future__ import annotations

from glowmcu.core import dtypes
from glowmcu.core.types import TensorType
from glowmcu.graph.graph import Graph, Node, Value
from glowmcu.graph.rewrite import rewrite
from glowmcu.ops.cast import Cast
from glowmcu.ops.conv import Conv2D
from glowmcu.ops.dense import Dense
from glowmcu.ops.matmul import MatMul
from glowmcu.ops.softmax import Softmax
from glowmcu.passes.match import Uses, make


def single_precision(graph: Graph) -> Graph:
    """Return the graph with its layers of float64 computed in float32, which int8 can stand for."""
    return rewrite(graph, (_in_float32,))


def _in_float32(node: Node, _uses: Uses) -> Value | None:
    if not isinstance(node.op, (Conv2D, Dense, MatMul, Softmax)):
        return None
    y = node.output
    if y.type.dtype is not dtypes.F64:
        return None
    inputs = [
        v and make(Cast(dtypes.F32), v, like=v, origin=(), name=f"{v.name}.f32")
        for v in node.inputs
    ]
    type_ = TensorType(dtypes.F32, y.shape)
    result = make(node.op, *inputs, like=y, origin=node.origin, type_=type_, name=f"{y.name}.f32")
    return make(Cast(dtypes.F64), result, like=y, origin=node.origin, type_=y.type)
