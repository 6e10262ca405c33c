"""Every example of every card written as ONNX: another runtime computes the same."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator
from test_examples import CASES, OPS, network

from glowmcu.core.types import Array
from glowmcu.errors import UnsupportedError
from glowmcu.graph.evaluate import evaluate
from glowmcu.graph.graph import Graph
from glowmcu.ops.base import Op
from glowmcu.quantize.onnx_nodes import WRITERS
from glowmcu.quantize.write import to_onnx

WITHOUT = {"BitCast", "Bounded", "NonzeroPlaces", "Sample", "Suppress", "UniqueRows"}
"""Operators that no ONNX node is like: parts of others, or results whose shape depends on data."""
MEANINGS = {"AsQuant", "Dequantize", "Quantize", "StayReal"}
REFUSED = (
    rf"no ONNX node does the same as (?:{'|'.join(sorted(WITHOUT))})\n"
    "|a convolution of integers|a cumulative product"
    "|the function (?:shift_left|shift_right|multiply_high)"
    "|makes no int32|over no axis|may end early"
)


def in_range(name: str, graph: Graph, feeds: dict[str, Array]) -> dict[str, Array]:
    """Return the data with indices and lengths that ONNX allows."""
    (node,) = graph.nodes()
    place = 5 if name == "Recurrent" else 1
    if not (name.startswith(("Gather", "Scatter")) or name == "Recurrent"):
        return feeds
    value, x = node.inputs[place] if len(node.inputs) > place else None, node.inputs[0]
    if value is None or x is None or value.name not in feeds:
        return feeds
    if name == "Recurrent":
        return {**feeds, value.name: np.clip(feeds[value.name], 1, x.shape[0])}
    axis = getattr(node.op, "axis", None)
    limit = min(x.shape) if axis is None else x.shape[axis]
    return {**feeds, value.name: feeds[value.name] % limit}


def written(graph: Graph) -> tuple[onnx.ModelProto | None, str]:
    """Return the model, or None and the sentence why there is none."""
    try:
        return to_onnx(graph), ""
    except UnsupportedError as error:
        return None, str(error)


def theirs(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> list[Array]:
    """Return what ONNX Runtime computes; ONNX's reference where it lacks an operator or type."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    inputs = {name: np.asarray(array) for name, array in feeds.items()}
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        return list(session.run(None, inputs))
    except Exception as error:
        if not re.search("NOT_IMPLEMENTED|[Ii]nvalid|[Nn]umpy.type", repr(error)):
            raise
        return list(ReferenceEvaluator(model).run(None, inputs))


def test_every_operator_has_a_writer_or_none_on_purpose() -> None:
    written = {kind.__name__ for kind in WRITERS}
    assert written | MEANINGS | WITHOUT == set(OPS)
    assert not written & WITHOUT


@pytest.mark.parametrize(("name", "index"), CASES)
def test_it_can_be_written(name: str, index: int) -> None:
    example = Op.registry[name].examples[index]
    graph, feeds = network(Op.registry[name], example, f"{name}_{index}")
    feeds = in_range(name, graph, feeds)
    model, refusal = written(graph)
    if model is None:
        assert "cannot be written as ONNX" in refusal
        assert re.search(REFUSED, refusal)
        return
    assert name not in WITHOUT
    with np.errstate(all="ignore"):
        ours = evaluate(graph, feeds)
    for value, mine, other in zip(graph.outputs, ours.values(), theirs(model, feeds), strict=True):
        assert mine.shape == other.shape
        assert mine.dtype == other.dtype
        a, b = np.asarray(mine, np.float64), np.asarray(other, np.float64)
        if value.type.quant is not None:
            assert np.abs(a - b).max(initial=0) <= 1
        else:
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)
