"""Integer arithmetic on int16: within 1 LSB of the reals, and C to the bit."""

from __future__ import annotations

from typing import Any

import c_calls
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glowmcu.core import dtypes
from glowmcu.core.dtypes import DType
from glowmcu.core.types import Array, Quant, TensorType, dequantize, quantize
from glowmcu.graph.graph import Graph, Value, apply, constant
from glowmcu.instr import evaluate as instr_evaluate
from glowmcu.instr.function import Function
from glowmcu.lowering.lower import lower
from glowmcu.ops._pieces import divided, looked_up
from glowmcu.ops.base import i8, i16
from glowmcu.ops.elementwise import Elementwise
from glowmcu.ops.softmax import Softmax
from glowmcu.ops.standardize import Standardize

EVERY = np.arange(-(1 << 15), 1 << 15).astype(np.int16)
CORNERS = np.asarray([-32768, -32767, -300, -1, 0, 1, 255, 32766, 32767], np.int16)
SCALES = st.floats(-16, -6).map(lambda e: float(np.float32(2.0**e)))


def built(op: Any, y: TensorType, *xs: TensorType) -> Function:
    values = tuple(Value(f"x{n}", x) for n, x in enumerate(xs))
    assert op.integer(xs, (y,))
    node = apply(op, *values, name="y", types=(y,))
    graph = Graph("g", values, node.outputs, ("y",))
    return lower(graph, graph.nodes(), "f")


def error(function: Function, real: Array, *arrays: Array) -> float:
    """Return the largest difference from the stored integers that float64 numbers round to."""
    (y,) = function.outputs
    assert y.type.quant is not None
    found = instr_evaluate.evaluate(function, {f"x{n}": a for n, a in enumerate(arrays)})["y"]
    scaled = real / y.type.quant.scale[0] + y.type.quant.zero_point[0]
    right = np.clip(np.rint(scaled), y.type.dtype.low, y.type.dtype.high)
    return float(np.abs(found - right).max())


def reals(stored: Array, type_: TensorType) -> Array:
    """Return float64 numbers that stored integers mean."""
    assert type_.quant is not None
    return (stored.astype(np.float64) - type_.quant.zero_point[0]) * type_.quant.scale[0]


@settings(max_examples=60, deadline=None)
@given(SCALES, SCALES, SCALES, st.sampled_from(["add", "sub", "mul"]))
def test_two_tensors_are_within_1_lsb(a: float, b: float, y: float, fn: str) -> None:
    rng = np.random.default_rng(3)
    x, z = (rng.integers(-32768, 32768, 500).astype(np.int16) for _ in range(2))
    x[:81], z[:81] = np.repeat(CORNERS, 9), np.tile(CORNERS, 9)
    types = [i16(500, scale=s) for s in (a, b, y)]
    if not Elementwise(fn).integer(types[:2], (types[2],)):
        assert fn == "mul" or max(a, b) / y > 100
        return
    function = built(Elementwise(fn), types[2], *types[:2])
    left, right = reals(x, types[0]), reals(z, types[1])
    real = left * right if fn == "mul" else left + right if fn == "add" else left - right
    assert error(function, real, x, z) <= 1


@pytest.mark.parametrize("fn", ["sigmoid", "tanh", "gelu", "gelu_tanh", "hard_swish", "elu", "exp"])
@pytest.mark.parametrize("reach", [1.0, 8.0, 40.0])
def test_functions_are_within_1_lsb_of_all_values(fn: str, reach: float) -> None:
    x = i16(1 << 16, scale=reach / 32768)
    op = Elementwise(fn)
    others = (np.ones(1, np.float32),) if fn == "elu" else ()
    real = dequantize(EVERY, x.quant or Quant.per_tensor(1))
    exact = np.asarray(op.reference(real, *others))
    largest = min(float(np.abs(exact).max()), 100.0)
    y = i16(1 << 16, scale=largest / 32767)
    values = [Value("x0", x), *(constant("c", c) for c in others)]
    node = apply(op, *values, name="y", types=(y,))
    graph = Graph("g", (values[0],), node.outputs, ("y",))
    function = lower(graph, graph.nodes(), "f")
    assert error(function, exact.astype(np.float64), EVERY) <= 1
    (look_up,) = function.instructions
    size = sum(b.nbytes for b in look_up.inputs() if b.data is not None)
    assert size <= 4096


@pytest.mark.parametrize("seed", range(3))
def test_a_table_holds_any_function(seed: int) -> None:
    """Steps, kinks and noise: within 1 where 16 KB hold it, else as near as they allow."""
    rng = np.random.default_rng(seed)
    steps = np.sort(rng.integers(-32768, 32767, 20))[(EVERY.astype(int) + 32768) // 3277]
    noise = rng.integers(-32768, 32768, 1 << 16)
    assert np.abs(looked_up(divided(steps), EVERY) - steps).max() <= 1
    table = divided(noise)
    assert table.nbytes <= 1 << 14
    assert np.array_equal(looked_up(table, EVERY).astype(np.int16), looked_up(table, EVERY))


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("cols", [1, 2, 10, 129, 2048])
@pytest.mark.parametrize("scale", [2.0**-8, 2.0**-12, 2.0**-16])
def test_softmax_is_within_1_lsb(cols: int, scale: float, log: bool) -> None:
    rng = np.random.default_rng(cols)
    x = rng.integers(-32768, 32768, (20, cols)).astype(np.int16)
    x[0], x[1], x[2:4], x[4] = -32768, 32767, np.sort(x[2:4], axis=1), -32768
    x[4, 0] = 32767
    type_ = i16(20, cols, scale=scale)
    real = reals(x, type_)
    shifted = real - real.max(axis=1, keepdims=True)
    exact = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    for step, zero in ((2.0**-15, 0), (1 / 40000, -7)) if not log else ((scale, 32767), (1e-3, 9)):
        y = i16(20, cols, scale=step, zero_point=zero)
        assert error(built(Softmax(log), y, type_), exact if log else np.exp(exact), x) <= 1


def test_softmax_of_int8_has_a_logarithm() -> None:
    x = np.random.default_rng(1).integers(-128, 128, (9, 12)).astype(np.int8)
    real = reals(x, i8(9, 12))
    shifted = real - real.max(axis=1, keepdims=True)
    exact = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    function = built(Softmax(log=True), i8(9, 12, scale=0.06, zero_point=127), i8(9, 12))
    assert error(function, exact, x) <= 1


@pytest.mark.parametrize("centre", [True, False])
@pytest.mark.parametrize("cols", [1, 2, 17, 768, 8192])
@pytest.mark.parametrize("dtype", [dtypes.I8, dtypes.I16])
def test_layer_normalization_is_within_1_lsb(cols: int, centre: bool, dtype: DType) -> None:
    """Also of rows that are nearly or wholly constant, where epsilon or one unit decides."""
    rng = np.random.default_rng(cols)
    x_type = TensorType(
        dtype, (12, cols), Quant.per_tensor(0.02 if dtype is dtypes.I8 else 1e-4, 5)
    )
    x = rng.integers(dtype.low, dtype.high + 1, x_type.shape).astype(dtype.numpy)
    x[0], x[1], x[2, : cols // 2], x[3] = dtype.low, 5, dtype.high, 6
    x[3, 0], x[4] = 7, rng.integers(-3, 4, cols)
    scale, bias = (rng.uniform(-2, 2, cols).astype(np.float32) for _ in range(2))
    y = TensorType(dtype, x_type.shape, Quant.per_tensor(0.04 if dtype is dtypes.I8 else 2e-4, -3))
    values = (Value("x0", x_type), constant("s", scale), constant("b", bias))
    op = Standardize(1e-5, centre)
    assert op.integer([v.type for v in values], (y,))
    node = apply(op, *values, name="y", types=(y,))
    graph = Graph("g", values[:1], node.outputs, ("y",))
    real = reals(x, x_type)
    centred = real - real.mean(axis=1, keepdims=True) * centre
    root = np.sqrt((centred * centred).mean(axis=1, keepdims=True) + np.float32(1e-5))
    exact = centred / root * scale.astype(np.float64) + bias.astype(np.float64)
    assert error(lower(graph, graph.nodes(), "f"), exact, x) <= 1


@pytest.mark.cc
def test_c_gives_the_bits_of_the_reference(cc: str) -> None:
    quants = [Quant.per_tensor(s, z) for s, z in ((2e-4, 0), (9e-4, -90), (1e-5, 300))]
    cases = []
    for y in quants:
        for a in quants:
            for b in quants:
                for fn in ("add", "sub", "mul"):
                    types = [TensorType(dtypes.I16, (7, 7), q) for q in (a, b, y)]
                    if Elementwise(fn).integer(types[:2], (types[2],)):
                        cases += _cases(built(Elementwise(fn), types[2], *types[:2]))
        for log in (False, True):
            cases += _cases(built(Softmax(log), i16(7, 7, scale=3e-5), i16(7, 7).with_quant(y)))
        for fn in ("tanh", "abs"):
            for x, z in ((i16(7, 7), i16(7, 7)), (i16(7, 7), i8(7, 7)), (i8(7, 7), i16(7, 7))):
                cases += _cases(built(Elementwise(fn), z, x))
    flags = tuple(c_calls.SANITIZE)
    for (instruction, memory), (found,) in zip(cases, c_calls.run(cases, cc, flags), strict=True):
        np.testing.assert_array_equal(found, c_calls.expected(instruction, memory)[0])


def _cases(function: Function) -> list[tuple[Any, dict[Any, Array]]]:
    cases = []
    for instruction in function.instructions:
        memory = c_calls.random_memory(instruction, 3)
        for operand in instruction.operands():
            buffer = operand.buffer
            if operand.role == "in" and buffer.data is None and buffer.type.dtype is dtypes.I16:
                memory[buffer] = np.resize(CORNERS, buffer.type.shape)
        cases.append((instruction, memory))
    return cases


def test_functions_round_as_the_graph_does() -> None:
    """The values that a table stands for are ONNX's, so a table of bytes has no error at all."""
    quant = Quant.per_tensor(3e-4)
    function = built(Elementwise("tanh"), TensorType(dtypes.I16, (256,), quant), i8(256))
    x = np.arange(-128, 128).astype(np.int8)
    right = quantize(np.tanh(dequantize(x, i8(1).quant or quant)), quant, dtypes.I16)
    np.testing.assert_array_equal(instr_evaluate.evaluate(function, {"x0": x})["y"], right)
