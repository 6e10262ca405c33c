"""What a well-formed graph is; a failure is a fault in glowmcu, not in the model."""

from __future__ import annotations

from glowmcu.core.passes import IllFormedError
from glowmcu.graph.graph import Graph, Node, Value, body_of


def verify(graph: Graph) -> None:
    """Raise IllFormedError when a rule of the graph IR does not hold."""
    known = set(graph.inputs)
    _check(len(known) == len(graph.inputs), "an input is listed twice")
    _check(
        len(graph.outputs) == len(graph.output_names), "outputs and their names differ in number"
    )
    for value in graph.inputs:
        _check(value.producer is None and value.data is None, f"input {value.name} is not free")
    for node in graph.nodes():
        for operand in node.inputs:
            if operand is not None and operand not in known:
                _verify_constant(operand, node)
        known.update(node.outputs)
        _verify_types(node)
        body = body_of(node)
        if body is not None:
            verify(body)
    for value in graph.outputs:
        _check(value in known or value.data is not None, f"output {value.name} is not defined")


def _verify_constant(value: Value, node: Node) -> None:
    if value.data is None:
        raise IllFormedError(f"{node.name} reads {value.name}, which nothing defines")
    _check(value.data.shape == value.shape, f"constant {value.name}: data has another shape")
    _check(
        value.data.dtype == value.type.dtype.numpy,
        f"constant {value.name}: data is {value.data.dtype}, type says {value.type}",
    )


def _verify_types(node: Node) -> None:
    types = tuple(
        None if v is None else v.type if node.op.raw else v.type.real() for v in node.inputs
    )
    found = node.op.infer(*types)
    expected = found if isinstance(found, tuple) else (found,)
    for want, have in zip(expected, node.types, strict=True):
        if not node.op.raw:
            have = have.real()
        _check(
            want.shape == have.shape and want.dtype == have.dtype,
            f"{type(node.op).__name__} '{node.name}': inferred {want}, node says {have}",
        )


def _check(condition: bool, message: str) -> None:
    if not condition:
        raise IllFormedError(message)
