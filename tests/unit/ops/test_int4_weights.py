"""Dense layers with weights of 4 bits: half the flash for size, the same bits in every mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import glowmcu
from glowmcu.core import dtypes
from glowmcu.core.dtypes import DType
from glowmcu.verify.sanitize import run_sanitized

Array = np.ndarray[Any, Any]
pytestmark = pytest.mark.cc


def layer(rows: int, inner: int, cols: int, weights: DType, gemm: bool = False) -> onnx.ModelProto:
    """Return y = q(dq(x) . dq(w)) with one scale for each output."""
    rng = np.random.default_rng(inner)
    w = rng.integers(weights.low, weights.high, (inner, cols), endpoint=True)
    w[0, 0], w[-1, -1] = weights.low, weights.high
    w = w.T if gemm else w
    zero = np.full(cols, 0 if weights.kind == "int" else 1 << (weights.bits - 1))
    constants = {
        "sx": np.float32(0.02),
        "zx": np.int8(-7),
        "w": w.astype(weights.numpy),
        "sw": rng.uniform(0.01, 0.05, cols).astype(np.float32),
        "zw": zero.astype(weights.numpy),
        "sy": np.float32(0.02 * 0.03 * 5 * np.sqrt(inner)),
        "zy": np.int8(4),
    }
    node = helper.make_node
    product = (
        node("Gemm", ["r", "v"], ["t"], transB=1) if gemm else node("MatMul", ["r", "v"], ["t"])
    )
    nodes = [
        node("DequantizeLinear", ["x", "sx", "zx"], ["r"]),
        node("DequantizeLinear", ["w", "sw", "zw"], ["v"], axis=0 if gemm else 1),
        product,
        node("QuantizeLinear", ["t", "sy", "zy"], ["y"]),
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "dense",
        [value("x", TensorProto.INT8, (rows, inner))],
        [value("y", TensorProto.INT8, (rows, cols))],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=12)


CASES = [
    (3, 7, 5, dtypes.I4, True),
    (2, 1, 1, dtypes.I4, False),
    (1, 33, 10, dtypes.U4, False),
    (2, 12, 6, dtypes.I2, True),
]


@pytest.mark.parametrize(("rows", "inner", "cols", "weights", "gemm"), CASES)
def test_every_mode_gives_the_same_bits(
    rows: int, inner: int, cols: int, weights: DType, gemm: bool
) -> None:
    model = layer(rows, inner, cols, weights, gemm)
    rng = np.random.default_rng(1)
    x = rng.integers(-128, 127, (rows, inner), endpoint=True).astype(np.int8)
    x[0, 0] = -128
    (right,) = ReferenceEvaluator(model).run(None, {"x": x})
    results, kernels, flash = [], [], []
    for optimize in ("balanced", "size"):
        compiled = glowmcu.compile(model, optimize=optimize)
        (record,) = compiled.report["layers"]
        kernels.append(record["kernel"])
        flash.append(record["weights_bytes"])
        results += [compiled.run({"x": x})["y"]]
    results += [run_sanitized(compiled.compilation.unit, [{"x": x}])[0]["y"]]
    assert kernels == ["gm_dense_s8", "gm_dense_s4"]
    packed = -(-cols // 4) * inner
    assert flash == [4 * packed + 8 * cols, 2 * packed + 8 * cols]
    for found in results:
        assert np.array_equal(found, results[0])
        assert np.abs(found.astype(int) - right.astype(int)).max() <= 1


def test_wider_weights_stay_bytes() -> None:
    compiled = glowmcu.compile(layer(1, 20, 8, dtypes.I8), optimize="size")
    assert compiled.report["layers"][0]["kernel"] == "gm_dense_s8"


def test_it_is_taken_on_every_target_for_size() -> None:
    for target in ("cortex-m0", "cortex-m4", "cortex-m55"):
        compiled = glowmcu.compile(layer(1, 64, 16, dtypes.I4), optimize="size", target=target)
        assert compiled.report["layers"][0]["kernel"] == "gm_dense_s4", target
