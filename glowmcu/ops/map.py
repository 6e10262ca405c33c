"""One loop nest that runs a small element-wise program over broadcast operands."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.dtypes import DType
from glowmcu.core.literal import c_literal
from glowmcu.core.types import Array
from glowmcu.errors import UnsupportedError
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.instruction import Guard, Ins, Instruction, Out, RowWindow
from glowmcu.ops._functions import FUNCTIONS, STORED
from glowmcu.ops._program import (
    Arg,
    Input,
    Literal,
    Program,
    Step,
    Temp,
    chosen_inputs,
    result_types,
    run,
)
from glowmcu.targets.kernel import Kernel


class Map(Instruction):
    """y = program(xs), element by element; every x broadcasts to the shape of y.

    one_row  of images, only one row each
    """

    y: Out
    xs: Ins
    program: Program
    one_row: bool = False

    kernels = (Kernel("gm_map", template="map.c.j2", view=lambda i: view(i)),)

    def reference(self, xs: list[Array]) -> Array:
        found = run(self.program, FUNCTIONS, xs)
        return np.broadcast_to(found, self.shape_of(self.y)).astype(self.y.type.dtype.numpy)

    def shape_of(self, buffer: Buffer) -> tuple[int, ...]:
        """Return the shape of an operand, of one row of it where the instruction makes one."""
        shape = buffer.type.shape
        return (*shape[:1], 1, *shape[2:]) if self.one_row and len(shape) == 4 else shape

    def windows(self) -> Mapping[str, RowWindow]:
        """A row makes a row; what has only one row serves them all."""
        shape = self.y.type.shape
        rows = [(1, 1, 1, 1, *x.type.shape)[-3] for x in self.xs]
        constant = [x.root.kind == "constant" for x in self.xs]
        if len(shape) != 4 or any(h > 1 and c for h, c in zip(rows, constant, strict=True)):
            return {}
        return {
            f"xs{n}": RowWindow(stride=int(h == shape[1]))
            for n, (h, is_constant) in enumerate(zip(rows, constant, strict=True))
            if not is_constant
        }

    def at_row(self, row: int) -> Map | None:
        return replace(self, one_row=True) if self.windows() else None

    def choices(self) -> Mapping[Buffer, Guard]:
        found = chosen_inputs(self.program, [x.type.numel == 1 for x in self.xs])
        return {
            self.xs[n]: Guard(self.xs[condition], when)
            for n, (condition, when) in found.items()
            if self.xs[condition].type.dtype is dtypes.BOOL
        }

    def shares(self) -> tuple[tuple[str, str], ...]:
        """y may lie where an x of as many elements does, if those are as wide or y's are bytes.

        The pair names the field, so it holds only if it holds for every x large enough.
        """
        size, numel = self.y.type.dtype.nbytes, math.prod(self.shape_of(self.y))
        found = [(x.type.dtype.nbytes, math.prod(self.shape_of(x))) for x in self.xs]
        large = [(s, n) for s, n in found if s * n >= size * numel]
        fits = all(n == numel and (s == size or size == 1) for s, n in large)
        return (("y", "xs"),) if fits else ()


def strides(shape: tuple[int, ...], target: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides with which a dense tensor of `shape` is read as one of shape `target`."""
    padded = (1,) * (len(target) - len(shape)) + shape
    return tuple(
        0 if size == 1 else math.prod(padded[axis + 1 :]) for axis, size in enumerate(padded)
    )


def collapse(
    target: tuple[int, ...], shapes: list[tuple[int, ...]]
) -> tuple[list[int], list[list[int]]]:
    """Return (sizes, strides of each operand) of the smallest loop nest over `target`."""
    steps = [strides(s, target) for s in shapes]
    sizes: list[int] = []
    merged: list[list[int]] = [[] for _ in shapes]
    for axis, size in enumerate(target):
        if size == 1:
            continue
        if sizes and all(m[-1] == s[axis] * size for m, s in zip(merged, steps, strict=True)):
            sizes[-1] *= size
            for m, s in zip(merged, steps, strict=True):
                m[-1] = s[axis]
        else:
            sizes.append(size)
            for m, s in zip(merged, steps, strict=True):
                m.append(s[axis])
    return sizes, merged


def view(i: Map) -> Mapping[str, Any]:
    """Return what the template prints: loops, loads, steps."""
    sizes, steps = collapse(i.shape_of(i.y), [i.shape_of(x) for x in i.xs])
    depth = len(sizes)
    loads: list[list[dict[str, str]]] = [[] for _ in range(depth + 1)]
    for number, (x, step) in enumerate(zip(i.xs, steps, strict=True)):
        level = max((d + 1 for d in range(depth) if step[d]), default=0)
        loads[level].append(
            {"type": x.type.dtype.c, "name": f"v{number}", "value": f"x{number}[{_index(step)}]"}
        )
    expressions = list(_expressions(i))
    dense = [math.prod(sizes[d + 1 :]) for d in range(depth)]
    place, result = _index(dense), expressions[-1]["value"]
    is_long = 4 * depth + len(place) + len(result) > 84
    return {
        "parameters": [
            f"{i.y.type.dtype.c} *y",
            *(f"const {x.type.dtype.c} *x{n}" for n, x in enumerate(i.xs)),
        ],
        "includes": _includes(i, [e["value"] for e in expressions]),
        "sizes": sizes,
        "indices": [_name(d) for d in range(depth)],
        "loads": loads,
        "steps": expressions if is_long else expressions[:-1],
        "result": expressions[-1]["name"] if is_long else result,
        "place": place,
    }


def _name(level: int) -> str:
    return "ijklmn"[level] if level < 6 else f"i{level}"


def _index(step: list[int]) -> str:
    terms = [
        _name(level) if s == 1 else f"{_name(level)} * {s}" for level, s in enumerate(step) if s
    ]
    return " + ".join(terms) or "0"


def _expressions(i: Map) -> Iterator[dict[str, str]]:
    """Yield type, name and C expression of every step."""
    inputs = [x.type.dtype for x in i.xs]
    types = result_types(i.program, FUNCTIONS, inputs)
    for number, (step, (operand, result)) in enumerate(zip(i.program, types, strict=True)):
        yield {
            "type": result.c,
            "name": f"t{number}",
            "value": expression(step, operand, result),
        }


def expression(step: Step, operand: DType, result: DType) -> str:
    """Return the C expression of a step that computes on `operand` and gives `result`."""
    text = FUNCTIONS[step.fn].c.get(operand.name if operand in STORED else operand.kind, "")
    if not text:
        raise UnsupportedError(
            f"the function {step.fn} is not available for elements of type {operand}",
            hint="convert the model to float32, or cast around the operation",
        )
    names = dict(zip("abc", (_argument(a) for a in step.args), strict=False))
    text = text.format(
        **names,
        f="" if operand is dtypes.F64 else "f",
        T=operand.c,
        U="uint64_t" if operand.bits == 64 else "uint32_t",
        W=64 if operand.bits == 64 else 32,
        BITS=operand.bits,
    )
    text = _BARE.sub(r"\1\2", text)
    exact = ("gm_quantize", f"gm_to_{result.c.removesuffix('_t')}")
    if result.is_float or text.startswith(exact) or re.fullmatch(rf"\({result.c}\)\w+", text):
        return text
    return f"({result.c})({text})"


def _argument(arg: Arg) -> str:
    if isinstance(arg, Input):
        return f"v{arg.index}"
    if isinstance(arg, Temp):
        return f"t{arg.index}"
    assert isinstance(arg, Literal)
    assert arg.dtype is not None
    return c_literal(arg.value, arg.dtype)


_BARE = re.compile(r"(\(|, )\((-[\w.]+)\)(?=[,)])")
"""A negative literal that is a whole argument needs no parentheses."""
_CALL = re.compile(r"\b([a-z]\w*)\(|\b(INFINITY|NAN)\b")


def _includes(i: Map, texts: list[str]) -> tuple[str, ...]:
    """Return the headers that the expressions need, as they are written after #include."""
    called = {name or macro for text in texts for name, macro in _CALL.findall(text)}
    kernels = {
        f'"{FUNCTIONS[step.fn].header}"'
        for step, text in zip(i.program, texts, strict=True)
        if any(name.startswith("gm_") for name, _ in _CALL.findall(text))
    }
    plain = any(not c.startswith("gm_") for c in called)
    return (*(("<math.h>",) if plain else ()), *sorted(kernels))
