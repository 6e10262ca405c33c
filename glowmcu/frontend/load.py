"""load(): the whole import as one function, the place to start reading."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import onnx
from numpy.typing import ArrayLike

from glowmcu.errors import InvalidModelError
from glowmcu.frontend.extent import with_shapes
from glowmcu.frontend.fix import with_fixed_inputs
from glowmcu.frontend.functions import local_functions
from glowmcu.frontend.importer import Importer, refuse_sparse
from glowmcu.frontend.read import opsets, read
from glowmcu.frontend.scope import Scope
from glowmcu.frontend.settle import Budget, Settler
from glowmcu.frontend.shapes import bind_inputs
from glowmcu.frontend.tensors import TensorReader, dtype_of
from glowmcu.frontend.upgrade import upgraded
from glowmcu.graph.graph import Graph, Value
from glowmcu.graph.verify import verify


@dataclass(frozen=True)
class Imported:
    """A model as a graph.

    notes   the assumptions made
    sha256  of the file's bytes followed by those of its external data
    name    the file's stem, else the name of the ONNX graph
    opset   of the ai.onnx domain
    model   the protobuf, external data read in, fixed inputs as initializers
    """

    graph: Graph
    notes: tuple[str, ...]
    sha256: str
    name: str
    opset: int
    model: onnx.ModelProto


def load(
    model: str | Path | bytes | onnx.ModelProto,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    fix_inputs: Mapping[str, ArrayLike] | None = None,
) -> Imported:
    """Read an ONNX model.

    shapes      input names -> shapes, or dimension names -> one size
    fix_inputs  input names -> values; these inputs become constants

    Raises InvalidModelError, UnsupportedError or OptionError, with everything that is wrong.
    """
    source = read(model)
    source.proto = upgraded(source.proto, source.notes)
    source.proto = with_fixed_inputs(source.proto, fix_inputs or {}, source.notes)
    graph = source.proto.graph
    versions = opsets(source)
    reader = TensorReader(source)
    scope = Scope(versions)
    refuse_sparse(graph)
    _check_names(graph)
    names = [t.name for t in graph.initializer]
    inputs = bind_inputs(graph, names, shapes or {}, source.notes)
    settler = Settler(Budget.of(source.size))
    importer = Importer(reader, local_functions(source.proto), settler, source.notes)
    importer.constants(graph.initializer, scope)
    for value in inputs:
        settler.add(value)
        scope.values[value.name] = value
    outputs = tuple(o.name for o in graph.output)
    importer.nodes(graph.node, scope, outputs, "")
    importer.raise_problems()
    values = tuple(_output(item, scope, source.notes) for item in graph.output)
    result = with_shapes(Graph(source.name, inputs, values, outputs))
    verify(result)
    return Imported(
        result,
        tuple(source.notes),
        source.hash.hexdigest(),
        source.name,
        versions.get("", 0),
        source.proto,
    )


def _check_names(graph: onnx.GraphProto) -> None:
    for what, names in (
        ("input", [i.name for i in graph.input]),
        ("output", [o.name for o in graph.output]),
    ):
        if not all(names):
            raise InvalidModelError(f"an {what} of the model has no name")
        name, count = Counter(names).most_common(1)[0] if names else ("", 0)
        if count > 1:
            raise InvalidModelError(f"the {what} '{name}' is listed twice")
    if not graph.output:
        raise InvalidModelError("the model has no output")


def _output(item: onnx.ValueInfoProto, scope: Scope, notes: list[str]) -> Value:
    """Return an output's value; what the model declares of it must be true."""
    value = scope.value(item.name)
    assert value is not None
    declared = item.type.tensor_type
    if declared.elem_type:
        dtype = dtype_of(declared.elem_type, f"output '{item.name}'")
        if dtype != value.type.dtype:
            raise InvalidModelError(
                f"output '{item.name}' is declared as {dtype}; the graph computes {value.type}"
            )
    if declared.HasField("shape"):
        dims = [d.dim_value if d.HasField("dim_value") else -1 for d in declared.shape.dim]
        fits = len(dims) == value.type.rank and all(
            d in (0, -1, size) for d, size in zip(dims, value.shape, strict=True)
        )
        if not fits:
            notes.append(
                f"output '{item.name}' is declared with shape {dims}, but is {list(value.shape)}"
            )
    return value
