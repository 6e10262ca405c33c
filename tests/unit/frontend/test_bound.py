"""Upper bounds of trip counts computed at run time."""

from __future__ import annotations

import numpy as np
import pytest

from glowmcu.core import dtypes
from glowmcu.core.types import TensorType
from glowmcu.frontend.bound import most
from glowmcu.graph.graph import Value, apply, constant
from glowmcu.ops.base import f32
from glowmcu.ops.cast import Cast
from glowmcu.ops.elementwise import Elementwise
from glowmcu.ops.reduce import Reduce
from glowmcu.ops.reshape import Reshape

N = Value("n", TensorType(dtypes.I64, ()))
C = Value("c", TensorType(dtypes.BOOL, ()))
SEVEN, NINE = (constant(f"k{n}", np.asarray(n, np.int64)) for n in (7, 9))


def made(fn: str, *values: Value) -> Value:
    return apply(Elementwise(fn), *values).output


@pytest.mark.parametrize(
    ("value", "bound"),
    [
        (SEVEN, 7),
        (N, None),
        (made("min", N, NINE), 9),
        (made("min", NINE, made("min", N, SEVEN)), 7),
        (made("max", N, NINE), None),
        (made("max", made("min", N, NINE), SEVEN), 9),
        (made("clip", N, constant("low", np.asarray(0, np.int64)), NINE), 9),
        (made("where", C, SEVEN, NINE), 9),
        (made("where", C, SEVEN, N), None),
        (made("add", made("min", N, NINE), SEVEN), None),
        (apply(Reshape(()), apply(Reshape((1,)), made("min", N, NINE)).output).output, 9),
        (apply(Cast(dtypes.I64), Value("u", TensorType(dtypes.U8, ()))).output, 255),
        (apply(Cast(dtypes.I64), Value("f", f32())).output, None),
        (apply(Reduce("argmax", (0,), False), Value("x", f32(12))).output, 11),
    ],
)
def test_most(value: Value, bound: int | None) -> None:
    assert most(value) == bound
