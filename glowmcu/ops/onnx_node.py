"""OnnxNode: what an importer sees of an ONNX node, with errors that name the node."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NoReturn

from glowmcu.core.types import Array, TensorType
from glowmcu.errors import Problem, UnsupportedError
from glowmcu.graph.graph import Node, Value, apply, constant


@dataclass
class OnnxNode:
    """One ONNX node with its inputs already imported.

    outputs     how many the node has; output_names ends with the last one that is read
    attributes  Python values: int, float, str, tuples of them, numpy arrays; graphs as protobuf
    used        names of the attributes that the importer asked for; the rest must be harmless
    """

    op_type: str
    name: str
    opset: int
    inputs: tuple[Value | None, ...]
    output_names: tuple[str, ...]
    attributes: dict[str, Any]
    domain: str = ""
    used: set[str] = field(default_factory=set)
    outputs: int = 0

    @property
    def label(self) -> str:
        """The node's name, else its first output's."""
        return self.name or next((n for n in self.output_names if n), self.op_type)

    def attr(self, name: str, default: Any = None) -> Any:
        """Return an attribute, or the default where it is absent."""
        self.used.add(name)
        return self.attributes.get(name, default)

    def optional(self, index: int) -> Value | None:
        """Return an input or None where it is absent."""
        return self.inputs[index] if index < len(self.inputs) else None

    def value(self, index: int) -> Value:
        """Return an input that must be there."""
        found = self.optional(index)
        if found is None:
            self.fail(f"input {index} is missing")
        return found

    def const(self, index: int, what: str) -> Array | None:
        """Return an optional input's data, None if absent; it must be known at compile time."""
        found = self.optional(index)
        if found is None:
            return None
        return self.data(found, what)

    def data(self, value: Value, what: str) -> Array:
        """Return the data of a value that must be known at compile time."""
        if value.data is None:
            needs = inputs_of(value)
            hint = "make it a constant when exporting, or bind dimensions with --shape"
            if len(needs) == 1:
                hint = f"fix it with --fix-input {needs[0]}=..., or make it a constant"
            self.fail(
                f"{what} is computed at run time",
                why="the C code is specialised at compile time, so it must be a constant",
                hint=hint,
                needs=needs,
            )
        return value.data

    def ints(self, index: int, attribute: str) -> tuple[int, ...] | None:
        """Return integers from a constant input `index` or, in older opsets, from an attribute."""
        found = self.const(index, attribute)
        if found is not None:
            return tuple(int(v) for v in found.reshape(-1))
        values = self.attr(attribute)
        return None if values is None else tuple(int(v) for v in values)

    def apply(
        self,
        op: Any,
        *inputs: Value | None,
        suffix: str = "",
        types: tuple[TensorType, ...] = (),
        perm: tuple[int, ...] | None = None,
        outputs: int = 1,
    ) -> Node:
        """Apply an operator. Without a suffix the result is the ONNX node's own output (transposed
        by `perm` if given); with one it is an intermediate value.
        """
        for value in inputs:
            if value is not None and not _computes(op, value.type):
                self.fail(
                    f"elements of type {value.type.dtype} without quantization",
                    why=f"{type(op).__name__} computes with {', '.join(map(str, op.floats))}",
                    hint="convert the model to float32",
                )
        base = next((n for n in self.output_names if n), self.label)
        if suffix:
            names = tuple(f"{base}.{suffix}" + (f".{i}" if i else "") for i in range(outputs))
        else:
            names = tuple(
                self.output_names[i]
                if i < len(self.output_names) and self.output_names[i]
                else f"{base}.{i}"
                for i in range(outputs)
            )
        return apply(op, *inputs, names=names, origin=(self.label,), types=types, perm=perm)

    def constant(self, data: Array, suffix: str) -> Value:
        """Make a constant that belongs to this node."""
        return constant(f"{self.label}.{suffix}", data)

    def fail(
        self, what: str, *, why: str = "", hint: str = "", needs: tuple[str, ...] = ()
    ) -> NoReturn:
        """Raise UnsupportedError that names this node, its operator, opset and input types."""
        raise UnsupportedError([self.problem(what, why=why, hint=hint, needs=needs)])

    def problem(
        self, what: str, *, why: str = "", hint: str = "", needs: tuple[str, ...] = ()
    ) -> Problem:
        """Describe something wrong with this node."""
        domain = f"{self.domain}." if self.domain else ""
        types = ", ".join("-" if v is None else str(v.type) for v in self.inputs)
        where = (
            f"node '{self.label}', {domain}{self.op_type} (opset {self.opset}), inputs ({types})"
        )
        return Problem(f"{self.op_type}: {what}", where, why, hint, needs)


def _computes(op: Any, type_: TensorType) -> bool:
    real = type_.dtype.is_float and type_.quant is None
    return not real or op.raw or type_.dtype in getattr(op, "floats", (type_.dtype,))


def inputs_of(value: Value) -> tuple[str, ...]:
    """Return the names of the graph's inputs that a value is computed from."""
    found: dict[str, None] = {}
    seen: set[Value] = set()
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if item in seen or item.data is not None:
            continue
        seen.add(item)
        if item.producer is None:
            found[item.name] = None
        else:
            waiting.extend(v for v in item.producer.inputs if v is not None)
    return tuple(found)
