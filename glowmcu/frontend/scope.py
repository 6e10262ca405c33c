"""Scope: the names that a graph, a branch or a function body sees, and how its nodes read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import onnx

from glowmcu.errors import InvalidModelError
from glowmcu.frontend.structure import label
from glowmcu.frontend.tensors import TensorReader
from glowmcu.graph.graph import Value


@dataclass
class Scope:
    """What the nodes of one graph, branch or function body see.

    values      by ONNX name; None: the node that makes it failed, so nothing can be said about it
    opsets      version of each domain
    attributes  of the call of the function that this is the body of
    prefix      put before the names of nodes and tensors of a function body
    results     inner names of outputs -> what the caller calls them
    outer       the scope around a branch
    calls       the functions being expanded, to find recursion
    """

    opsets: Mapping[str, int]
    values: dict[str, Value | None] = field(default_factory=dict)
    attributes: Mapping[str, onnx.AttributeProto] = field(default_factory=dict)
    prefix: str = ""
    results: Mapping[str, str] = field(default_factory=dict)
    outer: Scope | None = None
    calls: tuple[tuple[str, str, str], ...] = ()
    read: set[str] = field(default_factory=set)

    def __contains__(self, name: object) -> bool:
        return name in self.values or (self.outer is not None and name in self.outer)

    def value(self, name: str) -> Value | None:
        """Return the value of a visible name, None where its node failed."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope.outer
        raise KeyError(name)

    def tensor_name(self, name: str) -> str:
        """Return the name that a tensor of this scope has in the graph."""
        if not name:
            return ""
        return self.results.get(name, f"{self.prefix}{name}")

    def node_label(self, node: onnx.NodeProto) -> str:
        """Return the node's name in messages."""
        if node.name or not self.results:
            return f"{self.prefix}{label(node)}"
        return self.tensor_name(label(node))

    def resolved(self, node: onnx.NodeProto) -> onnx.NodeProto:
        """Return the node with references to the function's attributes replaced by their values."""
        if not any(a.ref_attr_name for a in node.attribute):
            return node
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        del copy.attribute[:]
        for attribute in node.attribute:
            actual = attribute
            if attribute.ref_attr_name:
                found = self.attributes.get(attribute.ref_attr_name)
                if found is None:
                    continue
                actual = onnx.AttributeProto()
                actual.CopyFrom(found)
                actual.name = attribute.name
            copy.attribute.append(actual)
        return copy


def attributes_of(node: onnx.NodeProto, reader: TensorReader) -> dict[str, Any]:
    """Return a node's attributes as plain Python values, tensors as arrays, graphs as protobuf."""
    found: dict[str, Any] = {}
    for attribute in node.attribute:
        if attribute.name in found:
            raise InvalidModelError(f"node '{label(node)}' has attribute '{attribute.name}' twice")
        found[attribute.name] = _plain(attribute, node, reader)
    return found


def _plain(attribute: onnx.AttributeProto, node: onnx.NodeProto, reader: TensorReader) -> Any:
    what = f"attribute '{attribute.name}' of node '{label(node)}'"
    kinds = onnx.AttributeProto
    match attribute.type:
        case kinds.INT:
            return attribute.i
        case kinds.FLOAT:
            return attribute.f
        case kinds.STRING:
            return attribute.s.decode(errors="replace")
        case kinds.INTS:
            return tuple(attribute.ints)
        case kinds.FLOATS:
            return tuple(attribute.floats)
        case kinds.STRINGS:
            return tuple(s.decode(errors="replace") for s in attribute.strings)
        case kinds.TENSOR:
            return reader.array(attribute.t, what)
        case kinds.TENSORS:
            return tuple(reader.array(t, what) for t in attribute.tensors)
        case kinds.GRAPH:
            return attribute.g
        case kinds.SPARSE_TENSOR:
            return attribute.sparse_tensor
        case kinds.GRAPHS | kinds.SPARSE_TENSORS | kinds.TYPE_PROTO | kinds.TYPE_PROTOS:
            return attribute
    raise InvalidModelError(f"{what} has no valid type (code {attribute.type})")
