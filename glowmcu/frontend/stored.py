"""In ONNX a quantized tensor is plain integers: only operators that say so read its meaning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from glowmcu.graph.graph import Value, apply
from glowmcu.ops.onnx_node import OnnxNode
from glowmcu.ops.quant import AsQuant, Dequantize

_SAME_EITHER_WAY = frozenset({"MaxPool", "GlobalMaxPool"})
"""Operators that only compare: the same result on stored integers and on what they mean."""


def misread(node: OnnxNode, results: Sequence[Value]) -> bool:
    """Tell whether an importer used an input by its meaning where ONNX means its integers.

    QuantizeLinear annotates its result; a node of the graph that is not raw then computes with
    real numbers, which is right for what follows DequantizeLinear or is a QLinear operator only.
    """
    quantized = {v for v in node.inputs if v is not None and v.type.quant is not None}
    if not quantized or node.op_type in _SAME_EITHER_WAY or node.op_type.startswith("QLinear"):
        return False
    seen: set[Value] = {v for v in node.inputs if v is not None}
    stack = list(results)
    while stack:
        value = stack.pop()
        if value in seen or value.producer is None:
            continue
        seen.add(value)
        made = value.producer
        reads_meaning = not made.op.raw and not isinstance(made.op, Dequantize)
        if reads_meaning and not quantized.isdisjoint(made.inputs):
            return True
        stack.extend(v for v in made.inputs if v is not None)
    return False


def plain(node: OnnxNode) -> OnnxNode:
    """Return the node with inputs that are plain integers."""
    inputs = tuple(v if v is None or v.type.quant is None else _plain(node, v) for v in node.inputs)
    return replace(node, inputs=inputs, used=set())


def _plain(node: OnnxNode, value: Value) -> Value:
    name = f"{value.name}.integers"
    return apply(AsQuant(None), value, name=name, origin=(node.label,)).output
