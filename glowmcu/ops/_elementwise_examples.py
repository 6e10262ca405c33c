"""Examples of the element-wise card: every function of the table, every integer lowering."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.types import Quant, TensorType
from glowmcu.ops._functions import FUNCTIONS
from glowmcu.ops.base import Example, f32, i8, i16

_PAIRS = (((2, 3, 4), (2, 3, 4)), ((2, 3, 5), (5,)), ((6, 1), (6, 7)), ((2, 6), (1, 1)))


def _example(fn: str) -> Example:
    """Return an example of a function on the type that suits it."""
    info = FUNCTIONS[fn]
    if fn == "where":
        return Example((TensorType(dtypes.BOOL, (3, 4)), f32(3, 4), f32(4)), {"fn": fn}, low=0)
    if fn == "dequantize":
        stored = (TensorType(dtypes.I8, (5,)), f32(), TensorType(dtypes.I32, ()))
        return Example(stored, {"fn": fn}, (1, 2), low=1)
    kind = next(k for k in ("float", "int", "uint", "bool") if info.steps or info.c.get(k))
    dtype = {"float": dtypes.F32, "int": dtypes.I32, "uint": dtypes.U8, "bool": dtypes.BOOL}[kind]
    shapes = ((2, 7), (7,), ())[: info.arity]
    low = 1.0 if fn == "acosh" else 0.05 if fn in ("log", "sqrt", "pow") else -0.9
    high = 0.9 if low < 0 else 3.0
    types = tuple(TensorType(dtype, shape) for shape in shapes)
    low, high = (low, high) if dtype.is_float else (0.0, 2.0 if kind == "bool" else 9.0)
    return Example(types, {"fn": fn}, low=low, high=high, tolerance=1e-5)


def _lut_example(fn: str) -> Example:
    return Example((i8(3, 11),), {"fn": fn}, output=i8(3, 11, scale=0.03, zero_point=11))


def _s16_examples(fn: str) -> Iterator[Example]:
    """Yield examples of one function of int16, and between int8 and int16."""
    x, y = i16(3, 111, scale=2.0**-13), i16(3, 111, scale=2.0**-13, zero_point=9)
    for a, c in ((x, y), (i8(3, 111), y), (x, i8(3, 111))):
        yield Example((a,), {"fn": fn}, output=c, low=-4.0, high=4.0, tolerance=1)


def _s16_pairs(fn: str) -> Iterator[Example]:
    """Yield examples of two int16, and of int8 among them."""
    a, b, y = i16(3, 5), i16(3, 5, scale=2e-4), i16(3, 5, scale=2.5e-4, zero_point=-5)
    for types in ((a, b, y), (b, a.with_shape((5,)), y), (i8(3, 5), b, y), (a, b, i8(3, 5))):
        yield Example(types[:2], {"fn": fn}, output=types[2], tolerance=1)


def _s8_example(fn: str, x: tuple[int, ...], z: tuple[int, ...]) -> Example:
    y = tuple(np.broadcast_shapes(x, z))
    types = (i8(*x), i8(*z, scale=0.02, zero_point=50))
    return Example(types, {"fn": fn}, output=i8(*y, scale=0.07, zero_point=-11), tolerance=1)


_U16 = TensorType(dtypes.U16, (3, 5), Quant.per_tensor(1e-4))

EXAMPLES = (
    *(_example(fn) for fn in FUNCTIONS if not fn.startswith(("cast_", "quantize_", "clamp"))),
    Example((f32(2, 3, 4), f32(3, 1)), {"fn": "add", "clamp": (0.0, math.inf)}),
    Example((f32(2, 1, 4), f32(3, 1)), {"fn": "mul", "clamp": (-1.0, 1.0)}),
    *(_lut_example(fn) for fn in ("relu", "sigmoid", "hard_swish", "gelu", "identity")),
    Example((i8(2, 9), f32()), {"fn": "leaky_relu"}, (1,), i8(2, 9, scale=0.03, zero_point=9)),
    *(_s8_example("add", *shapes) for shapes in _PAIRS),
    *(_s8_example("sub", *shapes) for shapes in _PAIRS),
    *(_s8_example("mul", *shapes) for shapes in _PAIRS),
    Example(
        (i8(3, 7), i8(3, 7, scale=0.02, zero_point=50)),
        {"fn": "add", "clamp": (0.0, math.inf)},
        output=i8(3, 7, scale=0.04, zero_point=-128),
        tolerance=1,
    ),
    *(
        e
        for fn in ("relu", "sigmoid", "tanh", "gelu", "hard_swish", "abs")
        for e in _s16_examples(fn)
    ),
    Example((i16(2, 9), f32()), {"fn": "leaky_relu"}, (1,), i16(2, 9), tolerance=1),
    *(e for fn in ("add", "sub", "mul") for e in _s16_pairs(fn)),
    Example(
        (i16(3, 7), i16(3, 1, scale=2e-4, zero_point=50)),
        {"fn": "add", "clamp": (0.0, math.inf)},
        output=i16(3, 7, scale=2e-4),
        tolerance=1,
    ),
    Example((i16(3, 5, zero_point=-32768),), {"fn": "identity"}, (), _U16, low=0.0, high=6.0),
    Example((_U16,), {"fn": "identity"}, (), i16(3, 5, zero_point=-32768), low=0.0, high=6.0),
    *(
        Example((x, slope), {"fn": "prelu"}, (1,), y, tolerance=1)
        for x, y in (
            (i8(2, 4, 5), i8(2, 4, 5, scale=0.03, zero_point=9)),
            (i16(2, 4, 5, zero_point=3), i16(2, 4, 5, scale=3e-4)),
            (i8(2, 4, 5), i16(2, 4, 5)),
        )
        for slope in (f32(4, 1), i8(5, scale=0.01))
    ),
    Example((i16(3, 5), i16(3, 5)), {"fn": "max"}, output=i16(3, 5)),
    Example((i8(3, 5), i8(3, 5)), {"fn": "max"}, output=i8(3, 5)),
    Example((i8(3, 5), i8(5)), {"fn": "min"}, output=i8(3, 5)),
    Example(
        (TensorType(dtypes.BOOL, (3, 1)), i8(3, 5), i8(5)), {"fn": "where"}, output=i8(3, 5), low=0
    ),
)
