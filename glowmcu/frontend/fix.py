"""Inputs fixed to a value: they become initializers, and with them what depends on them alone."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from numpy.typing import ArrayLike
from onnx import numpy_helper

from glowmcu.core.types import Array
from glowmcu.errors import OptionError
from glowmcu.frontend.tensors import dtype_of


def with_fixed_inputs(
    model: onnx.ModelProto, values: Mapping[str, ArrayLike], notes: list[str]
) -> onnx.ModelProto:
    """Return the model with an initializer for each input named in `values`."""
    if not values:
        return model
    constants = {t.name for t in model.graph.initializer}
    inputs = {i.name: i for i in model.graph.input if i.name not in constants}
    fixed = onnx.ModelProto()
    fixed.CopyFrom(model)
    for name, value in values.items():
        if name not in inputs:
            raise OptionError(
                f"'{name}' is to be fixed, but is not an input of the model",
                hint=f"inputs: {', '.join(inputs) or 'none'}",
            )
        array = _array(name, inputs[name], value)
        fixed.graph.initializer.append(numpy_helper.from_array(array, name))
        short = f" to {array.tolist()}" if array.size <= 4 else ""
        notes.append(f"input '{name}' is fixed{short}")
    return fixed


def _array(name: str, item: onnx.ValueInfoProto, value: ArrayLike) -> Array:
    """Return the value in the input's type and shape; a number fills a known shape."""
    tensor = item.type.tensor_type
    dtype = dtype_of(tensor.elem_type, f"input '{name}'").numpy
    given = np.asarray(value)
    if given.dtype.kind not in "biuf" and given.dtype != dtype:
        raise OptionError(f"input '{name}' is fixed to {value!r}, which is not a number")
    array = given.astype(dtype)
    if given.dtype.kind != "f" or dtype.kind != "f":
        if not np.array_equal(array, given):
            raise OptionError(f"input '{name}' of type {dtype} cannot hold {given.tolist()}")
    dims = [d.dim_value if d.dim_value > 0 else None for d in tensor.shape.dim]
    if given.ndim == 0 and None not in dims:
        return np.full([d for d in dims if d is not None], array, dtype)
    fits = len(dims) == array.ndim and all(
        d in (None, size) for d, size in zip(dims, array.shape, strict=True)
    )
    if tensor.HasField("shape") and not fits:
        wanted = "x".join("?" if d is None else str(d) for d in dims) or "a scalar"
        raise OptionError(f"input '{name}' is {wanted}; it is fixed to shape {list(array.shape)}")
    return array
