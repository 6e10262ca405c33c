"""Importers of ONNX's reductions."""

from __future__ import annotations

from glowmcu.core.dtypes import DType
from glowmcu.graph.graph import Value
from glowmcu.ops.base import onnx_op
from glowmcu.ops.onnx_node import OnnxNode
from glowmcu.ops.reduce import Reduce

KINDS = {
    "ReduceSum": "sum",
    "ReduceMean": "mean",
    "ReduceMax": "max",
    "ReduceMin": "min",
    "ReduceProd": "prod",
    "ReduceL1": "l1",
    "ReduceL2": "l2",
    "ReduceSumSquare": "sum_square",
    "ReduceLogSum": "log_sum",
    "ReduceLogSumExp": "log_sum_exp",
}
_REAL_ONLY = ("l2", "log_sum", "log_sum_exp")


@onnx_op(*KINDS)
def import_reduce(node: OnnxNode) -> Value:
    """Axes as input or attribute; without axes over all of them, or none if so asked."""
    x = node.value(0)
    kind = KINDS[node.op_type]
    axes = node.ints(1, "axes")
    keep = bool(node.attr("keepdims", 1))
    reduces_nothing = bool(node.attr("noop_with_empty_axes", 0))
    _require_type(node, x.type.dtype, kind in _REAL_ONLY)
    if not axes:
        axes = () if reduces_nothing else tuple(range(x.type.rank))
    return node.apply(Reduce(kind, _normalised(node, axes, x), keep), x).output


@onnx_op("ArgMax", "ArgMin")
def import_arg(node: OnnxNode) -> Value:
    """The first index of the extreme, or the last one; int64."""
    x = node.value(0)
    axes = _normalised(node, (int(node.attr("axis", 0)),), x)
    keep, last = bool(node.attr("keepdims", 1)), bool(node.attr("select_last_index", 0))
    _require_type(node, x.type.dtype, False)
    return node.apply(Reduce(node.op_type.lower(), axes, keep, last), x).output


def _normalised(node: OnnxNode, axes: tuple[int, ...], x: Value) -> tuple[int, ...]:
    rank = x.type.rank
    if any(not -rank <= a < rank for a in axes):
        node.fail(f"axes {axes} do not fit {x.type}")
    return tuple(sorted({a % rank for a in axes}))


def _require_type(node: OnnxNode, dtype: DType, real: bool) -> None:
    if (dtype.bits == 16 and dtype.is_float) or (real and not dtype.is_float):
        node.fail(f"elements of type {dtype}", hint="convert the model to float32")
