"""Function bodies of operators that ONNX defines in words only: other operators for known shapes.

Every module registers bodies; there is no list to edit.
"""

from __future__ import annotations

import importlib
import pkgutil

import onnx

from glowmcu.frontend.bodies.body import BODIES, Body
from glowmcu.ops.onnx_node import OnnxNode

__all__ = ["BODIES", "has_own_body", "own_body"]

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")


def has_own_body(node: OnnxNode) -> bool:
    """Tell whether there is a body for an operator."""
    return (node.domain, node.op_type) in BODIES


def own_body(node: OnnxNode) -> onnx.FunctionProto | None:
    """Return the definition of a node by other operators; raise UnsupportedError if it has none
    for its attributes and types, None if there is none for its operator or on constants.
    """
    make = BODIES.get((node.domain, node.op_type))
    if make is None:
        return None
    body = Body(node)
    results = make(body, node)
    if results is None:
        return None
    return body.function(results if isinstance(results, tuple) else (results,))
