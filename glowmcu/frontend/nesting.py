"""How deep loops are nested: what walks over their turns takes twice as long for every level."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import onnx

from glowmcu.errors import UnsupportedError
from glowmcu.frontend.functions import FunctionKey
from glowmcu.frontend.read import domain_of

MAX_LOOPS = 8
"""Loops inside of one another; networks have two or three."""
_MAX_CALLS = 64
"""Functions inside of one another that are looked into; the importer refuses more."""


def check_loops(graph: onnx.GraphProto, local: Mapping[FunctionKey, onnx.FunctionProto]) -> None:
    """Raise UnsupportedError where loops are nested too deep."""
    depth = _Nesting(local).of(graph.node, 0)
    if depth > MAX_LOOPS:
        raise UnsupportedError(
            f"Loop and Scan are nested {depth} deep",
            why=f"more than {MAX_LOOPS} loops inside of one another are not compiled",
            hint="make one loop of several, over the product of their trip counts",
        )


@dataclass(frozen=True)
class _Nesting:
    """The functions of a model, and how deep loops are nested in those that were seen."""

    local: Mapping[FunctionKey, onnx.FunctionProto]
    known: dict[FunctionKey, int] = field(default_factory=dict)

    def of(self, nodes: Iterable[onnx.NodeProto], calls: int) -> int:
        """Return how many loops lie inside of one another."""
        return max((self._of_node(node, calls) for node in nodes), default=0)

    def _of_node(self, node: onnx.NodeProto, calls: int) -> int:
        domain = domain_of(node.domain)
        key = (domain, node.op_type, node.overload)
        if key in self.local:
            if key not in self.known and calls < _MAX_CALLS:
                self.known[key] = 0  # a function that calls itself is refused elsewhere
                self.known[key] = self.of(self.local[key].node, calls + 1)
            return self.known.get(key, 0)
        own = int(not domain and node.op_type in ("Loop", "Scan"))
        graphs = (
            g for a in node.attribute for g in ((a.g, *a.graphs) if a.HasField("g") else a.graphs)
        )
        return max((own + self.of(graph.node, calls) for graph in graphs), default=0)
