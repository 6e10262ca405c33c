"""The walk over ONNX nodes: each is handed to its importer, or its definition is expanded."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence

import onnx
from onnx.defs import OpSchema

from glowmcu import ops
from glowmcu.errors import GlowmcuError, InvalidModelError, Problem, UnsupportedError
from glowmcu.frontend import functions, signature
from glowmcu.frontend.functions import FunctionKey
from glowmcu.frontend.read import domain_of
from glowmcu.frontend.scope import Scope, attributes_of
from glowmcu.frontend.settle import Settler
from glowmcu.frontend.structure import order, reads_of
from glowmcu.frontend.tensors import TensorReader
from glowmcu.graph.graph import Value, constant
from glowmcu.ops.base import IMPORTERS
from glowmcu.ops.onnx_node import OnnxNode

assert ops  # importing the package fills IMPORTERS

_MAX_NODES = 50_000
_CONTROL_FLOW = frozenset({"If", "Loop", "Scan"})
_MISMATCHES = (TypeError, ValueError, IndexError, ArithmeticError)
"""What the type inference of a card raises for operands that do not go together."""


class Importer:
    """Imports the nodes of a model into values; collects what is wrong instead of stopping."""

    def __init__(
        self,
        reader: TensorReader,
        local: Mapping[FunctionKey, onnx.FunctionProto],
        settler: Settler,
    ) -> None:
        self.problems: list[Problem] = []
        self.invalid = False
        self._reader = reader
        self._local = local
        self._settler = settler
        self._count = 0

    def constants(self, tensors: Iterable[onnx.TensorProto], scope: Scope) -> None:
        """Define the initializers of a graph in its scope."""
        for tensor in tensors:
            name = tensor.name
            if name in scope.values:
                raise InvalidModelError(f"the initializer '{name}' is defined twice")
            value = constant(
                scope.tensor_name(name), self._reader.array(tensor, f"initializer '{name}'")
            )
            self._settler.add(value)
            scope.values[name] = value

    def nodes(
        self, nodes: Sequence[onnx.NodeProto], scope: Scope, outputs: Sequence[str], where: str
    ) -> None:
        """Import the nodes that `outputs` need into the scope."""
        live = order(nodes, scope.names(), outputs, where)
        scope.read = set(outputs).union(*(reads_of(n) for n in live))
        for node in live:
            self._count += 1
            if self._count > _MAX_NODES:
                raise InvalidModelError(
                    f"the model has more than {_MAX_NODES} nodes after its functions are expanded"
                )
            self._node(scope.resolved(node), scope)

    def _node(self, node: onnx.NodeProto, scope: Scope) -> None:
        domain = domain_of(node.domain)
        function = self._local.get((domain, node.op_type, node.overload))
        if function is not None:
            return self._call(function, node, scope, None)
        importer = IMPORTERS.get((domain, node.op_type))
        opset = scope.opsets.get(domain, 1)
        schema = signature.schema_of(node.op_type, opset, domain)
        actual = [scope.value(n) if n else None for n in node.input]
        failed = any(n and v is None for n, v in zip(node.input, actual, strict=True))
        seen = self._onnx_node(node, scope, tuple(actual), opset)
        control = not domain and importer is None and node.op_type in _CONTROL_FLOW
        if importer is None and not control and not functions.has_body(schema):
            self._report(_unknown(seen, schema, opset))
            return self._fail(node, scope, schema, seen, failed)
        if failed:
            return self._fail(node, scope, schema, seen, failed)
        wrong = schema and signature.mistake(schema, node, seen.inputs)
        if wrong:
            self.invalid = True
            self._report(seen.problem(wrong))
            return self._fail(node, scope, None, seen, failed)
        seen.attributes = attributes_of(node, self._reader)
        if control:
            return self._control(node, scope, schema, seen)
        problems = self._import(node, scope, schema, seen) if importer else ()
        if problems is None or self._expand(node, scope, schema, seen, tuple(problems)):
            return None
        return self._fail(node, scope, schema, seen, failed)

    def _onnx_node(
        self, node: onnx.NodeProto, scope: Scope, inputs: tuple[Value | None, ...], opset: int
    ) -> OnnxNode:
        """Return what an importer sees; outputs that nothing reads count as absent."""
        names = [scope.tensor_name(n) if n in scope.read else "" for n in node.output]
        while names and not names[-1]:
            names.pop()
        return OnnxNode(
            op_type=node.op_type,
            name=scope.node_label(node),
            opset=opset,
            inputs=inputs,
            output_names=tuple(names),
            attributes={},
            domain=domain_of(node.domain),
        )

    def _import(
        self, node: onnx.NodeProto, scope: Scope, schema: OpSchema | None, seen: OnnxNode
    ) -> tuple[Problem, ...] | None:
        """Run the node's importer and define its outputs; return the problems, None if none."""
        try:
            found = IMPORTERS[seen.domain, seen.op_type](seen)
            results: tuple[Value, ...] = found if isinstance(found, tuple) else (found,)
            names = seen.output_names
            if len(results) < len(names):
                seen.fail(f"output {len(results)} ('{names[len(results)]}') is not supported")
            ignored = signature.ignored_attribute(schema, seen.attributes, seen.used, node)
            if ignored:
                seen.fail(f"attribute '{ignored}' = {seen.attributes[ignored]} is not supported")
            final = self._settler.settle(results[: len(names)], names)
        except GlowmcuError as error:
            self.invalid |= isinstance(error, InvalidModelError)
            return tuple(p if p.where else seen.problem(p.what) for p in error.problems)
        except _MISMATCHES as error:
            return (seen.problem(f"the operands do not go together: {error}"),)
        self._define(node, scope, final)
        return None

    def _define(self, node: onnx.NodeProto, scope: Scope, values: Sequence[Value | None]) -> None:
        for number, name in enumerate(node.output):
            if name:
                scope.values[name] = values[number] if number < len(values) else None

    def _report(self, *problems: Problem) -> None:
        self.problems.extend(problems)

    def _fail(
        self,
        node: onnx.NodeProto,
        scope: Scope,
        schema: OpSchema | None,
        seen: OnnxNode,
        failed: bool,
    ) -> None:
        """Define the outputs of a node that was not imported by placeholders of inferred types.

        Not where they would have been constants: what needs the data would fail for no own fault.
        """
        types: Mapping[str, object] = {}
        constant_result = all(v is None or v.data is not None for v in seen.inputs)
        if not failed and not constant_result:
            types = signature.inferred_types(schema, node, seen.inputs, seen.opset)
        values: list[Value | None] = []
        for name in node.output:
            type_ = types.get(name)
            value = Value(scope.tensor_name(name), type_) if type_ else None  # type: ignore[arg-type]
            if value is not None:
                self._settler.add(value)
            values.append(value)
        self._define(node, scope, values)

    def _expand(
        self,
        node: onnx.NodeProto,
        scope: Scope,
        schema: OpSchema | None,
        seen: OnnxNode,
        problems: tuple[Problem, ...],
    ) -> bool:
        """Import a node by ONNX's definition of its operator; on failure report `problems`."""
        body = functions.schema_body(schema, node, seen.inputs, seen.opset)
        before, invalid = len(self.problems), self.invalid
        if body is not None:
            self._call(body, node, scope, schema)
            inner = self.problems[before:]
            if not inner:
                return True
            del self.problems[before:]
            self.invalid = invalid
            problems = problems or (
                seen.problem(
                    "the operator is not supported",
                    why=f"ONNX defines it by other operators, of which one fails: {inner[0].what}",
                ),
            )
        self._report(*(problems or (_unknown(seen, schema, seen.opset),)))
        return False

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

    def _control(
        self, node: onnx.NodeProto, scope: Scope, schema: OpSchema | None, seen: OnnxNode
    ) -> None:
        """Import the branch that a constant condition takes; other control flow is refused."""
        condition = seen.value(0).data if node.op_type == "If" and seen.inputs else None
        if condition is None or condition.size != 1:
            self._report(
                seen.problem(
                    "control flow at run time is not supported",
                    why="the C code computes the same nodes in every run",
                    hint="export without it, or make its condition a constant"
                    if node.op_type == "If"
                    else "unroll the loop when exporting",
                )
            )
            return self._fail(node, scope, schema, seen, False)
        graph = seen.attr("then_branch" if condition.item() else "else_branch")
        outputs = [o.name for o in graph.output]
        if len(outputs) != len(node.output):
            raise InvalidModelError("a branch has the wrong number of outputs", where=seen.label)
        inner = Scope(
            opsets=scope.opsets,
            attributes=scope.attributes,
            prefix=scope.prefix,
            results=dict(scope.results)
            | {i: scope.tensor_name(o) for i, o in zip(outputs, node.output, strict=True) if o},
            outer=scope,
            calls=scope.calls,
        )
        refuse_sparse(graph)
        self.constants(graph.initializer, inner)
        self.nodes(graph.node, inner, outputs, f"branch of node '{seen.label}'")
        self._define(node, scope, [inner.value(o) for o in outputs])
        return None

    def raise_problems(self) -> None:
        """Raise everything that was found wrong, at once."""
        if self.problems:
            kind = InvalidModelError if self.invalid else UnsupportedError
            raise kind(_grouped(self.problems))


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


def _unknown(seen: OnnxNode, schema: OpSchema | None, opset: int) -> Problem:
    names = sorted({name for _, name in IMPORTERS})
    domains = sorted(d for d, name in IMPORTERS if name == seen.op_type)
    hint = ""
    if domains:
        hint = f"it is known in domain '{domains[0] or 'ai.onnx'}'"
    elif close := difflib.get_close_matches(seen.op_type, names, 3):
        hint = f"close to it are {', '.join(close)}"
    domain = seen.domain or "ai.onnx"
    why = f"domain {domain}, opset {opset}, has it, but glowmcu does not"
    if schema is None and not seen.domain:
        why = f"opset {opset} of ONNX has no operator of that name"
    elif schema is None:
        why = f"domain {domain} is not part of ONNX and the model brings no function for it"
    return seen.problem("the operator is not supported", why=why, hint=hint)


def _grouped(problems: Sequence[Problem]) -> list[Problem]:
    """Merge problems that differ in their place only."""
    groups: dict[tuple[str, str, str], list[Problem]] = {}
    for problem in problems:
        groups.setdefault((problem.what, problem.why, problem.hint), []).append(problem)
    merged = []
    for (what, why, hint), group in groups.items():
        where = group[0].where
        if len(group) > 1:
            where += f" and {len(group) - 1} more"
        merged.append(Problem(what, where, why, hint))
    return merged
