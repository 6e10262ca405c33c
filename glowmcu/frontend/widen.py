"""Types without arithmetic of their own for a node: cast, compute in float32, cast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import onnx
from onnx.defs import OpSchema

from glowmcu.core import dtypes
from glowmcu.core.dtypes import DType
from glowmcu.graph.graph import Value
from glowmcu.ops.cast import Cast
from glowmcu.ops.onnx_node import OnnxNode

NARROW = (dtypes.F16, dtypes.BF16, dtypes.F64)


def widened(seen: OnnxNode) -> OnnxNode | None:
    """Return the node on float32 inputs, its outputs named as intermediates; None if it is so."""
    if not any(v is not None and v.type.dtype in NARROW for v in seen.inputs):
        return None
    inputs = tuple(
        v
        if v is None or v.type.dtype not in NARROW
        else seen.apply(Cast(dtypes.F32), v, suffix=f"f32.{i}").output
        for i, v in enumerate(seen.inputs)
    )
    names = tuple(f"{n}.f32" if n else "" for n in seen.output_names)
    return replace(seen, inputs=inputs, output_names=names, used=set())


def narrowed(
    seen: OnnxNode, schema: OpSchema | None, results: Sequence[Value | None]
) -> tuple[Value | None, ...]:
    """Return the results of the widened node in the types that the schema says."""
    if schema is None:
        return tuple(results)
    return tuple(_narrowed(seen, schema, i, v) for i, v in enumerate(results))


def _narrowed(seen: OnnxNode, schema: OpSchema, index: int, value: Value | None) -> Value | None:
    dtype = _declared(seen, schema, index)
    if value is None or dtype is None or value.type.dtype is dtype:
        return value
    name = seen.output_names[index] if index < len(seen.output_names) else ""
    one = replace(seen, output_names=(name or f"{seen.label}.{index}",))
    return one.apply(Cast(dtype), value).output


def _declared(seen: OnnxNode, schema: OpSchema, index: int) -> DType | None:
    """Return the type of an output that an input of a narrow type determines."""
    formal: Any = schema.outputs[min(index, len(schema.outputs) - 1)]
    for number, value in enumerate(seen.inputs):
        of: Any = schema.inputs[min(number, len(schema.inputs) - 1)]
        if value is not None and of.type_str == formal.type_str and value.type.dtype in NARROW:
            return value.type.dtype
    return None


def narrows(body: onnx.FunctionProto, seen: OnnxNode) -> bool:
    """Tell whether the definition of a node takes an input of float64 to float32."""
    doubles = {
        f"x{i}" for i, v in enumerate(seen.inputs) if v is not None and v.type.dtype is dtypes.F64
    }
    return any(
        node.op_type == "Cast" and node.input[0] in doubles and a.i == onnx.TensorProto.FLOAT
        for node in body.node
        for a in node.attribute
    )
