"""Importers of normalizations against ONNX Runtime and the reference evaluator."""

from __future__ import annotations

import numpy as np
import pytest
from imported import run

RNG = np.random.default_rng(6)
X = RNG.normal(1, 2, (2, 6, 4, 3)).astype(np.float32)


def vector(size: int) -> np.ndarray:
    return (RNG.random(size) + 0.5).astype(np.float32)


@pytest.mark.parametrize("axis", [-1, 1, 2])
def test_layer_normalization(axis: int) -> None:
    shape = X.shape[axis:]
    parameters = {"s": vector(int(np.prod(shape))).reshape(shape), "b": np.ones(shape, np.float32)}
    run("LayerNormalization", {"x": X}, parameters, opset=17, axis=axis, tolerance=1e-5)
    run("LayerNormalization", {"x": X}, {"s": parameters["s"]}, axis=axis, tolerance=1e-5)
    run(
        "LayerNormalization",
        {"x": X},
        parameters,
        opset=17,
        axis=axis,
        outputs=3,
        oracle="reference",
        tolerance=1e-5,
    )


def test_double_precision() -> None:
    parameters = {"s": vector(3).astype(np.float64)}
    run("LayerNormalization", {"x": X.astype(np.float64)}, parameters, opset=17, tolerance=1e-9)


def test_rms_normalization() -> None:
    run(
        "RMSNormalization", {"x": X}, {"s": vector(3)}, opset=23, oracle="reference", tolerance=1e-5
    )


def test_instance_normalization() -> None:
    parameters = {"s": vector(6), "b": vector(6)}
    run("InstanceNormalization", {"x": X}, parameters, opset=6, epsilon=1e-3, tolerance=1e-5)


@pytest.mark.parametrize(("opset", "count"), [(18, 3), (21, 6)])
def test_group_normalization(opset: int, count: int) -> None:
    run(
        "GroupNormalization",
        {"x": X},
        {"s": vector(count), "b": vector(count)},
        opset=opset,
        oracle="reference" if opset == 21 else "onnxruntime",
        num_groups=3,
        tolerance=1e-5,
    )


def test_mean_variance_normalization() -> None:
    run("MeanVarianceNormalization", {"x": X}, opset=13, tolerance=1e-5)
    run("MeanVarianceNormalization", {"x": X}, opset=13, axes=[1, 2], tolerance=1e-5)


@pytest.mark.parametrize("p", [1, 2])
def test_lp_normalization(p: int) -> None:
    run("LpNormalization", {"x": X}, opset=1, p=p, axis=1, tolerance=1e-5)


@pytest.mark.parametrize("size", [1, 3, 5])
def test_lrn(size: int) -> None:
    run("LRN", {"x": X}, opset=13, size=size, alpha=0.1, bias=2.0, tolerance=1e-5)


@pytest.mark.parametrize("opset", [11, 13])
@pytest.mark.parametrize("axis", [1, 2, -1])
def test_hardmax(axis: int, opset: int) -> None:
    run("Hardmax", {"x": np.round(X)}, opset=opset, axis=axis)
