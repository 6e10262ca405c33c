"""Stable text and DOT dumps of a graph: one line a node."""

from __future__ import annotations

from glowmcu.graph.graph import Graph, Value, body_of


def _numbered(graph: Graph) -> dict[Value, str]:
    names = {v: f"%{v.name}" for v in graph.inputs}
    constants = 0
    for number, node in enumerate(graph.nodes()):
        for value in node.inputs:
            if value is not None and value not in names:
                names[value] = f"%c{constants}"
                constants += 1
        for i, value in enumerate(node.outputs):
            names[value] = f"%{number}" + (f".{i}" if i else "")
    for value in graph.outputs:
        names.setdefault(value, f"%{value.name}")
    return names


def dump(graph: Graph) -> str:
    """Return the graph as text: inputs, constants where first read, nodes, outputs."""
    names = _numbered(graph)
    lines = [f"graph {graph.name}"]
    lines += [f"  input  {names[v]}: {v.type}" for v in graph.inputs]
    shown: set[Value] = set(graph.inputs)
    for node in graph.nodes():
        for value in node.inputs:
            if value is not None and value.data is not None and value not in shown:
                shown.add(value)
                short = f" = {value.data.tolist()}" if value.data.size <= 4 else ""
                lines.append(f"  const  {names[value]}: {value.type} '{value.name}'{short}")
        outputs = ", ".join(f"{names[v]}: {v.type}" for v in node.outputs)
        inputs = ", ".join("-" if v is None else names[v] for v in node.inputs)
        lines.append(f"  {outputs} = {node.op!r}({inputs})  // {node.outputs[0].name}")
        body = body_of(node)
        if body is not None:
            lines += ["    " + line for line in dump(body).split("\n")]
    lines += [
        f"  output {names[v]}: {v.type} '{n}'"
        for v, n in zip(graph.outputs, graph.output_names, strict=True)
    ]
    return "\n".join(lines)


def dot(graph: Graph) -> str:
    """Return the graph in the DOT language of Graphviz."""
    names = _numbered(graph)

    def quoted(*lines: str) -> str:
        escaped = (line.replace("\\", "\\\\").replace('"', '\\"') for line in lines)
        return '"' + "\\n".join(escaped) + '"'

    lines = [f"digraph {quoted(graph.name)} {{", "  node [shape=box, fontname=monospace];"]
    for value in graph.inputs:
        lines.append(f"  {quoted(names[value])} [label={quoted(f'{value.name}: {value.type}')}];")
    for node in graph.nodes():
        here = quoted(names[node.outputs[0]])
        lines.append(f"  {here} [label={quoted(repr(node.op), *map(str, node.types))}];")
        for operand in node.inputs:
            if operand is not None and operand.data is None:
                source = operand.producer.outputs[0] if operand.producer else operand
                lines.append(f"  {quoted(names[source])} -> {here};")
    return "\n".join([*lines, "}"])
