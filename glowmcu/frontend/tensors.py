"""TensorProto to numpy, distrustful: sizes are checked before anything is allocated or opened."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath

import numpy as np
import onnx
from onnx import numpy_helper

from glowmcu.core import dtypes
from glowmcu.core.dtypes import DType
from glowmcu.core.types import Array
from glowmcu.errors import InvalidModelError, UnsupportedError
from glowmcu.frontend.read import Source
from glowmcu.frontend.unsupported import KINDS, Reason

LARGEST = (1 << 31) - 1
"""Bytes of the largest tensor: what an int32 index reaches."""

_P = onnx.TensorProto
_DTYPES: dict[int, DType] = {
    _P.FLOAT16: dtypes.F16,
    _P.BFLOAT16: dtypes.BF16,
    _P.FLOAT: dtypes.F32,
    _P.DOUBLE: dtypes.F64,
    _P.INT8: dtypes.I8,
    _P.INT16: dtypes.I16,
    _P.INT32: dtypes.I32,
    _P.INT64: dtypes.I64,
    _P.UINT8: dtypes.U8,
    _P.UINT16: dtypes.U16,
    _P.UINT32: dtypes.U32,
    _P.UINT64: dtypes.U64,
    _P.BOOL: dtypes.BOOL,
    _P.INT4: dtypes.I4,
    _P.UINT4: dtypes.U4,
    _P.INT2: dtypes.I2,
    _P.UINT2: dtypes.U2,
    _P.FLOAT8E4M3FN: dtypes.E4M3FN,
    _P.FLOAT8E4M3FNUZ: dtypes.E4M3FNUZ,
    _P.FLOAT8E5M2: dtypes.E5M2,
    _P.FLOAT8E5M2FNUZ: dtypes.E5M2FNUZ,
    _P.FLOAT8E8M0: dtypes.E8M0,
    _P.FLOAT4E2M1: dtypes.E2M1,
}
ELEM_TYPES: dict[DType, int] = {dtype: code for code, dtype in _DTYPES.items()}
_FIELDS: dict[int, str] = {
    _P.FLOAT: "float_data",
    _P.DOUBLE: "double_data",
    _P.INT64: "int64_data",
    _P.UINT32: "uint64_data",
    _P.UINT64: "uint64_data",
}


def dtype_of(code: int, what: str) -> DType:
    """Return the DType of an ONNX element type; refuse those that C code has no type for."""
    found = _DTYPES.get(code)
    if found is not None:
        return found
    names: dict[int, str] = {v: k for k, v in _P.DataType.items()}
    if code not in names or code == _P.UNDEFINED:
        raise InvalidModelError(f"{what} has no valid element type (code {code})")
    name = names[code].lower()
    supported = ", ".join(names[c].lower() for c in _DTYPES)
    reason = KINDS.get(name.rstrip("0123456789"), Reason("", f"these are supported: {supported}"))
    raise UnsupportedError(f"{what} has element type {name}", why=reason.why, hint=reason.hint)


def check_size(shape: tuple[int, ...], dtype: DType, what: str) -> None:
    """Refuse negative dimensions and tensors beyond LARGEST."""
    if any(d < 0 for d in shape):
        raise InvalidModelError(f"{what} has a negative dimension in its shape {list(shape)}")
    size = math.prod(shape) * dtype.nbytes
    if size > LARGEST or any(d > LARGEST for d in shape):
        raise InvalidModelError(
            f"{what} of shape {list(shape)} takes {size} bytes; the limit is {LARGEST}"
        )


@dataclass(frozen=True)
class TensorReader:
    """Reads the tensors of one model, external ones from inside the model's folder only.

    External data becomes part of the protobuf, which then stands on its own.
    """

    source: Source

    def array(self, tensor: onnx.TensorProto, what: str) -> Array:
        """Return a tensor's data; `what` names it in messages."""
        dtype = dtype_of(tensor.data_type, what)
        shape = tuple(tensor.dims)
        check_size(shape, dtype, what)
        if tensor.HasField("segment"):
            raise UnsupportedError(f"{what} is stored in segments")
        if tensor.data_location == _P.EXTERNAL:
            tensor.raw_data = self._external(tensor, _bytes(math.prod(shape), dtype), what)
            tensor.data_location = _P.DEFAULT
            del tensor.external_data[:]
        _check_length(tensor, dtype, math.prod(shape), what)
        try:
            return np.asarray(numpy_helper.to_array(tensor), order="C")
        except (ValueError, TypeError, OverflowError) as error:
            raise InvalidModelError(f"{what} cannot be read: {error}") from error

    def _external(self, tensor: onnx.TensorProto, size: int, what: str) -> bytes:
        entries = {e.key: e.value for e in tensor.external_data}
        location = entries.get("location", "")
        path = self._inside(location, what)
        try:
            offset, length = int(entries.get("offset") or 0), int(entries.get("length") or size)
        except ValueError as error:
            raise InvalidModelError(
                f"{what}: offset or length of its external data is not a number"
            ) from error
        if length != size:
            raise InvalidModelError(f"{what} needs {size} bytes; its external data has {length}")
        if not path.is_file():
            raise InvalidModelError(
                f"{what} is stored in '{path}', which is missing",
                hint="keep the data file beside the model",
            )
        try:
            if offset < 0 or offset + size > path.stat().st_size:
                raise InvalidModelError(
                    f"{what} lies at bytes {offset} to {offset + size} of '{path}', which has only "
                    f"{path.stat().st_size}"
                )
            with path.open("rb") as stream:
                stream.seek(offset)
                data = stream.read(size)
        except OSError as error:
            raise InvalidModelError(f"{what}: '{path}': {error.strerror}") from error
        self.source.hash.update(data)
        self.source.size += size
        return data

    def _inside(self, location: str, what: str) -> Path:
        if self.source.folder is None:
            raise InvalidModelError(
                f"{what} is stored outside of the model, in '{location}'",
                hint="give the path of the model file, so that its folder is known",
            )
        posix, windows = PurePosixPath(location), PureWindowsPath(location)
        outside = (
            not location
            or "\0" in location
            or posix.is_absolute()
            or windows.drive
            or windows.root
            or ".." in windows.parts
        )
        folder = self.source.folder.resolve()
        if not outside:
            path = self.source.folder / posix
            if path.resolve().is_relative_to(folder):
                return path
        raise InvalidModelError(
            f"{what} is stored in {location!r}, outside of the model's folder",
            why="external data is read from the folder of the model only",
        )


def _bytes(count: int, dtype: DType) -> int:
    """Return the bytes of a tensor in the file, where elements of less than 8 bits are packed."""
    return (count * dtype.bits + 7) // 8


def _check_length(tensor: onnx.TensorProto, dtype: DType, count: int, what: str) -> None:
    if tensor.HasField("raw_data"):
        have, need, unit = len(tensor.raw_data), _bytes(count, dtype), "bytes"
    else:
        field = _FIELDS.get(tensor.data_type, "int32_data")
        words = _bytes(count, dtype) if dtype.bits < 8 else count
        have, need, unit = len(getattr(tensor, field)), words, "elements"
    if have != need:
        raise InvalidModelError(
            f"{what} of shape {list(tensor.dims)} needs {need} {unit}; the file has {have}"
        )
