"""Function bodies: model-local functions, and ONNX's own definition of operators without a card."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx
from google.protobuf.message import DecodeError

from glowmcu.errors import InvalidModelError
from glowmcu.frontend.read import domain_of
from glowmcu.frontend.signature import type_proto
from glowmcu.graph.graph import Value

FunctionKey = tuple[str, str, str]
"""Domain, name, overload."""


def local_functions(model: onnx.ModelProto) -> dict[FunctionKey, onnx.FunctionProto]:
    """Return the functions that a model brings along."""
    found: dict[FunctionKey, onnx.FunctionProto] = {}
    for function in model.functions:
        key = (domain_of(function.domain), function.name, function.overload)
        if key in found:
            raise InvalidModelError(f"function '{function.domain}.{function.name}' exists twice")
        found[key] = function
    return found


def has_body(schema: Any) -> bool:
    """Tell whether ONNX defines an operator by other operators (onnx's stubs lack these names)."""
    return schema is not None and (schema.has_function or schema.has_context_dependent_function)


def schema_body(
    schema: Any,
    node: onnx.NodeProto,
    inputs: tuple[Value | None, ...],
    opset: int,
) -> onnx.FunctionProto | None:
    """Return ONNX's definition of an operator by other operators, None if it has none."""
    if not has_body(schema):
        return None
    version = _newest(schema.function_opset_versions, opset)
    if version is not None:
        return _function(schema.get_function_with_opset_version(version))
    version = _newest(schema.context_dependent_function_opset_versions, opset)
    if version is None:
        return None
    types = [
        (onnx.TypeProto() if v is None else type_proto(v.type)).SerializeToString() for v in inputs
    ]
    try:
        data = schema.get_context_dependent_function_with_opset_version(
            version, node.SerializeToString(), types
        )
    except (RuntimeError, ValueError):
        return None
    return _function(data)


def _newest(versions: list[int], opset: int) -> int | None:
    """Return the newest version not above `opset`; an older opset takes the oldest body."""
    fitting = [v for v in versions if v <= opset]
    return max(fitting, default=min(versions, default=None))


def _function(data: bytes) -> onnx.FunctionProto | None:
    function = onnx.FunctionProto()
    try:
        function.ParseFromString(data)
    except DecodeError:
        return None
    return function if function.node else None


def actual_attributes(
    function: onnx.FunctionProto, node: onnx.NodeProto, schema: Any
) -> Mapping[str, onnx.AttributeProto]:
    """Return the attributes that a body sees: defaults of the function, then those of the call."""
    found: dict[str, onnx.AttributeProto] = {}
    if schema is not None:
        found = {n: a.default_value for n, a in schema.attributes.items() if a.default_value.name}
    found |= {a.name: a for a in function.attribute_proto}
    found |= {a.name: a for a in node.attribute}
    return found
