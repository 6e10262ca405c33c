"""Data-dependent shapes, types without arithmetic, old opsets, inputs that must be constants."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from glowmcu import frontend
from glowmcu.core import dtypes
from glowmcu.errors import UnsupportedError
from glowmcu.graph.evaluate import evaluate


def model(text: str, opset: int = 18) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]>\n{text}')


def test_the_actual_shape_is_an_output() -> None:
    graph = frontend.load(
        model("g (float[2, 3] x) => (int64[3, n] y) { z = NonZero(x) y = Transpose(z) }")
    ).graph
    assert graph.output_names == ("y", "y_shape")
    x = np.asarray([[0, 5, 0], [7, 0, 0]], np.float32)
    found = evaluate(graph, {"x": x})
    assert found["y_shape"].tolist() == [2, 2]
    assert found["y"][:2].tolist() == [[0, 1], [1, 0]]


def test_what_would_read_beyond_the_extent_is_refused() -> None:
    text = """g (float[4] x, bool[4] c) => (float[1] y) {
        z = Compress <axis=0> (x, c)
        y = ReduceSum(z)
    }"""
    with pytest.raises(UnsupportedError, match="Reduce of a tensor whose size depends on the data"):
        frontend.load(model(text))


def test_constants_have_exact_shapes() -> None:
    text = """g (float[2] x) => (int64[1, 2] y) {
        c = Constant <value = float[4] {0, 1, 0, 2}> ()
        y = NonZero(c)
    }"""
    graph = frontend.load(model(text)).graph
    assert graph.output_names == ("y",)
    assert graph.outputs[0].shape == (1, 2)


def test_half_precision_is_computed_in_float() -> None:
    graph = frontend.load(
        model("g (float16[2, 3] x, float16[3, 2] w) => (float16[2, 2] y) { y = MatMul(x, w) }")
    ).graph
    assert graph.outputs[0].type.dtype is dtypes.F16
    assert any(type(n.op).__name__ == "MatMul" for n in graph.nodes())


def test_old_opsets_are_converted() -> None:
    text = (
        "g (float[2, 3] x, float[3] b) => (float[2, 3] y) { y = Add <axis=1, broadcast=1> (x, b) }"
    )
    found = frontend.load(model(text, 6))
    assert found.opset == 7
    assert any("converted" in note for note in found.notes)


def test_a_problem_names_the_inputs_that_must_be_constants() -> None:
    text = (
        "g (float[6] x, int64[2] s) => (float[a, b] y) { t = Neg(s) u = Abs(t) y = Reshape(x, u) }"
    )
    with pytest.raises(UnsupportedError) as error:
        frontend.load(model(text))
    assert error.value.problems[0].needs == ("s",)
    assert "--fix-input s=" in str(error.value)
