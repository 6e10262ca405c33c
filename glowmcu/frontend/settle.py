"""What an importer returns becomes final: constants are folded, results get their ONNX names."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from glowmcu.core.passes import IllFormedError
from glowmcu.core.types import Array, TensorType, compact, type_of
from glowmcu.errors import InvalidModelError
from glowmcu.frontend.tensors import check_size
from glowmcu.graph.evaluate import evaluate_node
from glowmcu.graph.graph import Node, Value, constant
from glowmcu.ops.loop import takes_long

_MOST = 256 << 20
_LEAST = 16 << 20
_FACTOR = 16
_ALIKE = 512 << 20


@dataclass
class Budget:
    """Bytes that folded constants may take, so that a small file cannot ask for gigabytes.

    limit  of all but those of equal numbers, which take the memory of one; these may have up to
           512 MiB each
    """

    limit: int
    used: int = 0

    @staticmethod
    def of(model_size: int) -> Budget:
        """Return the budget of a model: 16 times its size, from 16 to 256 MiB."""
        return Budget(min(_MOST, max(_LEAST, _FACTOR * model_size)))

    def allow(self, type_: TensorType, name: str, alike: bool) -> None:
        """Refuse to compute what cannot be kept.

        alike  it is computed from constants of equal numbers, so it may be one itself
        """
        if type_.nbytes > (_ALIKE if alike else self.limit - self.used):
            self._refuse(type_, name)

    def take(self, data: Array, type_: TensorType, name: str) -> None:
        """Account for one constant; raise InvalidModelError when there are too many."""
        self.allow(type_, name, alike=not any(data.strides))
        self.used += data.nbytes if any(data.strides) else data.itemsize

    def _refuse(self, type_: TensorType, name: str) -> None:
        raise InvalidModelError(
            f"the constants computed from the model take more than {self.limit >> 20} MiB",
            where=f"tensor '{name}' of type {type_}",
            why=f"folded constants may take {_FACTOR} times the model's size, from "
            f"{_LEAST >> 20} to {_MOST >> 20} MiB; {_ALIKE >> 20} MiB if all numbers are equal",
        )


class Settler:
    """Remembers which values are final, so that each one is looked at once."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._known: set[Value] = set()

    def add(self, value: Value) -> None:
        """Declare a value final as it is (an input, an initializer)."""
        self._known.add(value)

    def settle(self, results: tuple[Value, ...], names: tuple[str, ...]) -> tuple[Value, ...]:
        """Return `results`, the part of the graph made since the last call folded and renamed.

        A result that was there before (Identity) keeps its name.
        """
        wanted: dict[Value, str] = {}
        for value, name in zip(results, names, strict=True):
            if name and value not in self._known:
                wanted.setdefault(value, name)
        done: dict[Value, Value] = {}
        final = tuple(self._settled(v, wanted, done) for v in results)
        self._known.update(done.values())
        return final

    def _settled(self, value: Value, wanted: dict[Value, str], done: dict[Value, Value]) -> Value:
        if value in self._known:
            return value
        if value in done:
            return done[value]
        node = value.producer
        if node is None:
            if value.data is None:
                raise IllFormedError(f"importer made '{value.name}' without producer or data")
            data = compact(value.data)
            self._budget.take(data, value.type, value.name)
            done[value] = replace(value, name=wanted.get(value, value.name), data=data)
            return done[value]
        inputs = tuple(None if v is None else self._settled(v, wanted, done) for v in node.inputs)
        names = tuple(wanted.get(v, v.name) for v in node.outputs)
        for type_ in node.types:
            check_size(type_.shape, type_.dtype, f"tensor '{names[0]}'")
        if _foldable(node, inputs):
            outputs = self._folded(node, inputs, names)
        elif inputs == node.inputs and names == node.names:
            outputs = node.outputs
        else:
            fresh = Node(node.op, inputs, node.types, names, node.origin, node.perms)
            outputs = fresh.outputs
        done.update(zip(node.outputs, outputs, strict=True))
        return done[value]

    def _folded(
        self, node: Node, inputs: tuple[Value | None, ...], names: tuple[str, ...]
    ) -> tuple[Value, ...]:
        perms = node.perms or (None,) * len(names)
        fresh = Node(node.op, inputs, node.types, names, node.origin, node.perms)
        alike = any(v is not None and v.data is not None and _is_alike(v.data) for v in inputs)
        for name, type_ in zip(names, node.types, strict=True):
            self._budget.allow(type_, name, alike)
        found = tuple(
            replace(constant(name, _checked(array, type_, name), type_), perm=perm)
            for name, array, type_, perm in zip(
                names, fold_node(fresh), node.types, perms, strict=True
            )
        )
        for value in found:
            assert value.data is not None
            self._budget.take(value.data, value.type, value.name)
        return found


def _is_alike(data: Array) -> bool:
    return data.size > 1 and not any(data.strides)


def fold_node(node: Node) -> tuple[Array, ...]:
    """Return the outputs of a node whose inputs are all constants."""
    with np.errstate(all="ignore"):
        return evaluate_node(node, [None if v is None else v.data for v in node.inputs])


def _foldable(node: Node, inputs: tuple[Value | None, ...]) -> bool:
    """Quantized weights stay integers with a Dequantize, for the passes that fuse it."""
    if type(node.op).__name__ == "Dequantize" or takes_long(node):
        return False
    return all(v is None or v.data is not None for v in inputs)


def _checked(array: Array, type_: TensorType, name: str) -> Array:
    if type_of(array) != type_.with_quant(None):
        raise IllFormedError(f"'{name}' was folded to {type_of(array)}; its type says {type_}")
    return array
