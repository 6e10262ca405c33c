"""The walk over ONNX nodes: each is handed to its importer, or its definition is expanded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import onnx
from onnx.defs import OpSchema

from glowmcu import ops
from glowmcu.core import dtypes
from glowmcu.core.types import TensorType
from glowmcu.errors import GlowmcuError, InvalidModelError, Problem, UnsupportedError
from glowmcu.frontend import bodies, control, functions, signature
from glowmcu.frontend.choice import Refused
from glowmcu.frontend.extent import DATA_DEPENDENT
from glowmcu.frontend.functions import FunctionKey
from glowmcu.frontend.precompute import precomputed
from glowmcu.frontend.read import domain_of
from glowmcu.frontend.scope import Scope, attributes_of
from glowmcu.frontend.settle import Settler
from glowmcu.frontend.stored import misread, plain
from glowmcu.frontend.structure import order, reads_of
from glowmcu.frontend.tensors import TensorReader
from glowmcu.frontend.unsupported import grouped, unsupported
from glowmcu.frontend.widen import narrowed, narrows, widened
from glowmcu.graph.graph import Value, constant
from glowmcu.ops.base import IMPORTERS
from glowmcu.ops.onnx_node import OnnxNode

assert ops  # importing the package fills IMPORTERS

T = TypeVar("T")
_MAX_NODES = 50_000
_MAX_DEPTH = 60
_MAX_PROBLEMS = 500
_MISMATCHES = (TypeError, ValueError, IndexError, ArithmeticError)
"""What the type inference of a card raises for operands that do not go together."""


@dataclass(frozen=True)
class _Site:
    """A node at its place: the protobuf, its scope, ONNX's schema, what an importer sees of it."""

    node: onnx.NodeProto
    scope: Scope
    schema: OpSchema | None
    seen: OnnxNode


class Importer:
    """Imports the nodes of a model into values; collects what is wrong instead of stopping.

    unread  values that were imported and that a node reads which was not
    standins  what stands for the outputs of nodes that were not imported
    """

    def __init__(
        self,
        reader: TensorReader,
        local: Mapping[FunctionKey, onnx.FunctionProto],
        settler: Settler,
        notes: list[str],
    ) -> None:
        self.problems: list[Problem] = []
        self.unread: list[Value] = []
        self.standins: list[Value] = []
        self._inside: set[str] = set()
        self.invalid = False
        self._reader = reader
        self._local = local
        self._settler = settler
        self._notes = notes
        self._count = 0
        self._depth = 0

    def constants(self, tensors: Iterable[onnx.TensorProto], scope: Scope) -> None:
        """Define the initializers of a graph in its scope."""
        for tensor in tensors:
            name = tensor.name
            if name in scope.values:
                raise InvalidModelError(f"the initializer '{name}' is defined twice")
            try:
                value = constant(name, self._reader.array(tensor, f"initializer '{name}'"))
            except UnsupportedError as error:
                self.report(error)
                scope.values[name] = None
                continue
            scope.values[name] = self._settler.settle((value,), (scope.tensor_name(name),))[0]

    def report(self, error: GlowmcuError) -> None:
        """Remember an error, to be raised with all others."""
        self.problems.extend(error.problems)
        self.invalid |= isinstance(error, InvalidModelError)

    def nodes(
        self, nodes: Sequence[onnx.NodeProto], scope: Scope, outputs: Sequence[str], where: str
    ) -> None:
        """Import the nodes that `outputs` need into the scope."""
        self._count += len(nodes)
        self._depth += 1
        if self._count > _MAX_NODES or self._depth > _MAX_DEPTH:
            raise InvalidModelError(
                f"with its functions expanded the model has more than {_MAX_NODES} nodes or is "
                f"nested more than {_MAX_DEPTH} deep",
                where=where,
            )
        live = order(nodes, scope, outputs, where)
        scope.read = set(outputs).union(*(reads_of(n) for n in live))
        for node in live:
            self._node(scope.resolved(node), scope)
            if len(self.problems) > _MAX_PROBLEMS and (error := self.error()):
                raise error
        self._depth -= 1

    def _node(self, node: onnx.NodeProto, scope: Scope) -> None:
        """Import one node: by its function, its card, ONNX's definition, or computing it now."""
        domain = domain_of(node.domain)
        function = self._local.get((domain, node.op_type, node.overload))
        if function is not None:
            return self._call(function, node, scope, None)
        opset = scope.opsets.get(domain, 1)
        schema = signature.schema_of(node.op_type, opset, domain)
        if schema and schema.since_version > opset:
            self._note_newer(node.op_type, opset, schema.since_version)
            opset = schema.since_version
        site = _Site(node, scope, schema, self._seen(node, scope, opset))
        if any(n and scope.value(n) is None for n in node.input):
            if not _has_a_way(site):
                self.problems.append(unsupported(site.seen, site.schema))
            return self._leave_out(site, [])
        wrong = schema and (
            signature.mistake(schema, node, site.seen.inputs)
            or signature.oversized(schema, node, site.seen.inputs, opset)
        )
        if wrong:
            self.invalid = True
            self.problems.append(site.seen.problem(wrong))
            return self._leave_out(site, [])
        site.seen.attributes = attributes_of(node, self._reader)
        problems: tuple[Problem, ...] = ()
        ways = [self._control, self._import, self._expand, self._import_wide, self._precompute]
        if node.op_type in DATA_DEPENDENT:  # on constants, nothing depends on data
            ways.insert(0, self._precompute)
        for way in ways:
            found = way(site)
            if found is None:
                return None
            problems = problems or found
        self.problems.extend(problems or (unsupported(site.seen, site.schema),))
        return self._leave_out(site, self._placeholders(site))

    def _leave_out(self, site: _Site, values: Sequence[Value | None]) -> None:
        self.unread += [v for v in site.seen.inputs if v is not None and v.producer is not None]
        self.standins += [v for v in values if v is not None]
        self._define(site, values)

    def _note_newer(self, op_type: str, opset: int, since: int) -> None:
        self._note(f"{op_type} is used as of opset {since}; the model says opset {opset}")

    def _note(self, note: str) -> None:
        if note not in self._notes:
            self._notes.append(note)

    def _seen(self, node: onnx.NodeProto, scope: Scope, opset: int) -> OnnxNode:
        """Return what an importer sees; outputs that nothing reads count as absent."""
        names = [scope.tensor_name(n) if n in scope.read else "" for n in node.output]
        while names and not names[-1]:
            names.pop()
        return OnnxNode(
            op_type=node.op_type,
            name=scope.node_label(node),
            opset=opset,
            inputs=tuple(scope.value(n) if n else None for n in node.input),
            output_names=tuple(names),
            attributes={},
            domain=domain_of(node.domain),
            outputs=len(node.output),
        )

    def _import_wide(self, site: _Site) -> tuple[Problem, ...] | None:
        """Run the node's importer on float32 instead of a type that it does not take."""
        seen = widened(site.seen)
        if seen is None or site.schema is None:
            return ()
        problems = self._import(site, seen)
        if problems is None and any(v and v.type.dtype is dtypes.F64 for v in site.seen.inputs):
            self._note_narrow(site)
        return problems

    def _note_narrow(self, site: _Site) -> None:
        self._note(f"{site.node.op_type} of float64 is computed in float32")

    def _import(self, site: _Site, wide: OnnxNode | None = None) -> tuple[Problem, ...] | None:
        """Run the node's importer; return what it objects to, None if all is well.

        wide  the node on inputs of wider types
        """
        seen = wide or site.seen
        importer = IMPORTERS.get((seen.domain, seen.op_type))
        if importer is None:
            return ()
        try:
            results = _run(importer, seen)
            if misread(seen, results):
                seen = plain(seen)
                results = _run(importer, seen)
            for number, name in enumerate(seen.output_names):
                if name and number >= len(results):
                    seen.fail(f"output {number} ('{name}') is not supported")
            ignored = signature.ignored_attribute(
                site.schema, seen.attributes, seen.used, site.node
            )
            if ignored:
                seen.fail(f"attribute '{ignored}' = {seen.attributes[ignored]} is not supported")
            self._finish(
                site, narrowed(site.seen, site.schema, results) if wide is not None else results
            )
        except GlowmcuError as error:
            self.invalid |= isinstance(error, InvalidModelError)
            return tuple(
                p if p.where else seen.problem(p.what, why=p.why, hint=p.hint, needs=p.needs)
                for p in error.problems
            )
        except _MISMATCHES as error:
            return (seen.problem(f"the operands do not go together: {error}"),)
        except MemoryError as error:
            return (seen.problem(f"importing it needs too much memory: {error}"),)
        return None

    def _finish(self, site: _Site, results: Sequence[Value | None]) -> None:
        """Fold and name the results of a node and define its outputs."""
        names = site.seen.output_names
        pairs = [(v, n) for v, n in zip(results, names, strict=False) if v is not None and n]
        final = self._settler.settle(tuple(v for v, _ in pairs), tuple(n for _, n in pairs))
        by_name = {n: v for (_, n), v in zip(pairs, final, strict=True)}
        self._define(site, [by_name.get(n) for n in names])

    def _define(self, site: _Site, values: Sequence[Value | None]) -> None:
        for number, name in enumerate(site.node.output):
            if name:
                site.scope.values[name] = values[number] if number < len(values) else None

    def _placeholders(self, site: _Site) -> list[Value | None]:
        """Return stand-ins of inferred type for the outputs of a node that was not imported.

        None where they would have been constants: what needs the data would fail for no own fault.
        """
        types: Mapping[str, TensorType] = {}
        if any(v is not None and v.data is None for v in site.seen.inputs):
            types = signature.inferred_types(
                site.schema, site.node, site.seen.inputs, site.seen.opset
            )
        values: list[Value | None] = []
        for name in site.node.output:
            type_ = types.get(name)
            value = Value(site.scope.tensor_name(name), type_) if type_ else None
            if value is not None:
                self._settler.add(value)
            values.append(value)
        return values

    def _expand(self, site: _Site) -> tuple[Problem, ...] | None:
        """Import a node by ONNX's definition of its operator."""
        try:
            body = bodies.own_body(site.seen)
        except UnsupportedError as error:
            return error.problems
        except _MISMATCHES as error:
            return (site.seen.problem(f"the operands do not go together: {error}"),)
        if body is not None:
            problems = self._expand_into(site, body)
            if problems is None and narrows(body, site.seen):
                self._note_narrow(site)
            return problems
        body = functions.schema_body(site.schema, site.node, site.seen.inputs, site.seen.opset)
        return () if body is None else self._expand_into(site, body)

    def _expand_into(self, site: _Site, body: onnx.FunctionProto) -> tuple[Problem, ...] | None:
        """Import a body in place of a node; report one problem for all that fail in it."""
        lists: tuple[list[Any], ...] = (self.problems, self.unread, self.standins)
        before, invalid = [len(found) for found in lists], self.invalid
        self._call(body, site.node, site.scope, site.schema)
        inner = self.problems[before[0] :]
        if not inner:
            return None
        for found, count in zip(lists, before, strict=True):
            del found[count:]
        self.invalid = invalid
        why = f"ONNX defines it by other operators, of which one fails: {inner[0].what}"
        needs = tuple(dict.fromkeys(n for p in inner for n in p.needs))
        return (site.seen.problem("the operator is not supported", why=why, needs=needs),)

    def _precompute(self, site: _Site) -> tuple[Problem, ...] | None:
        """Let ONNX's reference evaluator compute a node on constants."""
        arrays = precomputed(site.schema, site.node, site.seen.inputs, site.seen.opset)
        if arrays is None:
            return ()
        self._finish(site, [None if a is None else site.seen.constant(a, "value") for a in arrays])
        return None

    def _control(self, site: _Site) -> tuple[Problem, ...] | None:
        """Import control flow."""
        if site.seen.domain or site.seen.op_type not in control.NAMES:
            return ()
        before = len(self.problems)
        try:
            values = control.import_control(site.node, site.scope, site.seen, self)
        except UnsupportedError as error:
            if len(self.problems) == before:
                return error.problems
            values = ()
        except _MISMATCHES as error:
            return (site.seen.problem(f"the operands do not go together: {error}"),)
        self._finish(site, values)
        return None

    def body(self, graph: onnx.GraphProto, scope: Scope, where: str) -> None:
        """Import the initializers and nodes of a branch or a loop's body into its scope."""
        refuse_sparse(graph)
        self.constants(graph.initializer, scope)
        self.nodes(graph.node, scope, [o.name for o in graph.output], where)

    def declare(self, value: Value) -> None:
        """Make a value known that no node computes: an input of a loop's body."""
        self._settler.add(value)
        self._inside.add(value.name)

    def attempt(self, run: Callable[[], T]) -> T | Refused:
        """Return what `run` does, or why it cannot: that is not reported then."""
        lists: tuple[list[Any], ...] = (self.problems, self.unread, self.standins)
        before, invalid, depth = [len(found) for found in lists], self.invalid, self._depth
        self.invalid = False
        error: GlowmcuError | None = None
        try:
            found = run()
        except GlowmcuError as raised:
            error = raised
        except _MISMATCHES as raised:
            error = UnsupportedError(f"the operands do not go together: {raised}")
        if len(self.problems) > before[0]:  # what was found first is the cause
            kind = InvalidModelError if self.invalid else UnsupportedError
            error = kind(self.problems[before[0] :])
        self.invalid = invalid
        if error is None:
            return found
        for found_since, count in zip(lists, before, strict=True):
            del found_since[count:]
        self._depth = depth
        return Refused(type(error)([self._as_seen_outside(p) for p in error.problems]))

    def _as_seen_outside(self, problem: Problem) -> Problem:
        """Return a problem that asks for no constant inside of a loop's body."""
        if self._inside.isdisjoint(problem.needs):
            return problem
        return replace(problem, needs=(), hint="make it the same in every iteration, or a constant")

    def _call(
        self,
        function: onnx.FunctionProto,
        node: onnx.NodeProto,
        scope: Scope,
        schema: OpSchema | None,
    ) -> None:
        """Import the body of a function in place of a node that calls it."""
        key = (function.domain, function.name, function.overload)
        name = scope.node_label(node)
        where = f"function '{function.name}', called by node '{name}'"
        if key in scope.calls:
            raise InvalidModelError(f"the function '{function.name}' calls itself", where=where)
        if len(node.input) > len(function.input) or len(node.output) > len(function.output):
            raise InvalidModelError("the call has more operands than the function", where=where)
        opsets = {domain_of(o.domain): o.version for o in function.opset_import}
        inner = Scope(
            opsets=dict(scope.opsets) | opsets,
            attributes=functions.actual_attributes(function, node, schema),
            prefix=f"{name}/",
            results={
                i: scope.tensor_name(o)
                for i, o in zip(function.output, node.output, strict=False)
                if o
            },
            calls=(*scope.calls, key),
        )
        actual: dict[str, Value | None] = {}
        for formal, given in zip(function.input, node.input, strict=False):
            if given:
                actual[formal] = scope.value(given)
        inner.values.update(actual)
        absent = set(function.input) - actual.keys()
        body = [_without(n, absent) for n in function.node]
        outputs = [
            i for i, o in zip(function.output, node.output, strict=False) if o and o in scope.read
        ]
        self.nodes(body, inner, outputs, where)
        values = {
            o: inner.values[i]
            for i, o in zip(function.output, node.output, strict=False)
            if i in outputs
        }
        scope.values.update({o: values.get(o) for o in node.output if o})

    def error(self) -> GlowmcuError | None:
        """Return everything that was found wrong, as one error."""
        if not self.problems:
            return None
        kind = InvalidModelError if self.invalid else UnsupportedError
        return kind(grouped(self.problems))


def refuse_sparse(graph: onnx.GraphProto) -> None:
    """Raise UnsupportedError for a graph with sparse initializers."""
    if graph.sparse_initializer:
        name = graph.sparse_initializer[0].values.name
        raise UnsupportedError(
            f"initializer '{name}' is sparse", hint="store it dense when exporting"
        )


def _without(node: onnx.NodeProto, absent: set[str]) -> onnx.NodeProto:
    """Return a body node that does not read the function's inputs that the call leaves out."""
    if absent.isdisjoint(node.input):
        return node
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    for number, name in enumerate(node.input):
        if name in absent:
            copy.input[number] = ""
    return copy


def _run(importer: Callable[[OnnxNode], Any], seen: OnnxNode) -> tuple[Value, ...]:
    with np.errstate(all="ignore"):
        found = importer(seen)
    return found if isinstance(found, tuple) else (found,)


def _has_a_way(site: _Site) -> bool:
    key = (site.seen.domain, site.seen.op_type)
    return (
        key in IMPORTERS
        or functions.has_body(site.schema)
        or bodies.has_own_body(site.seen)
        or (not key[0] and key[1] in control.NAMES)
    )
