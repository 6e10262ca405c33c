"""A node against ONNX's own schema: operand count, attributes and element types; output types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx
from onnx import numpy_helper
from onnx.defs import OpSchema

from glowmcu.core import dtypes
from glowmcu.core.dtypes import DType
from glowmcu.core.types import TensorType
from glowmcu.frontend.tensors import ELEM_TYPES, LARGEST, dtype_of
from glowmcu.graph.graph import Value

HARMLESS = frozenset({"consumed_inputs", "momentum", "ratio", "seed"})
"""Attributes that mean nothing at inference."""

ONNX_NAMES: dict[DType, str] = {
    dtypes.F16: "float16",
    dtypes.BF16: "bfloat16",
    dtypes.F32: "float",
    dtypes.F64: "double",
    dtypes.BOOL: "bool",
    dtypes.E4M3FN: "float8e4m3fn",
    dtypes.E4M3FNUZ: "float8e4m3fnuz",
    dtypes.E5M2: "float8e5m2",
    dtypes.E5M2FNUZ: "float8e5m2fnuz",
    dtypes.E8M0: "float8e8m0",
    dtypes.E2M1: "float4e2m1",
} | {
    t: ("int" if t.kind == "int" else "uint") + str(t.bits)
    for t in (*dtypes.ALL, *dtypes.SMALL_INTEGERS)
    if t.is_integer
}
_SIZED_BY_DATA = frozenset(
    {
        *("ConvTranspose", "Expand", "MaxUnpool", "OneHot", "Pad", "RandomNormal", "RandomUniform"),
        *("Resize", "Tile", "Upsample"),
    }
)
_LARGEST_RESULT = 64 << 20
_SMALL = 1024
_INFERENCE_ERRORS = (
    onnx.shape_inference.InferenceError,
    onnx.checker.ValidationError,
    RuntimeError,
    ValueError,
    TypeError,
)


def schema_of(op_type: str, opset: int, domain: str) -> OpSchema | None:
    """Return the schema that holds for an operator in an opset, None if ONNX has none.

    An operator newer than the opset is taken as it first was, as ONNX Runtime does.
    """
    try:
        return onnx.defs.get_schema(op_type, opset, domain)
    except onnx.defs.SchemaError:
        found = None
    try:
        found = onnx.defs.get_schema(op_type, domain)
        while True:
            found = onnx.defs.get_schema(op_type, found.since_version - 1, domain)
    except onnx.defs.SchemaError:
        return found


def mistake(schema: OpSchema, node: onnx.NodeProto, inputs: tuple[Value | None, ...]) -> str | None:
    """Say what in a node contradicts its schema, None if nothing does."""
    if schema.deprecated:
        return f"the operator was removed from ONNX in opset {schema.since_version}"
    found = _wrong_count(schema, node) or _wrong_attribute(schema, node)
    return found or _wrong_input(schema, inputs)


def _wrong_count(schema: OpSchema, node: onnx.NodeProto) -> str | None:
    for what, count, low, high in (
        ("inputs", len(node.input), schema.min_input, schema.max_input),
        ("outputs", len(node.output), schema.min_output, schema.max_output),
    ):
        if not low <= count <= high:
            wanted = f"{low}" if low == high else f"{low} to {high}"
            wanted = f"at least {low}" if high > 10_000 else wanted
            return f"the node has {count} {what}; the operator has {wanted}"
    return None


def _wrong_attribute(schema: OpSchema, node: onnx.NodeProto) -> str | None:
    kinds = onnx.AttributeProto.AttributeType
    given = {a.name: a for a in node.attribute}
    for name, declared in schema.attributes.items():
        if name not in given:
            if declared.required:
                return f"attribute '{name}' is missing"
            continue
        kind: Any = declared.type
        want, have = str(kind.name), kinds.Name(given[name].type)
        if want != have:
            return f"attribute '{name}' is of kind {have.lower()}, not {want.lower()}"
    return None


def _wrong_input(schema: OpSchema, inputs: tuple[Value | None, ...]) -> str | None:
    if not schema.inputs:
        return None
    bound: dict[str, tuple[int, DType]] = {}
    for number, value in enumerate(inputs):
        formal: Any = schema.inputs[min(number, len(schema.inputs) - 1)]
        if value is None:
            if formal.option == OpSchema.FormalParameterOption.Single:
                return f"input {number} ({formal.name}) is missing"
            continue
        dtype = value.type.dtype
        if f"tensor({ONNX_NAMES[dtype]})" not in set(formal.types):
            return f"input {number} ({formal.name}) cannot be {dtype} in this opset"
        if not formal.is_homogeneous:
            continue
        type_name = str(formal.type_str)
        first, same = bound.setdefault(type_name, (number, dtype))
        if same != dtype:
            return f"input {number} is {dtype} and input {first} is {same}; they must be the same"
    return None


def ignored_attribute(
    schema: OpSchema | None, attributes: Mapping[str, Any], used: set[str], node: onnx.NodeProto
) -> str | None:
    """Return the name of an attribute that the importer ignored and that may change the result."""
    for attribute in node.attribute:
        name: str = attribute.name
        if name in used or name in HARMLESS or name not in attributes:
            continue
        declared = schema.attributes.get(name) if schema else None
        if declared is None or not _is_default(attribute, declared.default_value):
            return name
    return None


def _is_default(attribute: onnx.AttributeProto, default: onnx.AttributeProto) -> bool:
    if not default.name:
        return False
    get = onnx.helper.get_attribute_value
    same: bool = attribute.type == default.type and get(attribute) == get(default)
    return same


def type_proto(type_: TensorType) -> onnx.TypeProto:
    """Return a TensorType as ONNX writes it."""
    return onnx.helper.make_tensor_type_proto(ELEM_TYPES[type_.dtype], type_.shape)


def inferred_types(
    schema: OpSchema | None, node: onnx.NodeProto, inputs: tuple[Value | None, ...], opset: int
) -> dict[str, TensorType]:
    """Return the output types that ONNX's own inference finds; nothing where it does not know.

    They stand in for the outputs of a node that could not be imported, so that the nodes after it
    are still checked.
    """
    found = _inferred(schema, node, inputs, opset)
    return {n: t for n, t in found.items() if t.nbytes <= LARGEST}


def oversized(
    schema: OpSchema | None, node: onnx.NodeProto, inputs: tuple[Value | None, ...], opset: int
) -> str | None:
    """Say which output of a node whose sizes are computed from data is absurdly large."""
    if node.op_type not in _SIZED_BY_DATA:
        return None
    for type_ in _inferred(schema, node, inputs, opset).values():
        if type_.nbytes > _LARGEST_RESULT:
            return f"the result {type_} takes {type_.nbytes} bytes; the limit is {_LARGEST_RESULT}"
    return None


def _inferred(
    schema: OpSchema | None, node: onnx.NodeProto, inputs: tuple[Value | None, ...], opset: int
) -> dict[str, TensorType]:
    if schema is None or not schema.has_type_and_shape_inference_function:
        return {}
    pairs = [(n, v) for n, v in zip(node.input, inputs, strict=True) if v is not None]
    types = {name: type_proto(v.type) for name, v in pairs}
    data = {
        name: numpy_helper.from_array(v.data, name)
        for name, v in pairs
        if v.data is not None and v.data.size <= _SMALL
    }
    imports = [onnx.helper.make_opsetid(schema.domain, opset)]
    try:
        found = onnx.shape_inference.infer_node_outputs(
            schema, node, types, data, opset_imports=imports
        )
    except _INFERENCE_ERRORS:
        return {}
    result: dict[str, TensorType] = {}
    for name, proto in found.items():
        tensor = proto.tensor_type
        if tensor.elem_type not in ELEM_TYPES.values() or not tensor.HasField("shape"):
            continue
        if all(d.HasField("dim_value") and d.dim_value >= 0 for d in tensor.shape.dim):
            shape = tuple(int(d.dim_value) for d in tensor.shape.dim)
            result[name] = TensorType(dtype_of(tensor.elem_type, name), shape)
    return result
