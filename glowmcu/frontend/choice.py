"""What the imports of If, Loop and Scan share: their bodies, and a choice made at run time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

import onnx

from glowmcu.errors import GlowmcuError
from glowmcu.frontend.scope import Scope
from glowmcu.graph.graph import Value
from glowmcu.ops.base import IMPORTERS
from glowmcu.ops.onnx_node import OnnxNode

T = TypeVar("T")


class Importing(Protocol):
    """What the imports of bodies need of the importer."""

    def body(self, graph: onnx.GraphProto, scope: Scope, where: str) -> None:
        """Import a body's initializers and nodes into its scope."""

    def declare(self, value: Value) -> None:
        """Make a value known that no node computes: an input of a body."""

    def attempt(self, run: Callable[[], T]) -> T | Refused:
        """Return what `run` does, or why it cannot: that is not reported then."""


@dataclass(frozen=True)
class Refused:
    """What kept something from being imported."""

    error: GlowmcuError


_OPSET = 16


def chosen(
    seen: OnnxNode, name: str, condition: Value, a: Value | None, b: Value | None
) -> Value | None:
    """Return a where the condition (one element) holds, else b; None where either is missing."""
    if a is None or b is None or not name:
        return None
    if a is b:
        return a
    if a.type != b.type or condition.type.rank > a.type.rank:
        seen.fail(
            "the branches of a condition known at run time only give different types",
            why=f"'{name}' is {a.type} or {b.type}",
            hint="make the condition a constant when exporting",
        )
    return apply_importer(seen, "Where", name, condition, a, b)


def apply_importer(seen: OnnxNode, op_type: str, name: str, *inputs: Value) -> Value:
    """Import a node of another type in the place of this one, with one output of this name."""
    value: Value = IMPORTERS["", op_type](
        OnnxNode(op_type, seen.label, _OPSET, inputs, (name,), {})
    )
    return value
