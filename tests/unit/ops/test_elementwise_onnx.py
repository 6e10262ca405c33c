"""Element-wise importers against ONNX Runtime and the reference evaluator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from imported import run

RNG = np.random.default_rng(3)
X = RNG.normal(0, 2, (2, 3, 4)).astype(np.float32)
Z = RNG.normal(0, 2, (3, 1)).astype(np.float32)
POSITIVE = (np.abs(X) + 0.1).astype(np.float32)
UNIT = np.tanh(X).astype(np.float32)
INTS = RNG.integers(-9, 9, (2, 3, 4)).astype(np.int32)
DIVISORS = np.where(INTS == 0, 3, INTS[::-1]).astype(np.int32)
DIVISORS[DIVISORS == 0] = -2
BITS = RNG.integers(0, 2, (2, 3, 4)).astype(bool)
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5], np.float32)

UNARY = "Abs Atan Ceil Cos Erf Exp Floor Neg Reciprocal Relu Round Sigmoid Sign Sin Sinh Softplus"
UNARY += " Softsign Tan Tanh Elu Selu Celu LeakyRelu ThresholdedRelu HardSigmoid HardSwish Mish"
BINARY = "Add Sub Mul Div Max Min Equal Greater Less GreaterOrEqual LessOrEqual PRelu Sum Mean"


@pytest.mark.parametrize("op", UNARY.split())
def test_unary(op: str) -> None:
    run(op, {"x": X}, opset=18, tolerance=2e-6)


@pytest.mark.parametrize("op", ["Log", "Sqrt", "Acosh"])
def test_unary_of_positive_numbers(op: str) -> None:
    run(op, {"x": POSITIVE + (op == "Acosh")}, opset=18, tolerance=2e-6)


@pytest.mark.parametrize("op", ["Asin", "Acos", "Atanh", "Asinh", "Cosh"])
def test_unary_of_small_numbers(op: str) -> None:
    run(op, {"x": UNIT * np.float32(0.9)}, opset=18, tolerance=2e-6)


@pytest.mark.parametrize("op", BINARY.split())
def test_binary(op: str) -> None:
    run(op, {"x": X, "z": Z}, opset=18, tolerance=2e-6)


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div", "Max", "Min", "Equal", "Less", "Pow"])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_integers(op: str, dtype: Any) -> None:
    right = np.abs(DIVISORS) % 4 if op == "Pow" else DIVISORS
    run(op, {"x": INTS.astype(dtype), "z": right.astype(dtype)}, opset=18)


@pytest.mark.parametrize("fmod", [0, 1])
def test_mod_of_integers(fmod: int) -> None:
    run("Mod", {"x": INTS, "z": DIVISORS}, opset=13, fmod=fmod)


def test_mod_of_floats() -> None:
    run("Mod", {"x": X, "z": POSITIVE}, opset=13, fmod=1, tolerance=1e-6)


@pytest.mark.parametrize("op", ["And", "Or", "Xor"])
def test_logic(op: str) -> None:
    run(op, {"x": BITS, "z": BITS[0]}, opset=18)
    run("Not", {"x": BITS}, opset=18)


@pytest.mark.parametrize("op", ["BitwiseAnd", "BitwiseOr", "BitwiseXor"])
def test_bitwise(op: str) -> None:
    run(op, {"x": INTS, "z": DIVISORS}, opset=18)


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
def test_bit_shift(direction: str) -> None:
    x = np.arange(24, dtype=np.uint8) * 10
    z = np.arange(24, dtype=np.uint8) % 8
    run("BitShift", {"x": x, "z": z}, opset=11, direction=direction)


def test_where_and_not_a_number() -> None:
    run("Where", {"c": BITS, "x": X, "z": Z}, opset=16)
    run("IsNaN", {"x": SPECIAL}, opset=20)
    run("IsInf", {"x": SPECIAL}, opset=20)
    run("IsInf", {"x": SPECIAL}, opset=20, detect_negative=0)
    run("IsInf", {"x": SPECIAL}, opset=20, detect_positive=0)


@pytest.mark.parametrize("op", ["Relu", "Max", "Min", "Sign", "Abs", "Round"])
def test_special_numbers(op: str) -> None:
    feeds = {"x": SPECIAL, "z": SPECIAL[::-1].copy()} if op in ("Max", "Min") else {"x": SPECIAL}
    run(op, feeds, opset=18, oracle="reference")


def test_round_is_half_to_even() -> None:
    run("Round", {"x": np.arange(-4, 5, 0.5, dtype=np.float32)}, opset=11)


def test_clip_in_all_its_forms() -> None:
    low, high = np.float32(-0.5), np.float32(1.25)
    run("Clip", {"x": X}, {"low": np.asarray(low), "high": np.asarray(high)}, opset=13)
    run("Clip", {"x": X}, {"high": np.asarray(high)}, inputs=["x", "", "high"], opset=13)
    run("Clip", {"x": X}, {"low": np.asarray(low)}, opset=13)
    run("Clip", {"x": X}, opset=13)
    run("Clip", {"x": X}, opset=6, min=-0.5, max=1.25)
    run("Clip", {"x": X, "low": np.asarray(high), "high": np.asarray(low)}, opset=13)
    bounds = {"low": np.asarray(-3, np.int32), "high": np.asarray(4, np.int32)}
    run("Clip", {"x": INTS}, bounds, opset=13)


@pytest.mark.parametrize("power", [2.0, 3.0, 0.5, -1.0, 1.5])
def test_powers(power: float) -> None:
    run("Pow", {"x": POSITIVE}, {"p": np.asarray(power, np.float32)}, opset=15, tolerance=2e-6)


def test_power_of_two_types() -> None:
    run("Pow", {"x": X, "p": np.abs(INTS) % 4}, opset=15, tolerance=2e-5)
    exponent = np.full((4,), 2.0, np.float32)
    run("Pow", {"x": INTS}, {"p": exponent}, opset=15)


@pytest.mark.parametrize(
    ("op", "attributes", "opset"),
    [
        ("LeakyRelu", {"alpha": 0.3}, 16),
        ("Elu", {"alpha": 0.7}, 6),
        ("Celu", {"alpha": 1.7}, 12),
        ("Selu", {"alpha": 1.1, "gamma": 2.0}, 6),
        ("ThresholdedRelu", {"alpha": 0.4}, 10),
        ("HardSigmoid", {"alpha": 0.3, "beta": 0.4}, 6),
        ("Shrink", {"lambd": 0.6, "bias": 0.2}, 9),
        ("Gelu", {"approximate": "none"}, 20),
        ("Gelu", {"approximate": "tanh"}, 20),
    ],
)
def test_attributes(op: str, attributes: dict[str, Any], opset: int) -> None:
    run(op, {"x": X}, opset=opset, tolerance=2e-6, **attributes)


def test_batch_normalization() -> None:
    parameters = {n: (RNG.random(3) + 0.2).astype(np.float32) for n in ("s", "b", "m", "v")}
    run("BatchNormalization", {"x": X}, parameters, opset=15, tolerance=1e-5, epsilon=1e-3)


def test_batch_normalization_of_run_time_statistics() -> None:
    feeds = {"x": X} | {n: (RNG.random(3) + 0.2).astype(np.float32) for n in ("s", "b", "m", "v")}
    run("BatchNormalization", feeds, opset=15, tolerance=1e-5)


@pytest.mark.parametrize("opset", [11, 13])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_softmax(op: str, axis: int, opset: int) -> None:
    run(op, {"x": X}, opset=opset, axis=axis, tolerance=2e-6)
