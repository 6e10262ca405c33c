"""Binding of input shapes: batch dimensions to 1, the rest from --shape; C needs every size."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

import onnx

from glowmcu.core.dtypes import DType
from glowmcu.core.types import TensorType
from glowmcu.errors import GlowmcuError, InvalidModelError, OptionError, UnsupportedError
from glowmcu.frontend.tensors import check_size, dtype_of
from glowmcu.frontend.unsupported import KINDS, Reason
from glowmcu.graph.graph import Value

Dim = int | str | None
"""A size, a symbol, or None for a dimension that is unknown and has no name."""
Shapes = Mapping[str, tuple[int, ...]]


def bind_inputs(
    graph: onnx.GraphProto,
    constants: Iterable[str],
    shapes: Shapes,
    notes: list[str],
    report: Callable[[GlowmcuError], None],
) -> dict[str, Value | None]:
    """Return the graph's inputs with known shapes, None where there is none; note assumptions."""
    skip = set(constants)
    inputs = [i for i in graph.input if i.name not in skip]
    zero_is_unknown = _zero_means_batch(graph)
    declared = {i.name: _dims(i, zero_is_unknown) for i in inputs}
    symbols = _bind_symbols(declared, shapes)
    bound: dict[str, Value | None] = {}
    for item in inputs:
        bound[item.name] = None
        try:
            dtype = _element_type(item)
            shape = _bind(item.name, declared[item.name], shapes, symbols, notes)
            check_size(shape, dtype, f"input '{item.name}'")
        except OptionError:
            raise
        except GlowmcuError as error:
            report(error)
        else:
            bound[item.name] = Value(item.name, TensorType(dtype, shape))
    return bound


def _element_type(item: onnx.ValueInfoProto) -> DType:
    """Return the element type of an input; refuse what is not a tensor of numbers."""
    if not item.type.HasField("tensor_type"):
        kind = (item.type.WhichOneof("value") or "nothing").removesuffix("_type")
        reason = KINDS.get(kind, Reason("", ""))
        raise UnsupportedError(
            f"input '{item.name}' is not a tensor ({kind})", why=reason.why, hint=reason.hint
        )
    return dtype_of(item.type.tensor_type.elem_type, f"input '{item.name}'")


def _zero_means_batch(graph: onnx.GraphProto) -> bool:
    """Tell whether 0 stands for an unknown batch (old exporters) and not for an empty tensor.

    It does when every output declares a leading 0, too, and no 0 elsewhere.
    """
    shapes = [
        [d.dim_value if d.HasField("dim_value") else None for d in o.type.tensor_type.shape.dim]
        for o in graph.output
    ]
    return bool(shapes) and all(s and s[0] == 0 and 0 not in s[1:] for s in shapes)


def _dims(item: onnx.ValueInfoProto, zero_is_unknown: bool) -> list[Dim] | None:
    if not item.type.tensor_type.HasField("shape"):
        return None
    dims: list[Dim] = []
    for number, dim in enumerate(item.type.tensor_type.shape.dim):
        if dim.HasField("dim_value"):
            unknown = dim.dim_value < 0 or (dim.dim_value == 0 and number == 0 and zero_is_unknown)
            dims.append(None if unknown else int(dim.dim_value))
        else:
            symbol = dim.dim_param
            dims.append(None if symbol in ("", "?", "-1", "None") else symbol)
    return dims


def _bind_symbols(declared: Mapping[str, list[Dim] | None], shapes: Shapes) -> dict[str, int]:
    """Return what --shape says about symbols, directly or through the full shape of an input."""
    symbols: dict[str, int] = {}
    known = {d for dims in declared.values() for d in dims or () if isinstance(d, str)}
    for name, shape in shapes.items():
        if name not in declared and name not in known:
            raise OptionError(
                f"--shape names '{name}', which is neither an input nor a dimension of the model",
                hint=f"inputs: {_listed(declared)}; dimensions: {_listed(known)}",
            )
        if any(not isinstance(d, int) or isinstance(d, bool) or d < 0 for d in shape):
            raise OptionError(f"--shape {name}: {shape} is not a tuple of sizes")
        if name not in declared:
            if len(shape) != 1:
                raise OptionError(f"--shape {name}: a dimension is one number, not {len(shape)}")
            symbols[name] = shape[0]
    for name, dims in declared.items():
        for dim, size in zip(dims or (), shapes.get(name, ()), strict=False):
            if isinstance(dim, str) and symbols.setdefault(dim, size) != size:
                raise OptionError(
                    f"--shape gives dimension '{dim}' the sizes {symbols[dim]} and {size}"
                )
    return symbols


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _bind(
    name: str,
    dims: list[Dim] | None,
    shapes: Shapes,
    symbols: dict[str, int],
    notes: list[str],
) -> tuple[int, ...]:
    given = shapes.get(name)
    if given is not None:
        _check_given(name, dims, given)
        return given
    if dims is None:
        raise InvalidModelError(
            f"input '{name}' has no shape", hint=f"give one, as in --shape {name}=1,3,32,32"
        )
    if dims and not isinstance(dims[0], int) and (dims[0] is None or dims[0] not in symbols):
        label = "dimension 0" if dims[0] is None else f"dimension '{dims[0]}'"
        notes.append(f"{label} of input '{name}' is taken as a batch of 1")
        if dims[0] is not None:
            symbols[dims[0]] = 1
    sizes: list[int | None] = [d if isinstance(d, int) else symbols.get(d or "") for d in dims]
    if dims and dims[0] is None:
        sizes[0] = 1
    if None not in sizes:
        return tuple(s for s in sizes if s is not None)
    unknown = [
        f"{i} ('{d}')" if d else f"{i}"
        for i, (d, s) in enumerate(zip(dims, sizes, strict=True))
        if s is None
    ]
    example = ",".join(
        str(s) if s is not None else re.sub(r"\W+", "_", d if isinstance(d, str) else "N").upper()
        for d, s in zip(dims, sizes, strict=True)
    )
    first = next((d for d, s in zip(dims, sizes, strict=True) if s is None and d), None)
    also = f", or the dimension alone: --shape {first}=32" if first else ""
    raise InvalidModelError(
        f"input '{name}' has unknown dimensions: {', '.join(unknown)}",
        why="the C code is made for fixed sizes",
        hint=f"give the shape, as in --shape NAME=1,3,32,32: --shape {name}={example}{also}",
    )


def _check_given(name: str, dims: list[Dim] | None, given: tuple[int, ...]) -> None:
    if dims is None:
        return
    if len(dims) != len(given):
        raise OptionError(
            f"--shape {name}={','.join(map(str, given))} has {len(given)} dimensions; "
            f"the model's input has {len(dims)}"
        )
    for number, (dim, size) in enumerate(zip(dims, given, strict=True)):
        if isinstance(dim, int) and dim != size:
            raise OptionError(
                f"--shape {name}={','.join(map(str, given))}: dimension {number} is {dim} in the "
                "model and cannot be changed"
            )
