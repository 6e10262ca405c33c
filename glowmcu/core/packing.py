"""Elements of 4 and 2 bits as ONNX packs them: the first in the lowest bits of a byte."""

from __future__ import annotations

import numpy as np

from glowmcu.core.dtypes import DType
from glowmcu.core.types import Array, TensorType


def pack(array: Array, bits: int) -> Array:
    """Return the elements of an array, of which only the lowest bits count, as packed bytes."""
    each = 8 // bits
    low = np.ascontiguousarray(array).reshape(-1).view(np.uint8) & ((1 << bits) - 1)
    fields = np.pad(low, (0, -low.size % each)).reshape(-1, each)
    packed: Array = np.bitwise_or.reduce(fields << (np.arange(each, dtype=np.uint8) * bits), axis=1)
    return packed


def unpack(packed: Array, dtype: DType, shape: tuple[int, ...]) -> Array:
    """Return packed bytes as an array of `dtype`."""
    bits, each = dtype.bits, 8 // dtype.bits
    fields = packed.reshape(-1, 1) >> (np.arange(each, dtype=np.uint8) * bits)
    low = (fields & ((1 << bits) - 1)).reshape(-1)[: int(np.prod(shape, dtype=np.int64))]
    if dtype.kind == "int":
        sign = 1 << (bits - 1)
        low = ((low ^ sign).astype(np.int8) - sign).astype(dtype.numpy)
    elif dtype.is_integer:
        low = low.astype(dtype.numpy)
    return np.ascontiguousarray(low).view(dtype.numpy).reshape(shape)


def stored(array: Array, type_: TensorType) -> Array:
    """Return an array as the elements that C has in memory: see TensorType.c."""
    if type_.packed:
        return pack(array.astype(type_.dtype.numpy, copy=False), type_.dtype.bits)
    dense = np.ascontiguousarray(array).reshape(type_.shape)
    return dense.astype(type_.dtype.storage, copy=False)


def loaded(memory: Array, type_: TensorType) -> Array:
    """Return the array that the bytes of a tensor in memory hold, a copy where they are packed."""
    raw = np.ascontiguousarray(memory).reshape(-1).view(np.uint8)
    if type_.packed:
        return unpack(raw, type_.dtype, type_.shape)
    dense = raw.view(type_.dtype.storage).reshape(type_.shape)
    return dense.astype(type_.dtype.numpy, copy=False)
