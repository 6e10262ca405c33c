"""Linear models of ai.onnx.ml against ONNX Runtime, through the whole import."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from glowmcu import frontend
from glowmcu.errors import UnsupportedError
from glowmcu.graph.evaluate import evaluate

Array = np.ndarray[Any, Any]
X = np.random.default_rng(3).normal(size=(5, 3)).astype(np.float32)
WEIGHTS = [0.5, -1.0, 2.0, 1.5, 0.25, -0.75]


def model(op: str, x: Array, outputs: tuple[str, ...], **attributes: Any) -> onnx.ModelProto:
    graph = helper.make_graph(
        [helper.make_node(op, ["x"], list(outputs), domain="ai.onnx.ml", **attributes)],
        "linear",
        [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)],
        [helper.make_empty_tensor_value_info(n) for n in outputs if n != "unread"],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def check(op: str, x: Array = X, outputs: tuple[str, ...] = ("y",), **attributes: Any) -> None:
    proto = model(op, x, outputs, **attributes)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    names = [o.name for o in session.get_outputs()]
    found = evaluate(frontend.load(proto).graph, {"x": x})
    for name, want in zip(names, session.run(names, {"x": x}), strict=True):
        assert (found[name].dtype, found[name].shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(found[name], want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32])
def test_scaler(dtype: Any) -> None:
    x = (X * 4).astype(dtype)
    check("Scaler", x, offset=[0.5], scale=[2.0])
    check("Scaler", x, offset=[0.5, 1.0, -1.0], scale=[2.0, 0.1, 3.0])


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_normalizer(norm: str) -> None:
    check("Normalizer", np.abs(X) + 0.1, norm=norm)


def test_normalizer_divides_by_magnitudes() -> None:
    check("Normalizer", norm="L1")
    check("Normalizer", norm="L2")


def test_imputer() -> None:
    x = X.copy()
    x[1, 2] = x[3, 0] = np.nan
    check("Imputer", x, imputed_value_floats=[7.0], replaced_value_float=float("nan"))
    check("Imputer", x, imputed_value_floats=[7.0, 8.0, 9.0], replaced_value_float=float("nan"))
    integers = np.arange(6).reshape(2, 3)
    check("Imputer", integers, imputed_value_int64s=[7, 8, 9], replaced_value_int64=4)


def test_regressor() -> None:
    check("LinearRegressor", coefficients=WEIGHTS[:3], intercepts=[0.1])
    check("LinearRegressor", coefficients=WEIGHTS, intercepts=[0.1, 0.2], targets=2)


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
def test_classifier(transform: str) -> None:
    three = {"coefficients": [*WEIGHTS, 1, 1, 1], "intercepts": [0.1, 0.2, 0.3]}
    labels = {"classlabels_ints": [3, 5, 9], "post_transform": transform}
    check("LinearClassifier", outputs=("y", "z"), **three, **labels)


def test_classifier_of_two_classes() -> None:
    one = {"coefficients": WEIGHTS[:3], "intercepts": [0.1], "classlabels_ints": [3, 5]}
    check("LinearClassifier", outputs=("y", "z"), **one, post_transform="LOGISTIC")


def test_string_labels_have_scores_only() -> None:
    two = {"coefficients": WEIGHTS, "intercepts": [0.1, 0.2], "classlabels_strings": ["a", "b"]}
    check("LinearClassifier", outputs=("unread", "z"), **two, post_transform="SOFTMAX")
    with pytest.raises(UnsupportedError, match="labels are strings"):
        frontend.load(model("LinearClassifier", X, ("y", "z"), **two))


@pytest.mark.parametrize(
    ("op", "attributes", "message"),
    [
        ("Scaler", {"offset": [0.0, 1.0], "scale": [1.0]}, "2 numbers of offset"),
        ("Normalizer", {"norm": "L3"}, "norm 'L3'"),
        ("LinearRegressor", {"coefficients": WEIGHTS[:4]}, "4 coefficients for 3 features"),
        (
            "LinearRegressor",
            {"coefficients": WEIGHTS[:3], "post_transform": "PROBIT"},
            "post_transform = PROBIT",
        ),
        ("LinearClassifier", {"coefficients": WEIGHTS[:3]}, "1 rows of coefficients"),
    ],
)
def test_what_does_not_fit_is_refused(op: str, attributes: dict[str, Any], message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        frontend.load(model(op, X, ("y", "z")[: 1 + (op == "LinearClassifier")], **attributes))
