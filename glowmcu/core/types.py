"""TensorType: element type, shape, and what stored integers mean (Quant)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.dtypes import DType

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Quant:
    """real = scale * (stored - zero_point), per tensor or per index of `axis`.

    Scales are exact float32 values held as Python floats.
    """

    scale: tuple[float, ...]
    zero_point: tuple[int, ...]
    axis: int | None = None

    @staticmethod
    def per_tensor(scale: float, zero_point: int = 0) -> Quant:
        """Return a quantization with one scale and zero point for the whole tensor."""
        return Quant((float(np.float32(scale)),), (int(zero_point),))

    def __str__(self) -> str:
        if self.axis is None:
            return f"s={self.scale[0]:.6g} z={self.zero_point[0]}"
        return f"s=[{len(self.scale)}] axis={self.axis}"

    def arrays(self, rank: int) -> tuple[Array, Array]:
        """Scale (float32) and zero point (int32) shaped to broadcast against a tensor of `rank`."""
        scale = np.asarray(self.scale, np.float32)
        zero = np.asarray(self.zero_point, np.int32)
        if self.axis is None:
            return scale.reshape(()), zero.reshape(())
        shape = [1] * rank
        shape[self.axis] = len(self.scale)
        return scale.reshape(shape), zero.reshape(shape)


@dataclass(frozen=True)
class TensorType:
    """Type of a tensor. Shapes are known integers; rank 0 is a scalar.

    packed  elements of fewer than 8 bits share bytes as ONNX packs them, else each has a byte;
            only memory is packed, see instr.buffer
    """

    dtype: DType
    shape: tuple[int, ...]
    quant: Quant | None = None
    packed: bool = False

    def __str__(self) -> str:
        dims = "x".join(map(str, self.shape))
        packed = " packed" if self.packed else ""
        return f"{self.dtype}<{dims}{packed}>" + (f"{{{self.quant}}}" if self.quant else "")

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def numel(self) -> int:
        """Number of elements (1 for a scalar)."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the dense tensor."""
        if self.packed:
            return -(-self.numel * self.dtype.bits // 8)
        return self.numel * self.dtype.nbytes

    @property
    def c(self) -> str:
        """The C type of the elements of its array in memory."""
        return "uint8_t" if self.packed else self.dtype.c

    @property
    def length(self) -> int:
        """Number of elements of its array in C: bytes where it is packed."""
        return self.nbytes if self.packed else self.numel

    @property
    def memory_shape(self) -> tuple[int, ...]:
        """Shape of its array in memory: a row of bytes where it is packed."""
        return (self.nbytes,) if self.packed else self.shape

    def in_memory(self) -> TensorType:
        """Return the type as memory holds it from one operator to the next: packed if small."""
        return replace(self, packed=self.dtype.bits < 8)

    def in_bytes(self) -> TensorType:
        """Return the type with a byte or more for each element."""
        return replace(self, packed=False)

    def with_shape(self, shape: tuple[int, ...]) -> TensorType:
        """Return the same element type and quantization with another shape."""
        return replace(self, shape=shape)

    def with_quant(self, quant: Quant | None) -> TensorType:
        """Return the same stored type with another meaning."""
        return replace(self, quant=quant)

    def real(self) -> TensorType:
        """Return the type of the real values that this type stores: f32 where quantized."""
        return TensorType(dtypes.F32, self.shape) if self.quant else self


def type_of(array: Array, quant: Quant | None = None) -> TensorType:
    """Return the TensorType of a numpy array."""
    return TensorType(dtypes.of(array.dtype), tuple(int(d) for d in array.shape), quant)


_LARGE = 1 << 12


def compact(array: Array) -> Array:
    """Return an array dense and in C order; a large one of equal numbers as a view of one."""
    if array.size >= _LARGE:
        first = array[(0,) * array.ndim]
        if first == array[(-1,) * array.ndim] and (not any(array.strides) or _is_all(array, first)):
            return np.broadcast_to(np.asarray(first, array.dtype), array.shape)
    return np.asarray(array, order="C")


def _is_all(array: Array, number: Any) -> bool:
    return bool((array == number).all())


def dequantize(stored: Array, quant: Quant) -> Array:
    """Return real values as float32: scale * (stored - zero_point), ONNX DequantizeLinear."""
    scale, zero = quant.arrays(stored.ndim)
    return (stored.astype(np.int64) - zero).astype(np.float32) * scale


def quantize(real: Array, quant: Quant, dtype: DType) -> Array:
    """Return stored integers: saturate(round half to even(real / scale) + zero_point), ONNX."""
    scale, zero = quant.arrays(real.ndim)
    stored = np.rint(real.astype(np.float32) / scale).astype(np.float64) + zero
    stored = np.nan_to_num(stored, nan=float(dtype.low))
    return np.clip(stored, dtype.low, dtype.high).astype(dtype.numpy)
