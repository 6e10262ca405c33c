"""Element types: one table of name, size, numpy type and C type."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np


@dataclass(frozen=True)
class DType:
    """An element type; `kind` is one of float, int, uint, bool."""

    name: str
    bits: int
    kind: str
    c: str
    numpy: np.dtype[Any] = field(compare=False)

    def __str__(self) -> str:
        return self.name

    @property
    def nbytes(self) -> int:
        """Bytes of one element that shares none: a whole one where it has fewer than 8 bits."""
        return max(1, self.bits // 8)

    @property
    def storage(self) -> np.dtype[Any]:
        """The numpy type of such elements in C: an integer of at least 8 bits for a smaller one."""
        small = self.is_integer and self.bits < 8
        return np.dtype(np.int8 if self.kind == "int" else np.uint8) if small else self.numpy

    @property
    def is_integer(self) -> bool:
        """True for int and uint."""
        return self.kind in ("int", "uint")

    @property
    def is_float(self) -> bool:
        """True for every floating-point format."""
        return self.kind == "float"

    @property
    def low(self) -> int:
        """Smallest integer value."""
        return -(1 << (self.bits - 1)) if self.kind == "int" else 0

    @property
    def high(self) -> int:
        """Largest integer value."""
        return (1 << (self.bits - (self.kind == "int"))) - 1


F16 = DType("f16", 16, "float", "uint16_t", np.dtype(np.float16))
BF16 = DType("bf16", 16, "float", "uint16_t", np.dtype(ml_dtypes.bfloat16))
F32 = DType("f32", 32, "float", "float", np.dtype(np.float32))
F64 = DType("f64", 64, "float", "double", np.dtype(np.float64))
I8 = DType("i8", 8, "int", "int8_t", np.dtype(np.int8))
I16 = DType("i16", 16, "int", "int16_t", np.dtype(np.int16))
I32 = DType("i32", 32, "int", "int32_t", np.dtype(np.int32))
I64 = DType("i64", 64, "int", "int64_t", np.dtype(np.int64))
U8 = DType("u8", 8, "uint", "uint8_t", np.dtype(np.uint8))
U16 = DType("u16", 16, "uint", "uint16_t", np.dtype(np.uint16))
U32 = DType("u32", 32, "uint", "uint32_t", np.dtype(np.uint32))
U64 = DType("u64", 64, "uint", "uint64_t", np.dtype(np.uint64))
BOOL = DType("bool", 8, "bool", "uint8_t", np.dtype(np.bool_))
I4 = DType("i4", 4, "int", "int8_t", np.dtype(ml_dtypes.int4))
U4 = DType("u4", 4, "uint", "uint8_t", np.dtype(ml_dtypes.uint4))
I2 = DType("i2", 2, "int", "int8_t", np.dtype(ml_dtypes.int2))
U2 = DType("u2", 2, "uint", "uint8_t", np.dtype(ml_dtypes.uint2))
E4M3FN = DType("e4m3fn", 8, "float", "uint8_t", np.dtype(ml_dtypes.float8_e4m3fn))
E4M3FNUZ = DType("e4m3fnuz", 8, "float", "uint8_t", np.dtype(ml_dtypes.float8_e4m3fnuz))
E5M2 = DType("e5m2", 8, "float", "uint8_t", np.dtype(ml_dtypes.float8_e5m2))
E5M2FNUZ = DType("e5m2fnuz", 8, "float", "uint8_t", np.dtype(ml_dtypes.float8_e5m2fnuz))
E8M0 = DType("e8m0", 8, "float", "uint8_t", np.dtype(ml_dtypes.float8_e8m0fnu))
E2M1 = DType("e2m1", 4, "float", "uint8_t", np.dtype(ml_dtypes.float4_e2m1fn))

SMALL_INTEGERS: tuple[DType, ...] = (I4, U4, I2, U2)
SMALL_FLOATS: tuple[DType, ...] = (E4M3FN, E4M3FNUZ, E5M2, E5M2FNUZ, E8M0, E2M1)
"""Formats that are stored, moved and converted, but that no kernel computes with."""
ALL: tuple[DType, ...] = (F16, BF16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64, BOOL)
_BY_NUMPY = {t.numpy: t for t in (*ALL, *SMALL_INTEGERS, *SMALL_FLOATS)}


def of(array_type: np.dtype[Any] | type) -> DType:
    """Return the DType of a numpy type; raise TypeError for one that has none."""
    found = _BY_NUMPY.get(np.dtype(array_type))
    if found is None:
        raise TypeError(f"no element type for numpy {np.dtype(array_type)}")
    return found
