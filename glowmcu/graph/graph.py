"""Value, Node, Graph: an immutable, strongly typed data-flow graph, and the builder `apply`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from glowmcu.core.types import Array, TensorType, compact, type_of


class Operator(Protocol):
    """What the graph needs to know of an operator (the cards in ops/ implement it)."""

    raw: ClassVar[bool]

    def infer(self, *types: Any) -> Any:
        """Return the output type (or a tuple of them) from the types of the inputs."""

    def reference(self, *arrays: Any) -> Any:
        """Return the output array (or a tuple of them) computed with numpy."""


@dataclass(frozen=True, eq=False)
class Value:
    """A tensor: a graph input (no producer, no data), a constant (data) or a node's output.

    `name` is the ONNX tensor's name where the value equals that tensor; with `perm`, the value is
    that tensor transposed by `perm` (layout passes keep track so that layers can be compared).
    """

    name: str
    type: TensorType
    producer: Node | None = field(default=None, repr=False)
    index: int = 0
    data: Array | None = field(default=None, repr=False)
    perm: tuple[int, ...] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the type."""
        return self.type.shape

    @property
    def is_constant(self) -> bool:
        """True for a value that carries data."""
        return self.data is not None


@dataclass(frozen=True, eq=False)
class Node:
    """One operation. `types`, `names` and `perms` describe its outputs; `origin` the ONNX nodes."""

    op: Any
    inputs: tuple[Value | None, ...]
    types: tuple[TensorType, ...]
    names: tuple[str, ...]
    origin: tuple[str, ...] = ()
    perms: tuple[tuple[int, ...] | None, ...] = ()
    outputs: tuple[Value, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        perms = self.perms or (None,) * len(self.types)
        outputs = tuple(
            Value(name, type_, self, i, None, perm)
            for i, (name, type_, perm) in enumerate(zip(self.names, self.types, perms, strict=True))
        )
        object.__setattr__(self, "outputs", outputs)

    @property
    def output(self) -> Value:
        """The only output of a node that has one."""
        (value,) = self.outputs
        return value

    @property
    def name(self) -> str:
        """A label for messages: the ONNX node names, else the first output's name."""
        return " + ".join(self.origin) or self.names[0]


@dataclass(frozen=True, eq=False)
class Graph:
    """A network. Nodes are derived from the outputs, so a dead node cannot exist."""

    name: str
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    output_names: tuple[str, ...]

    def nodes(self) -> tuple[Node, ...]:
        """Nodes in a deterministic topological order."""
        return tuple(_topological(self.outputs))

    def uses(self) -> dict[Value, int]:
        """How often each value is read by nodes or leaves as an output."""
        count: dict[Value, int] = {}
        for node in self.nodes():
            for value in node.inputs:
                if value is not None:
                    count[value] = count.get(value, 0) + 1
        for value in self.outputs:
            count[value] = count.get(value, 0) + 1
        return count

    def values(self) -> tuple[Value, ...]:
        """Every value: inputs, constants in order of use, outputs of nodes."""
        seen: dict[Value, None] = dict.fromkeys(self.inputs)
        for node in self.nodes():
            seen.update(dict.fromkeys(v for v in node.inputs if v is not None))
            seen.update(dict.fromkeys(node.outputs))
        seen.update(dict.fromkeys(self.outputs))
        return tuple(seen)


def _topological(outputs: tuple[Value, ...]) -> Iterator[Node]:
    done: set[Node] = set()
    stack = [(v.producer, False) for v in reversed(outputs) if v.producer]
    while stack:
        node, ready = stack.pop()
        if node in done:
            continue
        if ready:
            done.add(node)
            yield node
            continue
        stack.append((node, True))
        stack.extend(
            (v.producer, False)
            for v in reversed(node.inputs)
            if v is not None and v.producer is not None and v.producer not in done
        )


def constant(name: str, data: Array, type_: TensorType | None = None) -> Value:
    """Make a constant value; `type_` adds a quantization to the array's own type."""
    return Value(name, type_ or type_of(data), data=compact(data))


def apply(
    op: Operator,
    *inputs: Value | None,
    name: str = "",
    names: tuple[str, ...] = (),
    origin: tuple[str, ...] = (),
    types: tuple[TensorType, ...] = (),
    perm: tuple[int, ...] | None = None,
) -> Node:
    """Make a node. Output types are inferred unless given (as for quantized outputs)."""
    if not types:
        found = op.infer(*(None if v is None else v.type for v in inputs))
        types = found if isinstance(found, tuple) else (found,)
    if not names:
        base = name or next((f"{v.name}.{type(op).__name__.lower()}" for v in inputs if v), "value")
        names = (base, *(f"{base}.{i}" for i in range(1, len(types))))
    return Node(op, inputs, types, names, origin, (perm,) * len(types) if perm else ())


def body_of(node: Node) -> Graph | None:
    """Return the graph that a node runs, None for a node that computes by itself.

    The operator of such a node holds it in a field `body`.
    """
    found = getattr(node.op, "body", None)
    return found if isinstance(found, Graph) else None


def constant_data(value: Value | None) -> Array | None:
    """Return the data of a constant, None for anything else."""
    return None if value is None else value.data
