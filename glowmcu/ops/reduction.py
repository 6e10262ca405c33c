"""Instructions that combine elements along axes: one loop nest each, rendered for its shape."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.dtypes import DType
from glowmcu.core.fixedpoint import requantize
from glowmcu.core.literal import c_literal
from glowmcu.core.types import Array
from glowmcu.instr.instruction import In, Instruction, Out
from glowmcu.ops._functions import FUNCTIONS
from glowmcu.targets.kernel import Kernel


def _lowest(x: Array) -> Any:
    return -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min if x.dtype.kind != "b" else 0


def _highest(x: Array) -> Any:
    return np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).max if x.dtype.kind != "b" else 1


def _log_sum_exp(x: Array, axis: tuple[int, ...]) -> Array:
    highest = x.max(axis=axis, keepdims=True, initial=_lowest(x))
    base = np.where(np.isfinite(highest), highest, 0)
    return np.asarray(np.log(np.exp(x - base).sum(axis=axis, keepdims=True)) + base)


def _mean(x: Array, axis: tuple[int, ...]) -> Array:
    """The mean; of integers cut towards zero, as the C division does it."""
    if x.dtype.kind == "f":
        return np.asarray(x.mean(axis=axis, keepdims=True))
    quotient = FUNCTIONS["div"].numpy
    assert quotient is not None
    count = np.asarray(math.prod(x.shape[a] for a in axis), np.int64)
    return np.asarray(quotient(x.astype(np.int64).sum(axis=axis, keepdims=True), count))


NUMPY: dict[str, Callable[..., Any]] = {
    "sum": lambda x, axis: x.sum(axis=axis, keepdims=True),
    "mean": _mean,
    "max": lambda x, axis: x.max(axis=axis, keepdims=True, initial=_lowest(x)),
    "min": lambda x, axis: x.min(axis=axis, keepdims=True, initial=_highest(x)),
    "prod": lambda x, axis: x.prod(axis=axis, keepdims=True),
    "l1": lambda x, axis: np.abs(x).sum(axis=axis, keepdims=True),
    "l2": lambda x, axis: np.sqrt((x * x).sum(axis=axis, keepdims=True)),
    "sum_square": lambda x, axis: (x * x).sum(axis=axis, keepdims=True),
    "log_sum": lambda x, axis: np.log(x.sum(axis=axis, keepdims=True)),
    "log_sum_exp": _log_sum_exp,
}


def reduce_array(kind: str, axes: tuple[int, ...], select_last: bool, x: Array) -> Array:
    """Reduce an array with numpy; the axes stay with size 1."""
    if kind in ("argmax", "argmin"):
        return _index_of_extreme(x, axes[0], kind == "argmin", select_last)
    with np.errstate(all="ignore"):
        return np.asarray(NUMPY[kind](x, axes)).astype(x.dtype)


def _index_of_extreme(x: Array, axis: int, lowest: bool, last: bool) -> Array:
    find = np.argmin if lowest else np.argmax
    if not last:
        return np.expand_dims(find(x, axis), axis).astype(np.int64)
    found = x.shape[axis] - 1 - find(np.flip(x, axis), axis)
    return np.expand_dims(np.asarray(found), axis).astype(np.int64)


@dataclass(frozen=True)
class Scaling:
    """How a sum of stored integers becomes one: requantize(offset + sum)."""

    offset: int
    multiplier: int
    shift: int
    zero_point: int


class Reduction(Instruction):
    """y = combination of x along axes; see ops.reduce for the kinds.

    select_last  of equal extremes the last one
    scaling      of a sum of stored integers (int8 or int16) that becomes one
    """

    y: Out
    x: In
    kind: str
    axes: tuple[int, ...]
    select_last: bool = False
    scaling: Scaling | None = None

    kernels = (Kernel("gm_reduce", template="reduce.c.j2", view=lambda i: _view(i)),)

    def reference(self, x: Array) -> Array:
        s = self.scaling
        if s is None:
            return reduce_array(self.kind, self.axes, self.select_last, x)
        acc = x.astype(np.int64).sum(axis=self.axes, keepdims=True) + s.offset
        low, high = self.y.type.dtype.low, self.y.type.dtype.high
        return requantize(acc, s.multiplier, s.shift, s.zero_point, low, high, average=True)


_LETTERS = "ijklmn"


def _loops(i: Any) -> dict[str, Any]:
    """Return the loops over kept and over reduced dimensions and the places in x and y."""
    dims: list[tuple[int, bool, int]] = []  # size, reduced, stride in x
    shape = i.x.type.shape
    for axis, size in enumerate(shape):
        stride, reduced = math.prod(shape[axis + 1 :]), axis in i.axes
        if size == 1:
            continue
        if dims and dims[-1][1] == reduced:
            dims[-1] = (dims[-1][0] * size, reduced, stride)
        else:
            dims.append((size, reduced, stride))
    dims.sort(key=lambda d: d[1])
    names = [_LETTERS[n] if n < len(_LETTERS) else f"i{n}" for n in range(len(dims))]
    kept = [n for n, d in enumerate(dims) if not d[1]]
    steps = [math.prod(dims[m][0] for m in kept if m > n) for n in kept]
    return {
        "kept": [(names[n], dims[n][0]) for n in kept],
        "reduced": [(names[n], d[0]) for n, d in enumerate(dims) if d[1]],
        "place": _index([(names[n], s) for n, s in zip(kept, steps, strict=True)]),
        "element": _index([(names[n], d[2]) for n, d in enumerate(dims)]),
        "y": i.y.type.dtype.c,
        "x": i.x.type.dtype.c,
    }


def _index(terms: list[tuple[str, int]]) -> str:
    return " + ".join(n if s == 1 else f"{n} * {s}" for n, s in terms) or "0"


def _scaled(s: Scaling, y: DType) -> dict[str, Any]:
    arguments = f"acc, {s.multiplier}, {s.shift}, {s.zero_point}, {y.low}, {y.high}"
    return {
        "includes": ['"gm_requant.h"'],
        "type": "int32_t",
        "first": c_literal(s.offset, dtypes.I32),
        "step": "acc + v",
        "result": f"({y.c})gm_requant_average({arguments})",
    }


def _view(i: Reduction) -> Mapping[str, Any]:
    return {**_loops(i), "better": "", **_body(i)}


def _body(i: Reduction) -> dict[str, Any]:
    dtype = i.x.type.dtype
    if i.scaling:
        return _scaled(i.scaling, i.y.type.dtype)
    if i.kind.startswith("arg"):
        sign = "<" if i.kind == "argmin" else ">"
        better = f"v {sign}{'=' if i.select_last else ''} acc"
        if dtype.is_float:  # NaN is better than any number, as in numpy
            not_better = f"v {'>' if sign == '<' else '<'}= acc"
            better = f"v != v || {better}" if i.select_last else f"(acc == acc && !({not_better}))"
        body = {"type": dtype.c, "first": "0", "step": "v", "result": "best", "includes": []}
        return {**body, "better": better}
    return _accumulate(i.kind, dtype, math.prod(i.x.type.shape[a] for a in i.axes))


def _accumulate(kind: str, dtype: DType, count: int) -> dict[str, Any]:
    """Return type, first value, step and result of the accumulator."""
    real = dtype.is_float
    f = "" if dtype is dtypes.F64 else "f"
    wide = dtype.c if real else "uint64_t" if dtype.bits == 64 or kind == "mean" else "uint32_t"
    if kind in ("max", "min"):
        return _extreme(kind, dtype)
    value = "v" if real else f"({wide})v"
    if kind in ("l2", "sum_square"):
        value = f"{value} * {value}"
    elif kind == "l1" and real:
        value = f"fabs{f}(v)"
    elif kind == "l1" and dtype.kind == "int":
        value = f"(v < 0 ? 0u - ({wide})v : ({wide})v)"
    step = f"acc * {value}" if kind == "prod" else f"acc + {value}"
    start: float = 1 if kind == "prod" else 0
    result = {"l2": f"sqrt{f}(acc)", "log_sum": f"log{f}(acc)"}.get(kind, "acc")
    if kind == "mean":
        narrow = "acc" if real or dtype.kind == "uint" else f"({wide.removeprefix('u')})acc"
        result = f"{narrow} / {c_literal(count, dtype if real else dtypes.U8)}"
    if not real and (kind == "mean" or dtype.c != wide):
        result = f"({dtype.c})({result})" if "/" in result else f"({dtype.c}){result}"
    return {
        "type": wide,
        "first": c_literal(start, dtype) if real else str(int(start)),
        "step": step,
        "result": result,
        "includes": ["<math.h>"] if real and kind in ("l1", "l2", "log_sum") else [],
    }


def _extreme(kind: str, dtype: DType) -> dict[str, Any]:
    sign = ">" if kind == "max" else "<"
    first = (-math.inf if kind == "max" else math.inf) if dtype.is_float else 0
    if not dtype.is_float:
        low, high = (0, 1) if dtype.kind == "bool" else (dtype.low, dtype.high)
        first = low if kind == "max" else high
    nan = " || v != v" if dtype.is_float else ""
    test = f"(v {sign} acc{nan})" if nan else f"v {sign} acc"
    return {
        "type": dtype.c,
        "first": c_literal(first, dtype),
        "step": f"{test} ? v : acc",
        "result": "acc",
        "includes": ["<math.h>"] if dtype.is_float else [],
    }
