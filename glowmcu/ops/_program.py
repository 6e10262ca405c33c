"""Small straight-line programs over one element: what a Map instruction computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from glowmcu.core.dtypes import DType
from glowmcu.core.types import Array


@dataclass(frozen=True)
class Input:
    """Operand `index` of the instruction (in a function's expansion: its argument)."""

    index: int

    def __repr__(self) -> str:
        return f"x{self.index}"


@dataclass(frozen=True)
class Temp:
    """The result of step `index`."""

    index: int

    def __repr__(self) -> str:
        return f"t{self.index}"


@dataclass(frozen=True)
class Literal:
    """A number known at compile time; in a function's expansion it takes the argument's type."""

    value: float | int | bool
    dtype: DType | None = None

    def __repr__(self) -> str:
        return repr(self.value)


Arg = Input | Temp | Literal


@dataclass(frozen=True)
class Step:
    """One application of a function to arguments."""

    fn: str
    args: tuple[Arg, ...]

    def __repr__(self) -> str:
        return f"{self.fn}({', '.join(map(repr, self.args))})"


Program = tuple[Step, ...]


@dataclass(frozen=True)
class Fn:
    """An element-wise function.

    arity     number of arguments
    c         C expression by the kind of the arguments (float, int, uint, bool; the 16-bit float
              formats by name); integer results are cast to their type. Placeholders: {a} {b} {c}
              arguments, {f} suffix of float names and literals, {T} the C type, {BITS} its bits,
              {U} the unsigned type to wrap in, {W} its bits
    numpy     the same with numpy; None for a function that is given by `steps`
    steps     expansion into other functions, for those that use a subexpression twice
    result    element type of the result; None: that of the arguments
    typed_by  index of the argument whose type chooses the C expression
    onnx      name of the ONNX operator that is this function, argument for argument
    header    of runtime_c/core, where the expression calls into one
    """

    arity: int
    c: Mapping[str, str] = field(default_factory=dict)
    numpy: Callable[..., Any] | None = None
    steps: Program = ()
    result: DType | None = None
    typed_by: int = 0
    onnx: str = ""
    header: str = ""


def run(program: Program, table: Mapping[str, Fn], arrays: Sequence[Array]) -> Array:
    """Run a program with numpy, broadcasting; the result is that of the last step."""
    temps: list[Array] = []

    def load(arg: Arg) -> Array:
        if isinstance(arg, Input):
            return arrays[arg.index]
        if isinstance(arg, Temp):
            return temps[arg.index]
        assert arg.dtype is not None
        return np.asarray(arg.value, arg.dtype.numpy)

    with np.errstate(all="ignore"):
        for step in program:
            function = table[step.fn].numpy
            assert function is not None, f"{step.fn} is not expanded"
            temps.append(np.asarray(function(*(load(a) for a in step.args))))
    return temps[-1]


def result_types(
    program: Program, table: Mapping[str, Fn], inputs: Sequence[DType]
) -> tuple[tuple[DType, DType], ...]:
    """Return (type that the step computes in, type of its result) of every step."""
    types: list[tuple[DType, DType]] = []

    def dtype(arg: Arg) -> DType:
        if isinstance(arg, Input):
            return inputs[arg.index]
        if isinstance(arg, Temp):
            return types[arg.index][1]
        assert arg.dtype is not None
        return arg.dtype

    for step in program:
        fn = table[step.fn]
        operand = dtype(step.args[fn.typed_by])
        types.append((operand, fn.result or operand))
    return tuple(types)


def expand(fn: str, table: Mapping[str, Fn], args: tuple[Arg, ...], dtype: DType) -> Program:
    """Return the steps of one application: one, or the expansion of a composite function."""
    out: list[Step] = []
    _expand_into(out, fn, table, args, dtype)
    return tuple(out)


def _expand_into(
    out: list[Step], fn: str, table: Mapping[str, Fn], args: tuple[Arg, ...], dtype: DType
) -> Temp:
    if not table[fn].steps:
        out.append(Step(fn, args))
        return Temp(len(out) - 1)
    results: list[Temp] = []
    for step in table[fn].steps:
        inner: list[Arg] = []
        for arg in step.args:
            if isinstance(arg, Input):
                inner.append(args[arg.index])
            elif isinstance(arg, Temp):
                inner.append(results[arg.index])
            else:
                inner.append(Literal(arg.value, dtype))
        results.append(_expand_into(out, step.fn, table, tuple(inner), dtype))
    return results[-1]


def append(program: Program, more: Program, inputs: Mapping[int, Arg]) -> Program:
    """Return `program` followed by `more`, whose Input(i) become inputs[i]; its temps move up."""
    base = len(program)

    def move(arg: Arg) -> Arg:
        if isinstance(arg, Input):
            return inputs[arg.index]
        return Temp(arg.index + base) if isinstance(arg, Temp) else arg

    return program + tuple(Step(s.fn, tuple(map(move, s.args))) for s in more)


def chosen_inputs(program: Program, single: Sequence[bool]) -> dict[int, tuple[int, bool]]:
    """Return the inputs that matter only where another one, of one element, is true, or false.

    single  whether an input has one element
    """
    found: dict[Arg, tuple[int, bool] | None] = {Temp(len(program) - 1): None}
    for number in reversed(range(len(program))):
        step, wanted = program[number], found.get(Temp(number))
        for place, arg in enumerate(step.args):
            matters = wanted
            test = step.args[0]
            if wanted is None and step.fn == "where" and place:
                if isinstance(test, Input) and single[test.index]:
                    matters = (test.index, place == 1)
            if found.setdefault(arg, matters) != matters:
                found[arg] = None
    return {a.index: m for a, m in found.items() if isinstance(a, Input) and m is not None}
