"""Control flow: If on a constant is one branch, at run time both branches and a choice."""

from __future__ import annotations

import onnx

from glowmcu.errors import InvalidModelError
from glowmcu.frontend.choice import Importing, chosen
from glowmcu.frontend.loops import import_loop
from glowmcu.frontend.scans import import_scan
from glowmcu.frontend.scope import Scope
from glowmcu.graph.graph import Value
from glowmcu.ops.onnx_node import OnnxNode

NAMES = {
    "If": "One branch where the condition is known when compiling. Else both, of one type; the C "
    "code skips the layers that only the branch not taken needs.",
    "Loop": "A loop in C, which may end by a condition and by a trip count known at run time, of "
    "which the most must be known when compiling (a constant, Min with one, a small type). Few "
    "iterations, and those whose values change their shapes, become layers of their own.",
    "Scan": "A loop in C over sequences of known length. Few steps become layers of their own.",
}
"""The operators with bodies, and what is supported of them."""


def import_control(
    node: onnx.NodeProto, scope: Scope, seen: OnnxNode, importing: Importing
) -> tuple[Value | None, ...]:
    """Return the outputs of a control-flow node."""
    if node.op_type == "Loop":
        return import_loop(node, scope, seen, importing)
    if node.op_type == "Scan":
        return import_scan(node, scope, seen, importing)
    condition = seen.value(0)
    if condition.type.numel != 1:
        seen.fail(f"the condition has {condition.type.numel} elements instead of one")
    if condition.data is not None:
        name = "then_branch" if condition.data.item() else "else_branch"
        return _outputs(node, scope, seen, name, importing, "")
    then = _outputs(node, scope, seen, "then_branch", importing, "then")
    otherwise = _outputs(node, scope, seen, "else_branch", importing, "else")
    return tuple(
        chosen(seen, seen.output_names[i] if i < len(seen.output_names) else "", condition, a, b)
        for i, (a, b) in enumerate(zip(then, otherwise, strict=True))
    )


def _outputs(
    node: onnx.NodeProto, scope: Scope, seen: OnnxNode, name: str, importing: Importing, suffix: str
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
    importing.body(graph, inner, f"{name} of node '{seen.label}'")
    return tuple(inner.value(o) for o in outputs)
