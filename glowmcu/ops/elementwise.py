"""Element-wise operators: one card for every function of the table in _functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.dtypes import DType
from glowmcu.core.types import Array, Quant, TensorType, dequantize, quantize
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder
from glowmcu.ops._elementwise_examples import EXAMPLES
from glowmcu.ops._functions import FUNCTIONS
from glowmcu.ops._linear import clamp_range
from glowmcu.ops._prelu import emit_prelu, has_integer_prelu
from glowmcu.ops._program import (
    Arg,
    Input,
    Literal,
    Program,
    Step,
    Temp,
    append,
    expand,
    result_types,
    run,
)
from glowmcu.ops.base import Op
from glowmcu.ops.binary_s8 import emit_add, emit_mul, has_integer_add, has_integer_mul
from glowmcu.ops.lut import emit_lut, every_value, has_table, is_byte
from glowmcu.ops.map import Map

_SELECTING = ("max", "min", "where")
"""Functions that give one of their last two operands: stored integers of one meaning will do."""


class Elementwise(Op):
    """fn over its inputs, numpy broadcasting; a float result is clamped to `clamp`."""

    fn: str
    clamp: tuple[float, float] | None = None

    def infer(self, *types: TensorType) -> TensorType:
        fn = FUNCTIONS[self.fn]
        if len(types) != fn.arity:
            raise TypeError(f"{self.fn} takes {fn.arity} operands, not {len(types)}")
        shape = np.broadcast_shapes(*(t.shape for t in types))
        program = self.program(types[fn.typed_by].dtype, tuple(map(Input, range(fn.arity))))
        result = result_types(program, FUNCTIONS, [t.dtype for t in types])[-1][1]
        return TensorType(result, tuple(shape))

    def reference(self, *arrays: Array) -> Array:
        operand = dtypes.of(arrays[FUNCTIONS[self.fn].typed_by].dtype)
        program = self.program(operand, tuple(map(Input, range(len(arrays)))))
        return run(program, FUNCTIONS, arrays)

    def program(self, operand: DType, args: tuple[Arg, ...]) -> Program:
        """Return the steps that compute this operator from `args`."""
        program = expand(self.fn, FUNCTIONS, args, operand)
        if self.clamp is None:
            return program
        return append(program, clamp_steps(self.clamp, operand), {0: Temp(len(program) - 1)})

    def integer(self, inputs: Any, outputs: Any) -> bool:
        (y,) = outputs
        if any(t is None or not _per_tensor(t) for t in (*inputs, y)):
            return False
        if self.fn == "identity" and is_other_sign(inputs[0], y):
            return True
        return _fits_table(inputs, y) or self._fits_two(inputs, y)

    def _fits_two(self, inputs: Any, y: TensorType) -> bool:
        """Tell whether there is integer arithmetic on two stored tensors for this function."""
        if self.fn in _SELECTING:
            return self.clamp is None and _one_quant(inputs[-2:], y)
        if len(inputs) != 2:
            return False
        x, z = inputs
        if self.fn == "prelu" and self.clamp is None and has_integer_prelu(x, z, y):
            return True
        if self.fn in ("add", "sub"):
            return has_integer_add(x, z, y, 1 if self.fn == "add" else -1)
        return self.fn == "mul" and has_integer_mul(x, z, y)

    def lower(self, b: Builder, *inputs: Buffer) -> Buffer:
        y = b.result()
        types = [x.type for x in inputs]
        if y.type.quant is None and all(t.quant is None for t in types):
            args = tuple(operand(x, i) for i, x in enumerate(inputs))
            emit_map(b, y, inputs, self.program(_computed_in(self.fn, types), args))
            return y
        if self.fn == "identity" and is_other_sign(inputs[0].type, y.type):
            emit_other_sign(b, y, inputs[0])
            return y
        table = self._table(inputs, y.type)
        if table is not None:
            emit_lut(b, y, *table)
        elif not self._lower_two(b, y, inputs):
            self._lower_by_meaning(b, y, inputs)
        return y

    def _table(self, inputs: tuple[Buffer, ...], y: TensorType) -> tuple[Buffer, Array] | None:
        """Return (operand, values) where all operands but one 8- or 16-bit tensor are numbers."""
        varying = [x for x in inputs if x.data is None or not _is_uniform(x.data)]
        if len(set(varying)) != 1:
            return None
        x = varying[0]
        if not has_table(x.type, y) or x.type.shape != y.shape or not _per_tensor(x.type, y):
            return None
        reals = []
        for item in inputs:
            stored = every_value(x.type.dtype) if item is x else item.data.reshape(-1)[:1]  # type: ignore[union-attr]
            reals.append(dequantize(stored, item.type.quant) if item.type.quant else stored)
        found = self.reference(*reals)
        return x, quantize(found, y.quant, y.dtype) if y.quant else found

    def _lower_two(self, b: Builder, y: Buffer, inputs: tuple[Buffer, ...]) -> bool:
        """Emit integer arithmetic on two stored tensors; tell whether there was one."""
        types = tuple(x.type for x in inputs)
        if not _per_tensor(*types, y.type) or not self._fits_two(types, y.type):
            return False
        if self.fn in _SELECTING:
            emit_map(b, y, inputs, (Step(self.fn, tuple(map(Input, range(len(inputs))))),))
            return True
        if self.fn == "prelu":
            return emit_prelu(b, y, *inputs)
        low, high = clamp_range(self.clamp, y.type)
        if self.fn == "mul":
            emit_mul(b, y, inputs[0], inputs[1], low, high)
        else:
            sign = 1 if self.fn == "add" else -1
            emit_add(b, y, inputs[0], inputs[1], sign, low, high)
        return True

    def _lower_by_meaning(self, b: Builder, y: Buffer, inputs: tuple[Buffer, ...]) -> None:
        """Emit the definition: dequantize, compute in float, quantize, in one loop."""
        program: Program = ()
        args: list[Arg] = []
        for index, x in enumerate(inputs):
            if x.type.quant is None:
                args.append(operand(x, index))
                continue
            program += (Step("dequantize", (Input(index), *_quant_args(x.type.quant))),)
            args.append(Temp(len(program) - 1))
        computed = _computed_in(self.fn, [x.type.real() for x in inputs])
        inner = self.program(computed, tuple(map(Input, range(len(args)))))
        program = append(program, inner, dict(enumerate(args)))
        if y.type.quant is not None:
            last = Temp(len(program) - 1)
            args_ = (last, *_quant_args(y.type.quant))
            program += (Step(f"quantize_{y.type.dtype}", args_),)
        emit_map(b, y, inputs, program)

    examples = EXAMPLES


def is_other_sign(x: TensorType, y: TensorType) -> bool:
    """Tell whether y means the same as x, its integers lying half the range of 16 bits away."""
    if {x.dtype, y.dtype} != {dtypes.I16, dtypes.U16} or x.quant is None or y.quant is None:
        return False
    away = y.quant.zero_point[0] - x.quant.zero_point[0] == y.dtype.low - x.dtype.low
    return _per_tensor(x, y) and away and x.quant.scale == y.quant.scale


def emit_other_sign(b: Builder, y: Buffer, x: Buffer) -> None:
    """Emit y = x with the top bit turned."""
    turned = Step("bitwise_xor", (Temp(0), Literal(-(1 << 15), dtypes.I16)))
    steps = [Step("cast_i16", (Input(0),)), turned, Step("cast_u16", (Temp(1),))]
    emit_map(b, y, (x,), tuple(steps if y.type.dtype is dtypes.U16 else steps[:2]))


def _per_tensor(*types: TensorType) -> bool:
    return all(t.quant is None or t.quant.axis is None for t in types)


def _fits_table(inputs: Any, y: TensorType) -> bool:
    """Tell whether one operand is a tensor with a table and the others, if constant, numbers."""
    tensors = [t for t in inputs if t.numel > 1] or [t for t in inputs if has_table(t, y)][:1]
    return len(tensors) == 1 and has_table(tensors[0], y) and tensors[0].shape == y.shape


def _one_quant(inputs: Any, y: TensorType) -> bool:
    fits = is_byte(y.dtype) or y.dtype is dtypes.I16
    return fits and all(t.quant == y.quant and t.dtype is y.dtype for t in inputs)


def _computed_in(fn: str, types: list[TensorType]) -> DType:
    return types[FUNCTIONS[fn].typed_by].dtype


def _quant_args(quant: Quant) -> tuple[Literal, Literal]:
    assert quant.axis is None, "per-axis quantization of an element-wise operand"
    return Literal(quant.scale[0], dtypes.F32), Literal(quant.zero_point[0], dtypes.I32)


def _is_uniform(data: Array) -> bool:
    return data.size > 0 and data.tobytes() == data.reshape(-1)[:1].tobytes() * data.size


def operand(x: Buffer, index: int) -> Arg:
    """Return Input(index), or a literal for a constant that holds one and the same number."""
    if x.data is not None and _is_uniform(x.data):
        return Literal(x.data.reshape(-1)[0].item(), x.type.dtype)
    return Input(index)


def clamp_steps(clamp: tuple[float, float], dtype: DType) -> Program:
    """Return the steps that clamp Input(0)."""
    low, high = (Literal(v, dtype) for v in clamp)
    if math.isinf(clamp[1]):
        if clamp[0] == 0.0:
            return (Step("relu", (Input(0),)),)
        return (Step("max", (Input(0), low)),)
    if math.isinf(clamp[0]):
        return (Step("min", (Input(0), high)),)
    return (Step("clamp", (Input(0), low, high)),)


def emit_map(b: Builder, y: Buffer, inputs: tuple[Buffer, ...], program: Program) -> None:
    """Emit a Map over the inputs that the program reads, each of them once."""
    used = {a.index for s in program for a in s.args if isinstance(a, Input)}
    xs = tuple(dict.fromkeys(inputs[i] for i in sorted(used)))
    places: dict[int, Arg] = {i: Input(xs.index(inputs[i])) for i in used}
    b.emit(Map(y=y, xs=xs, program=append((), tuple(map(_ordered, program)), places)))


def _ordered(step: Step) -> Step:
    """Return a clip between literals in order as the simpler clamp."""
    match step:
        case Step("clip", (_, Literal(low), Literal(high))) if low <= high:
            return Step("clamp", step.args)
    return step
