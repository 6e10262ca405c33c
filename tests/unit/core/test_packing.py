"""Packed elements: ONNX's own layout, for every small type and every length."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper, numpy_helper

from glowmcu.core import dtypes
from glowmcu.core.dtypes import DType
from glowmcu.core.packing import loaded, pack, stored, unpack
from glowmcu.core.types import TensorType

SMALL = [*dtypes.SMALL_INTEGERS, dtypes.E2M1]


def every(dtype: DType, count: int) -> np.ndarray:
    """Return `count` elements, among them every one that the type has."""
    codes = (np.arange(count) * 7 % (1 << dtype.bits)).astype(np.uint8)
    return unpack(pack(codes, dtype.bits), dtype, (count,))


@pytest.mark.parametrize("dtype", SMALL, ids=str)
@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 16, 33])
def test_the_layout_is_that_of_onnx(dtype: DType, count: int) -> None:
    array = every(dtype, count)
    kind = helper.np_dtype_to_tensor_dtype(dtype.numpy)
    tensor = numpy_helper.from_array(array)
    assert tensor.data_type == kind
    assert pack(array, dtype.bits).tobytes() == tensor.raw_data
    assert np.array_equal(unpack(np.frombuffer(tensor.raw_data, np.uint8), dtype, (count,)), array)


@pytest.mark.parametrize("dtype", SMALL, ids=str)
def test_memory(dtype: DType) -> None:
    array = every(dtype, 15).reshape(3, 5)
    plain = TensorType(dtype, (3, 5))
    packed = plain.in_memory()
    assert (plain.nbytes, plain.length, plain.c) == (15, 15, dtype.c)
    assert packed.nbytes == packed.length == -(-15 * dtype.bits // 8)
    assert packed.c == "uint8_t"
    assert packed.in_bytes() == plain
    for type_ in (plain, packed):
        memory = stored(array, type_)
        assert memory.nbytes == type_.nbytes
        assert np.array_equal(loaded(memory, type_), array)


def test_other_types_are_never_packed() -> None:
    for dtype in dtypes.ALL:
        assert TensorType(dtype, (3,)).in_memory() == TensorType(dtype, (3,))
