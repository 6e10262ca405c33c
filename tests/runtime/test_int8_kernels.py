"""Integer addition, multiplication, softmax and sums: within 1 LSB of the reals, C to the bit."""

from __future__ import annotations

from typing import Any

import c_calls
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glowmcu.core import dtypes
from glowmcu.core.types import Array, Quant, TensorType, dequantize, quantize
from glowmcu.graph import evaluate as graph_evaluate
from glowmcu.graph.graph import Graph, Value, apply
from glowmcu.instr import evaluate as instr_evaluate
from glowmcu.instr.function import Function
from glowmcu.lowering.lower import lower
from glowmcu.ops.base import i8
from glowmcu.ops.binary_s8 import AddS8, MulS8, add_constants
from glowmcu.ops.elementwise import Elementwise
from glowmcu.ops.reduce import Reduce
from glowmcu.ops.softmax import Softmax
from glowmcu.ops.softmax_s8 import MAX_BYTE_COLS, SoftmaxS8

EVERY = np.arange(-128, 128).astype(np.int8)
EXTREMES = np.asarray([-128, -127, -1, 0, 1, 126, 127], np.int8)
QUANTS = st.builds(
    Quant.per_tensor,
    st.floats(-12, 5).map(lambda e: float(np.float32(2.0**e))),
    st.integers(-128, 127),
)


def built(op: Any, y: TensorType, *xs: TensorType) -> tuple[Graph, Function]:
    values = tuple(Value(f"x{n}", x) for n, x in enumerate(xs))
    assert op.integer(xs, (y,))
    node = apply(op, *values, name="y", types=(y,))
    graph = Graph("g", values, node.outputs, ("y",))
    return graph, lower(graph, graph.nodes(), "f")


def difference(graph: Graph, function: Function, *arrays: Array) -> int:
    feeds = {f"x{n}": a for n, a in enumerate(arrays)}
    meant = graph_evaluate.evaluate(graph, feeds)["y"]
    found = instr_evaluate.evaluate(function, feeds)["y"]
    return int(np.abs(meant.astype(int) - found.astype(int)).max())


@settings(max_examples=60, deadline=None)
@given(QUANTS, QUANTS, QUANTS, st.sampled_from(["add", "sub", "mul"]))
def test_two_tensors_are_within_1_lsb(a: Quant, b: Quant, y: Quant, fn: str) -> None:
    shapes = ((256, 1), (256,), (256, 256))
    types = [TensorType(dtypes.I8, s, q) for s, q in zip(shapes, (a, b, y), strict=True)]
    types[0] = types[0].with_shape((256, 256))
    op = Elementwise(fn)
    if not op.integer(types[:2], (types[2],)):
        return
    graph, function = built(op, types[2], types[0], types[1])
    assert isinstance(function.instructions[0], (AddS8, MulS8))
    grid = np.ascontiguousarray(np.broadcast_to(EVERY[:, None], (256, 256)))
    assert difference(graph, function, grid, EVERY) <= 1


@settings(max_examples=200, deadline=None)
@given(QUANTS, QUANTS, QUANTS, st.sampled_from([-1, 1]))
def test_sums_stay_within_32_bits(a: Quant, b: Quant, y: Quant, sign: int) -> None:
    found = add_constants(a, b, y, sign)
    if found is None:
        assert max(a.scale[0], b.scale[0]) / y.scale[0] > 100
        return
    for left in (-128, 127):
        for right in (-128, 127):
            products = left * found.a + right * found.b
            assert abs(left * found.a) < 1 << 31 and abs(products) < 1 << 31
            assert abs(products + found.offset) < 1 << 31


@pytest.mark.parametrize("cols", [1, 2, 10, 129, MAX_BYTE_COLS])
@pytest.mark.parametrize("scale", [0.3, 0.02, 0.0005])
@pytest.mark.parametrize("y", [(1 / 256, -128), (1 / 255, -127), (0.0001, 3), (0.02, 0)])
def test_softmax_is_within_1_lsb(cols: int, scale: float, y: tuple[float, int]) -> None:
    types = [i8(20, cols, scale=y[0], zero_point=y[1]), i8(20, cols, scale=scale)]
    graph, function = built(Softmax(), *types)
    rng = np.random.default_rng(cols)
    x = rng.integers(-128, 128, (20, cols)).astype(np.int8)
    x[0], x[1] = -128, 127
    x[2:4] = np.sort(x[2:4], axis=1)
    x[4] = -128
    x[4, 0] = 127
    assert difference(graph, function, x) <= 1


@pytest.mark.parametrize("kind", ["sum", "mean", "max", "min"])
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
def test_reductions_are_within_1_lsb(kind: str, axes: tuple[int, ...]) -> None:
    kept = tuple(1 if a in axes else n for a, n in enumerate((30, 50)))
    y = i8(*kept, scale=0.06 if kind != "sum" else 0.9, zero_point=-7)
    graph, function = built(Reduce(kind, axes), y, i8(30, 50, scale=0.05))
    x = np.random.default_rng(2).integers(-128, 128, (30, 50)).astype(np.int8)
    assert difference(graph, function, x) <= 1


@pytest.mark.cc
def test_c_gives_the_bits_of_the_reference(cc: str) -> None:
    quants = [Quant.per_tensor(s, z) for s, z in ((0.05, -128), (3.1, 127), (0.002, 0))]
    cases = []
    for number, y in enumerate(quants):
        for a in quants:
            for b in quants:
                for fn in ("add", "sub", "mul"):
                    shapes = [((7, 7), (7, 7)), ((7, 7), (7,)), ((7, 1), (7, 7))][number]
                    types = [
                        TensorType(dtypes.I8, s, q) for s, q in zip(shapes, (a, b), strict=True)
                    ]
                    result = TensorType(dtypes.I8, (7, 7), y)
                    if Elementwise(fn).integer(types, (result,)):
                        cases.append(_case(Elementwise(fn), result, *types))
        softmax = i8(7, 7).with_quant(y)
        cases.append(_case(Softmax(), i8(7, 7, scale=1 / 256, zero_point=-128), softmax))
    assert any(isinstance(i, SoftmaxS8) for i, _ in cases)
    flags = tuple(c_calls.SANITIZE)
    for (instruction, memory), (found,) in zip(cases, c_calls.run(cases, cc, flags), strict=True):
        np.testing.assert_array_equal(found, c_calls.expected(instruction, memory)[0])


def _case(op: Any, y: TensorType, *xs: TensorType) -> tuple[Any, dict[Any, Array]]:
    _, function = built(op, y, *xs)
    (instruction,) = function.instructions
    memory = c_calls.random_memory(instruction, 3)
    for operand in instruction.operands():
        if operand.role == "in" and operand.buffer.data is None:
            memory[operand.buffer] = np.resize(EXTREMES, operand.buffer.type.shape)
    return instruction, memory


def test_a_table_is_exactly_what_the_graph_means() -> None:
    quant = Quant.per_tensor(0.07, -30)
    for fn in ("sigmoid", "tanh", "hard_swish", "relu", "identity"):
        graph, function = built(Elementwise(fn), TensorType(dtypes.I8, (256,), quant), i8(256))
        assert difference(graph, function, EVERY) == 0
    right = quantize(dequantize(EVERY, i8(1).quant or quant), quant, dtypes.I8)
    np.testing.assert_array_equal(instr_evaluate.evaluate(function, {"x0": EVERY})["y"], right)
