"""The precision of every layer: int8, int16 activations, or float; chosen by the user's names."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase

from glowmcu.errors import OptionError
from glowmcu.graph.graph import Graph, Node
from glowmcu.options import Precision
from glowmcu.quantize.settings import Settings

Plan = Mapping[Node, Precision]
"""The precision of every node that computes; weights are int8 except where it is float."""


def named_plan(graph: Graph, settings: Settings) -> dict[Node, Precision]:
    """Return the settings' precision for every node, and those of the layers kept by name."""
    plan: dict[Node, Precision] = dict.fromkeys(graph.nodes(), settings.precision)
    chosen: tuple[tuple[Precision, tuple[str, ...]], ...] = (
        ("int16", settings.keep_int16),
        ("float", settings.keep_float),
    )
    for precision, patterns in chosen:
        plan.update(dict.fromkeys(_named(graph, patterns, precision), precision))
    return plan


def _named(graph: Graph, patterns: tuple[str, ...], precision: Precision) -> set[Node]:
    """Return the nodes with these names, of the ONNX node or of what it makes."""
    found: set[Node] = set()
    for pattern in patterns:
        nodes = {
            node
            for node in graph.nodes()
            if any(fnmatchcase(name, pattern) for name in (*node.origin, *node.names))
        }
        if not nodes:
            names = [name for node in graph.nodes() for name in (*node.origin, *node.names)]
            near = get_close_matches(pattern, names, 3) or names[:3]
            raise OptionError(
                f"there is no layer '{pattern}' to keep in {precision}",
                hint=f"layers have names like {', '.join(near)}" if near else "",
            )
        found |= nodes
    return found
