"""Import single ONNX nodes and compare every level with ONNX Runtime or the reference evaluator."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import glowmcu.ops  # noqa: F401  registers the importers
from glowmcu.core.types import type_of
from glowmcu.graph import evaluate as graph_evaluate
from glowmcu.graph import verify as graph_verify
from glowmcu.graph.graph import Graph, Value, constant
from glowmcu.instr import evaluate as instr_evaluate
from glowmcu.instr import verify as instr_verify
from glowmcu.instr.function import Function
from glowmcu.lowering.lower import lower
from glowmcu.ops.base import IMPORTERS
from glowmcu.ops.onnx_node import OnnxNode

Array = np.ndarray[Any, Any]


def run(
    op: str,
    feeds: dict[str, Array],
    constants: dict[str, Array] | None = None,
    *,
    inputs: list[str] | None = None,
    outputs: int = 1,
    opset: int = 18,
    oracle: str = "onnxruntime",
    tolerance: float = 0.0,
    **attributes: Any,
) -> Function:
    """Compare graph and function of one node with the oracle; return the function."""
    constants = constants or {}
    names = inputs if inputs is not None else [*feeds, *constants]
    results = [f"y{i}" for i in range(outputs)]
    proto = helper.make_node(op, names, results, name="node", **attributes)
    expected = golden(proto, feeds, constants, opset, oracle)
    graph = import_node(proto, feeds, constants, opset)
    graph_verify.verify(graph)
    found = graph_evaluate.evaluate(graph, feeds)
    function = lower(graph, graph.nodes(), "f")
    instr_verify.verify(function)
    executed = instr_evaluate.evaluate(function, feeds)
    for name, right in zip(results, expected, strict=True):
        for level in (found, executed):
            assert level[name].shape == right.shape, (name, level[name].shape, right.shape)
            assert level[name].dtype == right.dtype
            if tolerance:
                np.testing.assert_allclose(level[name], right, rtol=tolerance, atol=tolerance)
            else:
                np.testing.assert_array_equal(level[name], right)
    return function


def import_node(
    proto: onnx.NodeProto, feeds: dict[str, Array], constants: dict[str, Array], opset: int
) -> Graph:
    values: dict[str, Value] = {n: Value(n, type_of(a)) for n, a in feeds.items()}
    values.update((n, constant(n, a)) for n, a in constants.items())
    attributes = {a.name: _plain(helper.get_attribute_value(a)) for a in proto.attribute}
    node = OnnxNode(
        proto.op_type,
        proto.name,
        opset,
        tuple(values[n] if n else None for n in proto.input),
        tuple(proto.output),
        attributes,
        proto.domain,
    )
    found = IMPORTERS[proto.domain, proto.op_type](node)
    outputs = found if isinstance(found, tuple) else (found,)
    graph_inputs = tuple(values[n] for n in feeds)
    unused = set(attributes) - node.used
    assert not unused, f"the importer did not look at {unused}"
    return Graph("g", graph_inputs, outputs, tuple(proto.output))


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list):
        return tuple(_plain(v) for v in value)
    return value


def golden(
    proto: onnx.NodeProto,
    feeds: dict[str, Array],
    constants: dict[str, Array],
    opset: int,
    oracle: str,
) -> list[Array]:
    graph = helper.make_graph(
        [proto],
        "g",
        [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for n, a in feeds.items()
        ],
        [helper.make_tensor_value_info(n, TensorProto.UNDEFINED, None) for n in proto.output],
        [numpy_helper.from_array(a, n) for n, a in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    if oracle == "reference":
        from onnx.reference import ReferenceEvaluator

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [np.asarray(a) for a in ReferenceEvaluator(model).run(None, feeds)]
    import onnxruntime

    for output in model.graph.output:
        output.ClearField("type")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return [np.asarray(a) for a in session.run(None, feeds)]
