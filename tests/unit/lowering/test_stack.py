"""Stacking of element-wise loops: what is merged, what is left alone, the result unchanged."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.types import Quant
from glowmcu.graph.graph import Graph, Value, apply, constant
from glowmcu.instr import verify as instr_verify
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.evaluate import evaluate
from glowmcu.instr.function import Function
from glowmcu.lowering.lower import lower
from glowmcu.lowering.stack import MAX_STEPS, stack_maps
from glowmcu.ops.base import f32, i8
from glowmcu.ops.elementwise import Elementwise
from glowmcu.ops.lut import Lut
from glowmcu.ops.quant import Dequantize, Quantize


def functions(outputs: list[Value], *inputs: Value) -> tuple[Function, Function]:
    graph = Graph("g", inputs, tuple(outputs), tuple(f"y{i}" for i in range(len(outputs))))
    before = lower(graph, graph.nodes(), "f")
    after = stack_maps(before)
    instr_verify.verify(after)
    rng = np.random.default_rng(0)
    feeds = {v.name: rng.normal(0, 20, v.shape).astype(v.type.dtype.numpy) for v in inputs}
    left, right = evaluate(before, feeds), evaluate(after, feeds)
    for name, array in left.items():
        np.testing.assert_array_equal(array, right[name])
    return before, after


def call(fn: str, *values: Value) -> Value:
    return apply(Elementwise(fn), *values, name=f"{fn}{len(values)}", origin=(fn,)).output


def test_a_chain_is_one_loop() -> None:
    x = Value("x", f32(3, 4))
    _, after = functions([call("abs", call("exp", call("neg", x)))], x)
    (only,) = after.instructions
    assert repr(only.program) == "(neg(x0), exp(t0), abs(t1))"  # type: ignore[attr-defined]
    assert only.origin == ("neg", "exp", "abs")


def test_two_branches_meet_in_one_loop() -> None:
    x, z = Value("x", f32(3, 4)), Value("z", f32(4))
    c = constant("c", np.arange(4, dtype=np.float32))
    _, after = functions([call("add", call("mul", x, c), call("sub", x, z))], x, z)
    assert len(after.instructions) == 1


def test_functions_of_one_8_bit_tensor_become_a_table() -> None:
    quant = Quant.per_tensor(0.05, 3)
    x = Value("x", i8(5, 7))
    real = apply(Dequantize(), x).output
    for _ in range(MAX_STEPS):
        real = call("mul", real, call("sigmoid", real))
    _, after = functions([apply(Quantize(dtypes.I8, quant), real).output], x)
    assert [type(i) for i in after.instructions] == [Lut]


def test_integers_around_float_functions_need_no_float_buffer() -> None:
    quant = Quant.per_tensor(0.05, 3)
    x, z = Value("x", i8(5, 7)), Value("z", i8(5, 7, scale=0.1))
    real = call("max", apply(Dequantize(), x).output, apply(Dequantize(), z).output)
    _, after = functions([apply(Quantize(dtypes.I8, quant), real).output], x, z)
    assert [b.type.dtype for b in after.buffers()] == [dtypes.I8] * 3


def test_a_result_that_others_need_stays() -> None:
    x = Value("x", f32(3, 4))
    shared = call("exp", x)
    _, after = functions([call("neg", shared), call("abs", shared)], x)
    assert len(after.instructions) == 3
    _, after = functions([shared, call("abs", shared)], x)
    assert len(after.instructions) == 2


def test_a_broadcast_result_is_computed_once() -> None:
    x, z = Value("x", f32(3, 4)), Value("z", f32(4))
    _, after = functions([call("add", x, call("exp", z))], x, z)
    assert len(after.instructions) == 2


def test_programs_stay_short() -> None:
    x = Value("x", f32(3))
    value = x
    for _ in range(2 * MAX_STEPS + 1):
        value = call("neg", value)
    _, after = functions([value], x)
    assert [len(i.program) for i in after.instructions] == [8, 8, 1]  # type: ignore[attr-defined]


def test_long_chains_take_no_square_of_their_length() -> None:
    x = Value("x", f32(2))
    values, count = [x], 800
    for number in range(count):
        op = Elementwise("sin" if number % 3 else "cos")
        values.append(apply(op, values[-1], name=f"n{number}", origin=("n",)).output)
    graph = Graph("g", (x,), (values[-1], values[count // 2]), ("y", "z"))
    calls = Counter[str]()

    class Counted(Function):
        @property
        def kept(self) -> tuple[Buffer, ...]:
            calls["kept"] += 1
            return super().kept

    before = lower(graph, graph.nodes(), "f")
    after = stack_maps(Counted(**{f.name: getattr(before, f.name) for f in fields(before)}))
    assert len(after.instructions) == count // MAX_STEPS
    assert calls["kept"] <= 2
