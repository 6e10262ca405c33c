"""QuantizeLinear and DequantizeLinear: importers against ONNX Runtime, bits of C against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from imported import import_node, run
from onnx import helper

from glowmcu.errors import UnsupportedError

RNG = np.random.default_rng(5)
X = RNG.normal(0, 1, (2, 3, 4)).astype(np.float32)
SCALE = np.asarray(0.0173, np.float32)
SCALES = np.asarray([0.01, 0.02, 0.003], np.float32)
DTYPES = [np.int8, np.uint8, np.int16, np.uint16]


@pytest.mark.parametrize("dtype", DTYPES)
def test_quantize_per_tensor(dtype: Any) -> None:
    zero = np.asarray(np.iinfo(dtype).max // 2, dtype)
    run("QuantizeLinear", {"x": X}, {"s": SCALE, "z": zero}, opset=21)


def test_missing_zero_point_means_uint8() -> None:
    run("QuantizeLinear", {"x": X}, {"s": SCALE}, opset=13)
    run("QuantizeLinear", {"x": X}, {"s": SCALE}, opset=21, oracle="reference", output_dtype=3)


def test_per_axis() -> None:
    zero = np.asarray([1, -2, 3], np.int8)
    run("QuantizeLinear", {"x": X}, {"s": SCALES, "z": zero}, opset=13, axis=1)
    run("QuantizeLinear", {"x": X}, {"s": SCALES, "z": zero}, opset=13, axis=-2)
    q = RNG.integers(-128, 127, X.shape).astype(np.int8)
    run("DequantizeLinear", {"x": q}, {"s": SCALES, "z": zero}, opset=13, axis=1)


def test_a_scale_of_one_element_is_per_tensor() -> None:
    one = {"s": SCALE.reshape(1), "z": np.asarray([7], np.uint8)}
    run("QuantizeLinear", {"x": X}, one, opset=21, oracle="reference", axis=1)


@pytest.mark.parametrize("dtype", [*DTYPES, np.int32])
def test_dequantize(dtype: Any) -> None:
    info = np.iinfo(dtype)
    q = RNG.integers(info.min, info.max, X.shape).astype(dtype)
    constants = {"s": SCALE}
    if dtype is not np.int32:
        constants["z"] = np.asarray(5, dtype)
    run("DequantizeLinear", {"x": q}, constants, opset=21)


def test_scale_computed_at_run_time() -> None:
    zero = np.asarray(9, np.uint8)
    run("QuantizeLinear", {"x": X, "s": SCALE, "z": zero}, opset=13)
    q = RNG.integers(0, 255, X.shape).astype(np.uint8)
    run("DequantizeLinear", {"x": q, "s": SCALE, "z": zero}, opset=13)


def test_scales_of_an_axis_computed_at_run_time() -> None:
    zero = np.asarray([1, -2, 3], np.int8)
    run("QuantizeLinear", {"x": X, "s": SCALES}, {"z": zero}, opset=13, axis=1)
    q = RNG.integers(-128, 127, X.shape).astype(np.int8)
    run("DequantizeLinear", {"x": q, "s": SCALES, "z": zero}, opset=13, axis=-2)


def test_blocks() -> None:
    scale = np.abs(RNG.normal(0.02, 0.004, (2, 3, 2))).astype(np.float32)
    zero = RNG.integers(-9, 9, scale.shape).astype(np.int8)
    blocked = {"opset": 21, "axis": 2, "block_size": 2, "oracle": "reference"}
    run("QuantizeLinear", {"x": X}, {"s": scale, "z": zero}, **blocked)
    q = RNG.integers(-128, 127, X.shape).astype(np.int8)
    run("DequantizeLinear", {"x": q}, {"s": scale, "z": zero}, **blocked)


def test_rounding_of_halves_and_special_numbers() -> None:
    halves = np.arange(-140, 140, 0.5, dtype=np.float32)
    special = [np.inf, -np.inf, 3e38, -3e38, 1e-45, -0.0, 0.0, 2.0**22, 2.0**31, -(2.0**31)]
    x = np.concatenate([halves, np.asarray(special, np.float32)])
    run("QuantizeLinear", {"x": x}, {"s": np.float32(1), "z": np.int8(0)}, opset=13)
    run("QuantizeLinear", {"x": x}, {"s": np.float32(1), "z": np.uint8(128)}, opset=13)


@pytest.mark.parametrize(
    ("constants", "attributes", "message"),
    [
        ({"s": SCALES, "z": np.zeros(3, np.int8)}, {"axis": 2}, "do not fit axis 2"),
        ({"s": SCALE.astype(np.float16), "z": np.int8(0)}, {}, "f16"),
        ({"s": SCALE}, {"output_dtype": 17}, "number 17"),
    ],
)
def test_what_is_refused(
    constants: dict[str, Any], attributes: dict[str, Any], message: str
) -> None:
    proto = helper.make_node("QuantizeLinear", ["x", *constants], ["y"], name="n", **attributes)
    arrays = {n: np.asarray(a) for n, a in constants.items()}
    with pytest.raises(UnsupportedError, match=message):
        import_node(proto, {"x": X}, arrays, 21)
