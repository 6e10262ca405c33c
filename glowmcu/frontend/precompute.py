"""Nodes on constants that have no card: ONNX's reference evaluator computes them now."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx.defs import OpSchema

from glowmcu.core import dtypes
from glowmcu.core.types import Array
from glowmcu.frontend.signature import inferred_types, type_proto
from glowmcu.graph.graph import Value

_LIMIT = 16 << 20
_NOT_LARGER = frozenset(
    {"Compress", "CumSum", "NonZero", "TopK", "Trilu", "Unique", "ScatterElements", "ScatterND"}
)
"""Operators whose results are bounded by their inputs, where ONNX cannot infer the shapes."""


def precomputed(
    schema: Any, node: onnx.NodeProto, inputs: tuple[Value | None, ...], opset: int
) -> tuple[Array | None, ...] | None:
    """Return the outputs of a node whose inputs are all constants, None where it cannot be known.

    Results beyond 16 MiB are not computed.
    """
    if schema is None or schema.non_deterministic or schema.domain:
        return None
    if any(v is not None and (v.data is None or v.type.quant) for v in inputs):
        return None
    if not _is_small(schema, node, inputs, opset):
        return None
    outputs = [o for o in node.output if o]
    feeds = {n: v.data for n, v in zip(node.input, inputs, strict=True) if v is not None}
    model = onnx.helper.make_model(
        onnx.helper.make_graph(
            [node],
            "node",
            [
                onnx.helper.make_value_info(n, type_proto(v.type))
                for n, v in zip(node.input, inputs, strict=True)
                if v is not None
            ],
            [onnx.helper.make_value_info(o, onnx.TypeProto()) for o in outputs],
        ),
        opset_imports=[onnx.helper.make_opsetid("", opset)],
    )
    found = _run(model, feeds)
    if found is None or not all(_is_tensor(a) for a in found):
        return None
    by_name = dict(zip(outputs, found, strict=True))
    return tuple(np.asarray(by_name[o]) if o else None for o in node.output)


def _run(model: onnx.ModelProto, feeds: dict[str, Array | None]) -> list[Any] | None:
    from onnx.reference import ReferenceEvaluator

    try:
        with np.errstate(all="ignore"):
            found = ReferenceEvaluator(model).run(None, feeds)
    except Exception:
        # The evaluator has no error type of its own; the node stays what it is, unsupported.
        return None
    return list(found)


def _is_tensor(array: object) -> bool:
    try:
        return array is not None and dtypes.of(np.asarray(array).dtype) is not None
    except TypeError:
        return False


def _is_small(
    schema: OpSchema, node: onnx.NodeProto, inputs: tuple[Value | None, ...], opset: int
) -> bool:
    read = sum(v.type.nbytes for v in inputs if v is not None)
    if node.op_type in _NOT_LARGER:
        return 8 * read <= _LIMIT
    types = inferred_types(schema, node, inputs, opset)
    if any(o and o not in types for o in node.output):
        return False
    return read + sum(t.nbytes for t in types.values()) <= _LIMIT
