"""Run a Graph with numpy. On quantized types a node dequantizes, computes in float, quantizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from glowmcu.core.types import Array, dequantize, quantize
from glowmcu.graph.graph import Graph, Node, Value


def evaluate_node(node: Node, arrays: list[Array | None]) -> tuple[Array, ...]:
    """Run one node; `arrays` are the stored values of its inputs."""
    if not node.op.raw:
        arrays = [
            a if a is None or v is None or v.type.quant is None else dequantize(a, v.type.quant)
            for a, v in zip(arrays, node.inputs, strict=True)
        ]
    found = node.op.reference(*arrays)
    outputs: tuple[Array, ...] = found if isinstance(found, tuple) else (found,)
    if node.op.raw:
        return outputs
    return tuple(
        quantize(a, t.quant, t.dtype) if t.quant else a
        for a, t in zip(outputs, node.types, strict=True)
    )


def evaluate_all(
    graph: Graph, feeds: Mapping[str, Array], watch: Callable[[Node], None] | None = None
) -> dict[Value, Array]:
    """Return the array of every value; `feeds` maps input names to stored arrays."""
    arrays: dict[Value, Array] = {v: feeds[v.name] for v in graph.inputs}
    for value in graph.outputs:
        if value.data is not None:
            arrays[value] = value.data
    for node in graph.nodes():
        inputs = [
            None if v is None else v.data if v.data is not None else arrays[v] for v in node.inputs
        ]
        arrays.update(zip(node.outputs, evaluate_node(node, inputs), strict=True))
        if watch:
            watch(node)
    return arrays


def evaluate(graph: Graph, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """Return the graph's outputs by name."""
    arrays = evaluate_all(graph, feeds)
    return {n: arrays[v] for n, v in zip(graph.output_names, graph.outputs, strict=True)}
