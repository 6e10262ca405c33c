"""Control flow: If on a constant is one branch, at run time both branches and a choice."""

from __future__ import annotations

from collections.abc import Callable

import onnx

from glowmcu.errors import InvalidModelError
from glowmcu.frontend.scope import Scope
from glowmcu.graph.graph import Value
from glowmcu.ops.base import IMPORTERS
from glowmcu.ops.onnx_node import OnnxNode

Branch = Callable[[onnx.GraphProto, Scope, str], None]
"""Imports a branch's initializers and nodes into its scope."""
NAMES = frozenset({"If", "Loop", "Scan"})
_WHERE_OPSET = 16


def import_control(
    node: onnx.NodeProto, scope: Scope, seen: OnnxNode, branch: Branch
) -> tuple[Value | None, ...]:
    """Return the outputs of a control-flow node; Loop and Scan are refused."""
    if node.op_type != "If":
        seen.fail(
            "loops are not supported",
            why="the C code computes the same nodes once in every run",
            hint="unroll the loop when exporting",
        )
    condition = seen.value(0)
    if condition.type.numel != 1:
        seen.fail(f"the condition has {condition.type.numel} elements instead of one")
    if condition.data is not None:
        name = "then_branch" if condition.data.item() else "else_branch"
        return _outputs(node, scope, seen, name, branch, "")
    then = _outputs(node, scope, seen, "then_branch", branch, "then")
    otherwise = _outputs(node, scope, seen, "else_branch", branch, "else")
    return tuple(
        _chosen(seen, i, condition, a, b)
        for i, (a, b) in enumerate(zip(then, otherwise, strict=True))
    )


def _outputs(
    node: onnx.NodeProto, scope: Scope, seen: OnnxNode, name: str, branch: Branch, suffix: str
) -> tuple[Value | None, ...]:
    """Import one branch. A suffix keeps the names of two branches apart."""
    graph = seen.attr(name)
    outputs = [o.name for o in graph.output]
    if len(outputs) != len(node.output):
        raise InvalidModelError(
            f"the {name} of If has {len(outputs)} outputs, the node {len(node.output)}",
            where=f"node '{seen.label}'",
        )
    inner = Scope(
        opsets=scope.opsets,
        attributes=scope.attributes,
        prefix=f"{seen.label}/{suffix}/" if suffix else scope.prefix,
        results={}
        if suffix
        else {i: scope.tensor_name(o) for i, o in zip(outputs, node.output, strict=True) if o},
        outer=scope,
        calls=scope.calls,
    )
    branch(graph, inner, f"{name} of node '{seen.label}'")
    return tuple(inner.value(o) for o in outputs)


def _chosen(
    seen: OnnxNode, index: int, condition: Value, a: Value | None, b: Value | None
) -> Value | None:
    name = seen.output_names[index] if index < len(seen.output_names) else ""
    if a is None or b is None or not name:
        return None
    where = IMPORTERS.get(("", "Where"))
    if where is None or a.type != b.type or condition.type.rank > a.type.rank:
        seen.fail(
            "the branches of a condition known at run time only give different types",
            why=f"'{name}' is {a.type} or {b.type}",
            hint="make the condition a constant when exporting",
        )
    choice = OnnxNode("Where", seen.label, _WHERE_OPSET, (condition, a, b), (name,), {})
    value: Value = where(choice)
    return value
