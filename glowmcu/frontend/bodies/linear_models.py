"""Linear models of scikit-learn and what stands before them, as skl2onnx writes them."""

from __future__ import annotations

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.types import Array
from glowmcu.frontend.bodies.body import Body, body
from glowmcu.frontend.unsupported import KINDS
from glowmcu.ops.onnx_node import OnnxNode

_ML = "ai.onnx.ml"
_LEAST = 1e-30


def _numbers(node: OnnxNode, name: str) -> Array:
    return np.asarray(node.attr(name, ()), np.float32)


@body("Scaler", domain=_ML)
def scaler(b: Body, node: OnnxNode) -> str:
    """One offset and scale for all features, or one for each."""
    offset, scale = _numbers(node, "offset"), _numbers(node, "scale")
    for what, found in (("offset", offset), ("scale", scale)):
        if found.size not in (1, node.value(0).shape[-1]):
            node.fail(f"it has {found.size} numbers of {what} for {node.value(0).shape[-1]}")
    return b("Mul", b("Sub", b.real(0), offset), scale)


@body("Normalizer", domain=_ML)
def normalizer(b: Body, node: OnnxNode) -> str:
    """By the largest magnitude, the sum of magnitudes, or the length."""
    norm = str(node.attr("norm", "MAX"))
    kinds = {"MAX": "ReduceMax", "L1": "ReduceL1", "L2": "ReduceL2"}
    if norm not in kinds:
        node.fail(f"the norm '{norm}'")
    x = b.real(0)
    measured = b("Abs", x) if norm == "MAX" else x
    size = b(kinds[norm], measured, np.asarray([-1], np.int64))
    return b("Div", x, b("Max", size, _LEAST))


@body("Imputer", domain=_ML)
def imputer(b: Body, node: OnnxNode) -> str:
    """A number, or NaN, is replaced by one for all features, or by one for each."""
    x = node.value(0)
    real = x.type.dtype.is_float
    name = "imputed_value_floats" if real else "imputed_value_int64s"
    values = np.asarray(node.attr(name, ()), x.type.dtype.numpy)
    wanted = node.attr("replaced_value_float" if real else "replaced_value_int64", 0)
    if values.size not in (1, x.shape[-1]):
        node.fail(f"it has {values.size} numbers for {x.shape[-1]} features")
    if real and np.isnan(wanted):
        missing = b("IsNaN", b.input(0))
    else:
        missing = b("Equal", b.input(0), np.asarray(wanted, x.type.dtype.numpy))
    return b("Where", missing, values, b.input(0))


def _scores(b: Body, node: OnnxNode, rows: int) -> tuple[str, int]:
    """Return x times the coefficients, plus the intercepts, and how many scores there are."""
    coefficients, intercepts = _numbers(node, "coefficients"), _numbers(node, "intercepts")
    features = node.value(0).shape[-1]
    rows = rows or coefficients.size // features
    if node.value(0).type.rank != 2 or rows * features != coefficients.size:
        node.fail(f"{coefficients.size} coefficients for {features} features")
    found = b("MatMul", b.real(0), coefficients.reshape(rows, features).T)
    if intercepts.size:
        found = b("Add", found, intercepts)
    return found, rows


def _transformed(b: Body, node: OnnxNode, scores: str) -> str:
    kind = str(node.attr("post_transform", "NONE"))
    if kind == "LOGISTIC":
        return b("Sigmoid", scores)
    if kind == "SOFTMAX":
        return b("Softmax", scores, axis=-1)
    if kind != "NONE":
        node.fail(f"post_transform = {kind}", hint="export the model without it")
    return scores


@body("LinearRegressor", domain=_ML)
def linear_regressor(b: Body, node: OnnxNode) -> str:
    """Any number of targets."""
    scores, _ = _scores(b, node, int(node.attr("targets", 1)))
    return _transformed(b, node, scores)


@body("LinearClassifier", domain=_ML)
def linear_classifier(b: Body, node: OnnxNode) -> tuple[str, str]:
    """Two or more classes with integer labels; of string labels only the scores."""
    labels = np.asarray(node.attr("classlabels_ints", ()), np.int64)
    names = node.attr("classlabels_strings", ())
    scores, rows = _scores(b, node, 0)
    classes = max(labels.size, len(names))
    if rows == 1 and classes == 2:
        scores = b("Concat", b("Neg", scores), scores, axis=1)
    elif rows != classes or rows < 2:
        node.fail(f"{rows} rows of coefficients for {classes} classes")
    scores = _transformed(b, node, scores)
    best = b("ArgMax", scores, axis=1, keepdims=0)
    if names and node.output_names[:1] != ("",):
        reason = KINDS["string"]
        node.fail("the labels are strings", why=reason.why, hint="read the scores only")
    return b("Gather", labels, best) if labels.size else b.cast(best, dtypes.I64), scores
