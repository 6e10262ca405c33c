"""The one table of element-wise functions: numpy meaning and C expression by kind of type."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.types import Array, Quant, quantize
from glowmcu.ops import _small_floats
from glowmcu.ops._program import Fn, Input, Literal, Step, Temp

HALVES = (dtypes.F16, dtypes.BF16)
STORED = (*HALVES, *dtypes.SMALL_FLOATS)
"""Formats of real numbers that C has no arithmetic for."""

FLOAT_MATH = {  # ONNX name: numpy function; the C name is the lower-case ONNX name
    "Exp": np.exp,
    "Log": np.log,
    "Sqrt": np.sqrt,
    "Sin": np.sin,
    "Cos": np.cos,
    "Tan": np.tan,
    "Asin": np.arcsin,
    "Acos": np.arccos,
    "Atan": np.arctan,
    "Sinh": np.sinh,
    "Cosh": np.cosh,
    "Tanh": np.tanh,
    "Asinh": np.arcsinh,
    "Acosh": np.arccosh,
    "Atanh": np.arctanh,
    "Floor": np.floor,
    "Ceil": np.ceil,
}
_ERF = np.frompyfunc(math.erf, 1, 1)


def _erf(x: Array) -> Array:
    return np.asarray(_ERF(x)).astype(x.dtype)


def _softplus(x: Array) -> Array:
    return np.asarray(np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))))


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def _div(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.asarray(a / b)
    quotient = np.asarray(np.floor_divide(a, b))
    inexact = (quotient * b != a) & (b != 0)
    return np.asarray(quotient + (inexact & ((a < 0) != (b < 0))).astype(a.dtype))


def _pow(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.asarray(np.power(a, b))
    inverse = np.where(a == 1, 1, np.where(a == -1, 1 - 2 * (b & 1), 0))
    return np.where(b < 0, inverse, np.power(a, np.maximum(b, 0))).astype(a.dtype)


def _shift_left(a: Array, b: Array) -> Array:
    bits = a.dtype.itemsize * 8
    inside = (b >= 0) & (b < bits)
    return np.where(inside, np.left_shift(a, np.where(inside, b, 0)), 0).astype(a.dtype)


def _shift_right(a: Array, b: Array) -> Array:
    bits = a.dtype.itemsize * 8
    inside = (b >= 0) & (b < bits)
    kept = np.right_shift(a, np.where(inside, b, bits - 1))
    return np.asarray(np.where(inside | (a < 0), kept, 0)).astype(a.dtype)


def _every(text: str) -> dict[str, str]:
    return {kind: text for kind in ("float", "int", "uint", "bool")}


def _stored(text: str) -> dict[str, str]:
    """Return an expression that moves elements, whatever their bits mean."""
    return _every(text) | {t.name: text for t in STORED}


def _numbers(real: str, whole: str, unsigned: str = "") -> dict[str, str]:
    return {"float": real, "int": whole, "uint": unsigned or whole}


def _real(text: str) -> dict[str, str]:
    return {"float": text}


def _divide(
    real: str,
    name: str,
    sign: str,
    numpy: Callable[..., Any],
    onnx: str = "",
    header: str = "gm_integer.h",
) -> Fn:
    signed, unsigned = f"gm_{name}_s{{W}}({{a}}, {{b}})", f"{{b}} == 0 ? 0 : {{a}} {sign} {{b}}"
    return Fn(2, _numbers(real, signed, unsigned), numpy, onnx=onnx, header=header)


def _compare(onnx: str, numpy: Callable[..., Any], sign: str) -> Fn:
    return Fn(2, _every(f"{{a}} {sign} {{b}}"), numpy, result=dtypes.BOOL, onnx=onnx)


def _wrapping(sign: str) -> dict[str, str]:
    return _numbers(f"{{a}} {sign} {{b}}", f"({{U}}){{a}} {sign} ({{U}}){{b}}")


_X, _Y, _Z = Input(0), Input(1), Input(2)

ARITHMETIC = {
    "identity": Fn(1, _stored("{a}"), lambda x: x),
    "add": Fn(2, _wrapping("+"), np.add, onnx="Add"),
    "sub": Fn(2, _wrapping("-"), np.subtract, onnx="Sub"),
    "mul": Fn(2, _wrapping("*"), np.multiply, onnx="Mul"),
    "div": _divide("{a} / {b}", "div", "/", _div, onnx="Div"),
    "mod": _divide("gm_mod{f}({a}, {b})", "mod", "%", np.mod, header="gm_mod.h"),
    "fmod": _divide("fmod{f}({a}, {b})", "rem", "%", np.fmod),
    "pow": Fn(
        2,
        _numbers(
            "pow{f}({a}, {b})",
            "gm_pow_s64({a}, {b})",
            "gm_pow_s64((int64_t){a}, (int64_t){b})",
        ),
        _pow,
        header="gm_integer.h",
    ),
    "max": Fn(
        2,
        _numbers("({a} > {b} || {a} != {a}) ? {a} : {b}", "{a} > {b} ? {a} : {b}"),
        np.maximum,
    ),
    "min": Fn(
        2,
        _numbers("({a} < {b} || {a} != {a}) ? {a} : {b}", "{a} < {b} ? {a} : {b}"),
        np.minimum,
    ),
    "neg": Fn(1, _numbers("-{a}", "0u - ({U}){a}"), np.negative, onnx="Neg"),
    "abs": Fn(
        1,
        _numbers("fabs{f}({a})", "{a} < 0 ? 0u - ({U}){a} : ({U}){a}", "{a}"),
        np.abs,
        onnx="Abs",
    ),
    "sign": Fn(
        1,
        _numbers(
            "{a} > 0.0{f} ? 1.0{f} : {a} < 0.0{f} ? -1.0{f} : {a}",
            "({a} > 0) - ({a} < 0)",
            "{a} > 0",
        ),
        np.sign,
        onnx="Sign",
    ),
    "clip": Fn(
        3,
        _every("({b} > {c} || {a} > {c}) ? {c} : {a} < {b} ? {b} : {a}"),
        lambda x, low, high: np.minimum(np.maximum(x, low), high),
    ),
    "clamp": Fn(  # clip where the bounds are known to be in order
        3,
        _every("{a} < {b} ? {b} : {a} > {c} ? {c} : {a}"),
        lambda x, low, high: np.minimum(np.maximum(x, low), high),
    ),
    "where": Fn(3, _stored("{a} ? {b} : {c}"), np.where, typed_by=1, onnx="Where"),
}

FIXED_POINT = {
    "multiply_high": Fn(  # of int32, the second one not negative
        2,
        {"int": "gm_mulh_round_s32({a}, {b})"},
        lambda a, m: (a.astype(np.int64) * m + (1 << 31) >> 32).astype(np.int32),
        header="gm_requant.h",
    ),
}

LOGIC = {
    "equal": _compare("Equal", np.equal, "=="),
    "less": _compare("Less", np.less, "<"),
    "less_or_equal": _compare("LessOrEqual", np.less_equal, "<="),
    "greater": _compare("Greater", np.greater, ">"),
    "greater_or_equal": _compare("GreaterOrEqual", np.greater_equal, ">="),
    "and": Fn(2, {"bool": "{a} & {b}"}, np.logical_and, onnx="And"),
    "or": Fn(2, {"bool": "{a} | {b}"}, np.logical_or, onnx="Or"),
    "xor": Fn(2, {"bool": "{a} ^ {b}"}, np.logical_xor, onnx="Xor"),
    "not": Fn(1, {"bool": "!{a}"}, np.logical_not, onnx="Not"),
    "is_nan": Fn(1, _real("{a} != {a}"), np.isnan, result=dtypes.BOOL, onnx="IsNaN"),
    "is_inf": Fn(1, _real("fabs{f}({a}) == ({T})INFINITY"), np.isinf, result=dtypes.BOOL),
    "is_pos_inf": Fn(1, _real("{a} == ({T})INFINITY"), np.isposinf, result=dtypes.BOOL),
    "is_neg_inf": Fn(1, _real("{a} == -({T})INFINITY"), np.isneginf, result=dtypes.BOOL),
    "bitwise_not": Fn(1, _numbers("", "~({U}){a}"), np.bitwise_not, onnx="BitwiseNot"),
    "bitwise_and": Fn(2, _numbers("", "({U}){a} & ({U}){b}"), np.bitwise_and, onnx="BitwiseAnd"),
    "bitwise_or": Fn(2, _numbers("", "({U}){a} | ({U}){b}"), np.bitwise_or, onnx="BitwiseOr"),
    "bitwise_xor": Fn(2, _numbers("", "({U}){a} ^ ({U}){b}"), np.bitwise_xor, onnx="BitwiseXor"),
    "shift_left": Fn(
        2,
        _numbers(
            "",
            "{b} >= 0 && {b} < {BITS} ? ({U}){a} << {b} : 0",
            "{b} < {BITS} ? ({U}){a} << {b} : 0",
        ),
        _shift_left,
    ),
    "shift_right": Fn(
        2,
        _numbers(
            "",
            "{b} >= 0 && {b} < {BITS} ? {a} >> {b} : {a} < 0 ? -1 : 0",
            "{b} < {BITS} ? ({U}){a} >> {b} : 0",
        ),
        _shift_right,
    ),
}

REAL = {
    **{
        name.lower(): Fn(1, _real(f"{name.lower()}{{f}}({{a}})"), function, onnx=name)
        for name, function in FLOAT_MATH.items()
    },
    "erf": Fn(1, _real("erf{f}({a})"), _erf, onnx="Erf"),
    "round": Fn(1, _real("rint{f}({a})"), np.rint, onnx="Round"),
    "reciprocal": Fn(1, _real("1.0{f} / {a}"), lambda x: 1 / x, onnx="Reciprocal"),
}

ACTIVATIONS = {
    "relu": Fn(
        1,
        _numbers("{a} < 0.0{f} ? 0.0{f} : {a}", "{a} < 0 ? 0 : {a}", "{a}"),
        lambda x: np.maximum(x, np.zeros((), x.dtype)),
        onnx="Relu",
    ),
    "sigmoid": Fn(1, _real("1.0{f} / (1.0{f} + exp{f}(-{a}))"), _sigmoid, onnx="Sigmoid"),
    "softplus": Fn(
        1,
        _real("({a} > 0.0{f} ? {a} : 0.0{f}) + log1p{f}(exp{f}(-fabs{f}({a})))"),
        _softplus,
        onnx="Softplus",
    ),
    "softsign": Fn(
        1, _real("{a} / (1.0{f} + fabs{f}({a}))"), lambda x: x / (1 + np.abs(x)), onnx="Softsign"
    ),
    "leaky_relu": Fn(
        2, _real("{a} < 0.0{f} ? {a} * {b} : {a}"), lambda x, s: np.where(x < 0, x * s, x)
    ),
    "prelu": Fn(
        2,
        _numbers("{a} < 0.0{f} ? {a} * {b} : {a}", "({U}){a} * ({U})({a} < 0 ? {b} : 1)", "{a}"),
        lambda x, s: np.where(x < 0, x * s, x),
    ),
    "elu": Fn(
        2,
        _real("{a} < 0.0{f} ? {b} * expm1{f}({a}) : {a}"),
        lambda x, a: np.where(x < 0, a * np.expm1(x), x),
    ),
    "celu": Fn(
        2,
        _real("{a} < 0.0{f} ? {b} * expm1{f}({a} / {b}) : {a}"),
        lambda x, a: np.where(x < 0, a * np.expm1(x / a), x),
    ),
    "selu": Fn(
        3,
        _real("{c} * ({a} < 0.0{f} ? {b} * expm1{f}({a}) : {a})"),
        lambda x, a, g: g * np.where(x < 0, a * np.expm1(x), x),
    ),
    "thresholded_relu": Fn(
        2, _real("{a} > {b} ? {a} : 0.0{f}"), lambda x, a: np.where(x > a, x, np.zeros_like(x))
    ),
    "shrink": Fn(
        3,
        _real("{a} < -{b} ? {a} + {c} : {a} > {b} ? {a} - {c} : 0.0{f}"),
        lambda x, d, b: np.where(x < -d, x + b, np.where(x > d, x - b, np.zeros_like(x))),
    ),
    "gelu": Fn(
        1,
        _real("0.5{f} * {a} * (1.0{f} + erf{f}({a} * 0.70710678118654752{f}))"),
        lambda x: 0.5 * x * (1 + _erf(x * x.dtype.type(math.sqrt(0.5)))),
    ),
    "gelu_tanh": Fn(  # (1 + tanh(z)) / 2 is sigmoid(2 z)
        1,
        steps=(
            Step("mul", (_X, _X)),
            Step("mul", (Temp(0), Literal(0.044715 * 2 * math.sqrt(2 / math.pi)))),
            Step("add", (Temp(1), Literal(2 * math.sqrt(2 / math.pi)))),
            Step("mul", (_X, Temp(2))),
            Step("sigmoid", (Temp(3),)),
            Step("mul", (_X, Temp(4))),
        ),
    ),
    "swish": Fn(
        2, _real("{a} / (1.0{f} + exp{f}(-{b} * {a}))"), lambda x, b: x / (1 + np.exp(-b * x))
    ),
    "hard_sigmoid": Fn(
        3,
        steps=(
            Step("mul", (_X, _Y)),
            Step("add", (Temp(0), _Z)),
            Step("clamp", (Temp(1), Literal(0.0), Literal(1.0))),
        ),
    ),
    "hard_swish": Fn(
        1,
        steps=(
            Step("hard_sigmoid", (_X, Literal(1 / 6), Literal(0.5))),
            Step("mul", (_X, Temp(0))),
        ),
        onnx="HardSwish",
    ),
    "mish": Fn(
        1,
        steps=(
            Step("softplus", (_X,)),
            Step("tanh", (Temp(0),)),
            Step("mul", (_X, Temp(1))),
        ),
        onnx="Mish",
    ),
}


def _cast(dtype: dtypes.DType) -> Fn:
    """Numbers out of range saturate and NaN becomes the lowest integer; integers wrap."""
    if dtype is dtypes.BOOL:
        return Fn(1, _every("{a} != 0"), lambda x: x != 0, result=dtype)
    if dtype.is_float:
        return _cast_to_real(dtype)
    base = dtype.c.removesuffix("_t")
    real = f"gm_to_{base}{{f}}({{a}})"
    if dtype.bits < 32 or dtype is dtypes.I32:
        low = f"{base.upper()}_MIN" if dtype.kind == "int" else "0"
        real = f"gm_to_int32{{f}}({{a}}, {low}, {base.upper()}_MAX)"

    def cast(x: Array) -> Array:
        if not dtypes.of(x.dtype).is_float:
            return x.astype(dtype.numpy)
        if dtype in dtypes.SMALL_INTEGERS:  # what does not fit becomes zero, as in ONNX's tests
            fits = (x > dtype.low - 1) & (x < dtype.high + 1)
            return np.where(fits, x, 0).astype(np.int8).astype(dtype.numpy)
        inside = (x > float(dtype.low)) & (x < float(dtype.high + 1))
        whole = np.where(inside, x, 0).astype(dtype.numpy)
        return np.where(inside, whole, np.where(x > 0, dtype.high, dtype.low).astype(dtype.numpy))

    whole = f"({dtype.c}){{a}}"
    if dtype in dtypes.SMALL_INTEGERS:
        inside = f"{{a}} > {dtype.low - 1}.0{{f}} && {{a}} < {dtype.high + 1}.0{{f}}"
        real = f"{inside} ? ({dtype.c}){{a}} : 0"
        whole = f"{{a}} & {(1 << dtype.bits) - 1}"
        if dtype.kind == "int":
            whole = f"(({whole}) ^ {1 << (dtype.bits - 1)}) - {1 << (dtype.bits - 1)}"
    return Fn(1, {**_every(whole), "float": real}, cast, result=dtype, header="gm_to_int.h")


def _cast_to_real(dtype: dtypes.DType) -> Fn:
    """Casts to the 16-bit formats go by way of float."""
    c = _every(f"({dtype.c}){{a}}")
    if dtype in HALVES:
        c = _every(f"gm_f32_to_{dtype}((float){{a}})")
    elif dtype is dtypes.F32:
        c |= {half.name: f"gm_{half}_to_f32({{a}})" for half in HALVES}
        c |= {small.name: _small_floats.to_float(small) for small in dtypes.SMALL_FLOATS}

    def cast(x: Array) -> Array:
        return (x.astype(np.float32) if dtype in HALVES else x).astype(dtype.numpy)

    return Fn(
        1, c, cast, result=dtype, header="gm_small_float.h" if dtype is dtypes.F32 else "gm_half.h"
    )


def _cast_to_small(dtype: dtypes.DType, saturate: bool, mode: str = "up") -> Fn:
    return Fn(
        1,
        _real(_small_floats.from_float(dtype, saturate, mode)),
        _small_floats.convert(dtype, saturate, mode),
        result=dtype,
        header="gm_small_float.h",
    )


def _casts_to_small() -> dict[str, Fn]:
    """Return the conversions to small floats by name: see ops.cast.Cast.function."""
    found: dict[str, Fn] = {}
    for dtype in dtypes.SMALL_FLOATS:
        for mode in ("up", "down", "nearest") if dtype is dtypes.E8M0 else ("up",):
            suffix = f"_{mode}" if mode != "up" else ""
            found[f"cast_{dtype}{suffix}"] = _cast_to_small(dtype, True, mode)
            found[f"cast_{dtype}{suffix}_unbounded"] = _cast_to_small(dtype, False, mode)
    return found


def _quantize(dtype: dtypes.DType) -> Fn:
    """quantize(x, scale, zero point), ONNX QuantizeLinear."""

    def numpy(x: Array, scale: Array, zero: Array) -> Array:
        one = Quant.per_tensor(1.0)
        scaled = (x / scale).astype(np.float32)
        if not np.any(zero):
            return quantize(scaled, one, dtype)
        stored = np.nan_to_num(np.rint(scaled).astype(np.float64) + zero, nan=float(dtype.low))
        return np.clip(stored, dtype.low, dtype.high).astype(dtype.numpy)

    short = ("s" if dtype.kind == "int" else "u") + str(dtype.bits)
    text = f"gm_quantize_f32_{short}({{a}}, {{b}}, {{c}})"
    return Fn(3, _real(text), numpy, result=dtype, header="gm_quantize.h")


QUANTIZABLE = (dtypes.I8, dtypes.U8, dtypes.I16, dtypes.U16, dtypes.I32)

CONVERSIONS = {
    **{f"cast_{t}": _cast(t) for t in (*dtypes.ALL, *dtypes.SMALL_INTEGERS)},
    **_casts_to_small(),
    **{f"quantize_{t}": _quantize(t) for t in QUANTIZABLE},
    "dequantize": Fn(
        3,
        _numbers("", "(float)((int32_t){a} - {c}) * {b}"),
        lambda q, scale, zero: (q.astype(np.int64) - zero).astype(np.float32) * scale,
        result=dtypes.F32,
    ),
}

FUNCTIONS: dict[str, Fn] = {
    **ARITHMETIC,
    **FIXED_POINT,
    **LOGIC,
    **REAL,
    **ACTIVATIONS,
    **CONVERSIONS,
}
