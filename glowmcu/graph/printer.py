"""Stable text and DOT dumps of a graph: one line a node."""

from __future__ import annotations

from glowmcu.graph.graph import Graph, Value


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
    lines += [
        f"  output {names[v]}: {v.type} '{n}'"
        for v, n in zip(graph.outputs, graph.output_names, strict=True)
    ]
    return "\n".join(lines)


def dot(graph: Graph) -> str:
    """Return the graph in the DOT language of Graphviz."""
    names = _numbered(graph)

    def label(text: str) -> str:
        return text.replace("\\", "\\\\").replace('"', '\\"')

    lines = [f'digraph "{label(graph.name)}" {{', "  node [shape=box, fontname=monospace];"]
    for value in graph.inputs:
        lines.append(f'  "{names[value]}" [label="{label(f"{value.name}: {value.type}")}"];')
    for node in graph.nodes():
        text = f"{node.op!r}\\n" + "\\n".join(str(t) for t in node.types)
        lines.append(
            f'  "{names[node.outputs[0]]}" [label="{label(text)}"];'.replace("\\\\n", "\\n")
        )
        for value in node.inputs:
            if value is not None and value.data is None:
                source = value.producer.outputs[0] if value.producer else value
                lines.append(f'  "{names[source]}" -> "{names[node.outputs[0]]}";')
    return "\n".join([*lines, "}"])
