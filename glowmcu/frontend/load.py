"""survey(): the whole import as one function, the place to start reading; load() insists on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import onnx
from numpy.typing import ArrayLike

from glowmcu.errors import GlowmcuError, InvalidModelError
from glowmcu.frontend.extent import with_shapes
from glowmcu.frontend.fix import with_fixed_inputs
from glowmcu.frontend.functions import local_functions
from glowmcu.frontend.importer import Importer, refuse_sparse
from glowmcu.frontend.nesting import check_loops
from glowmcu.frontend.read import Source, opsets, read
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
    extents  outputs whose shape depends on data -> the output that says their actual shape
    model   the protobuf, external data read in, fixed inputs as initializers
    """

    graph: Graph
    notes: tuple[str, ...]
    sha256: str
    name: str
    opset: int
    extents: Mapping[str, str]
    model: onnx.ModelProto


@dataclass(frozen=True)
class Survey:
    """What can be imported of a model, and what stands in the way of the rest.

    imported  without an error the whole model; else the part that is supported, None if that is
              nothing: outputs of unsupported nodes are inputs of its graph, what such nodes read
              are outputs
    error     everything that is wrong, None if nothing is
    """

    imported: Imported | None
    error: GlowmcuError | None


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
    found = survey(model, shapes, fix_inputs)
    if found.error is not None:
        raise found.error
    assert found.imported is not None
    return found.imported


def survey(
    model: str | Path | bytes | onnx.ModelProto,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    fix_inputs: Mapping[str, ArrayLike] | None = None,
) -> Survey:
    """Read what can be compiled of an ONNX model, with the arguments of `load`.

    Raises InvalidModelError for what is not a consistent model, and OptionError.
    """
    source = read(model)
    source.proto = upgraded(source.proto, source.notes)
    source.proto = with_fixed_inputs(source.proto, fix_inputs or {}, source.notes)
    graph = source.proto.graph
    versions = opsets(source)
    scope = Scope(versions)
    refuse_sparse(graph)
    _check_names(graph)
    local = local_functions(source.proto)
    check_loops(graph, local)
    settler = Settler(Budget.of(source.size))
    reader = TensorReader(source)
    importer = Importer(reader, local, settler, source.notes)
    names = [t.name for t in graph.initializer]
    inputs = bind_inputs(graph, names, shapes or {}, source.notes, importer.report)
    importer.constants(graph.initializer, scope)
    scope.values.update(inputs)
    known = [v for v in inputs.values() if v is not None]
    for value in known:
        settler.add(value)
    importer.nodes(graph.node, scope, [o.name for o in graph.output], "")
    found = _graph(source, scope, importer, known)
    if found is None:
        return Survey(None, importer.error())
    shaped, extents = with_shapes(found, importer.report)
    verify(shaped)
    imported = Imported(
        shaped,
        tuple(source.notes),
        source.hash.hexdigest(),
        source.name,
        versions.get("", 0),
        extents,
        source.proto,
    )
    return Survey(imported, importer.error())


def _graph(source: Source, scope: Scope, importer: Importer, inputs: list[Value]) -> Graph | None:
    """Return the graph of what was imported, None if that is nothing."""
    items = source.proto.graph.output
    if not importer.problems:
        values = tuple(_output(item, scope, source.notes) for item in items)
        return Graph(source.name, tuple(inputs), values, tuple(o.name for o in items))
    wanted = {o.name: v for o in items if (v := scope.value(o.name)) is not None and v.producer}
    wanted |= {v.name: v for v in importer.unread if v not in wanted.values()}
    if not wanted:
        return None
    part = Graph(source.name, (), tuple(wanted.values()), tuple(wanted))
    read_ = part.uses()
    return replace(part, inputs=tuple(v for v in (*inputs, *importer.standins) if v in read_))


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
