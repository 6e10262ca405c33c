"""Importers of reductions against ONNX Runtime and the reference evaluator."""

from __future__ import annotations

import numpy as np
import pytest
from imported import run

from glowmcu.ops.reduce_onnx import KINDS

RNG = np.random.default_rng(4)
X = (RNG.random((2, 3, 4, 2)) + 0.5).astype(np.float32)
INTS = RNG.integers(-9, 9, (2, 3, 4)).astype(np.int32)


@pytest.mark.parametrize("axes", [(1,), (0, 2), (-1,), (0, 1, 2, 3)])
@pytest.mark.parametrize("op", KINDS)
def test_axes_as_input(op: str, axes: tuple[int, ...]) -> None:
    run(op, {"x": X}, {"axes": np.asarray(axes, np.int64)}, opset=18, tolerance=1e-5)


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("op", [k for k in KINDS if k != "ReduceSum"])
def test_axes_as_attribute(op: str, keepdims: int) -> None:
    run(op, {"x": X}, opset=11, axes=[1, 2], keepdims=keepdims, tolerance=1e-5)
    run(op, {"x": X}, opset=11, keepdims=keepdims, tolerance=1e-5)


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd"])
def test_integers(op: str) -> None:
    run(op, {"x": INTS}, {"axes": np.asarray([1])}, opset=18)


def test_no_axes_may_mean_no_reduction() -> None:
    for op in ("ReduceSum", "ReduceMax", "ReduceMean"):
        axes = {"axes": np.zeros(0, np.int64)}
        run(op, {"x": X}, axes, opset=18, oracle="reference", noop_with_empty_axes=1)


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
def test_places(op: str, keepdims: int, last: int) -> None:
    for axis in (0, 1, -1):
        run(op, {"x": INTS}, opset=13, axis=axis, keepdims=keepdims, select_last_index=last)
