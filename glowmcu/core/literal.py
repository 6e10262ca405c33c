"""Numbers as C literals: exact, shortest, of the type that the expression around them wants."""

from __future__ import annotations

import math

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.dtypes import DType

_WRAP = {"i64": "INT64_C({})", "u64": "UINT64_C({})", "u32": "{}u"}


def c_literal(value: float | int | bool, dtype: DType) -> str:
    """Return `value` as a C expression of type `dtype`; negative numbers come in parentheses.

    Infinities and NaN are the macros of math.h; 16-bit floats are their stored bits.
    """
    if dtype.is_float and dtype.bits <= 16:
        bits = np.asarray(value, dtype.numpy).view(np.uint16 if dtype.bits == 16 else np.uint8)
        return f"{int(bits):#0{2 + dtype.nbytes * 2}x}"
    if dtype.is_float:
        text = _float_text(float(value), dtype)
    else:
        number = int(value)
        if number == dtypes.I64.low:
            return "INT64_MIN"
        if number == dtypes.I32.low and dtype is not dtypes.I64:
            return "INT32_MIN"
        text = _WRAP.get(dtype.name, "{}").format(number)
    return f"({text})" if "-" in text[:1] else text


def _float_text(value: float, dtype: DType) -> str:
    cast = "" if dtype is dtypes.F32 else "(double)"
    if math.isnan(value):
        return f"{cast}NAN"
    if math.isinf(value):
        return f"{cast}INFINITY" if value > 0 else f"-{cast}INFINITY"
    text = repr(value) if dtype is dtypes.F64 else str(np.float32(value))
    if "." not in text and "e" not in text:
        text += ".0"
    return text + ("" if dtype is dtypes.F64 else "f")
