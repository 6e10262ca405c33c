"""Toy operators of domain 'toy' and a short way to write models, for tests of the frontend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import onnx
import onnx.parser

from glowmcu.core.types import Array, TensorType
from glowmcu.graph.graph import Value

HEAD = '<ir_version: 8, opset_import: ["" : 17, "toy" : 1, "local" : 1]>'


def model(text: str, head: str = HEAD, functions: str = "") -> onnx.ModelProto:
    """Parse ONNX's text form."""
    return onnx.parser.parse_model(f"{head}\ngraph {text}\n{functions}")


@dataclass(frozen=True)
class Sum:
    """Adds two tensors of one shape."""

    raw: ClassVar[bool] = False

    def infer(self, a: TensorType, b: TensorType) -> TensorType:
        if a.shape != b.shape:
            raise TypeError(f"shapes {a.shape} and {b.shape} differ")
        return a

    def reference(self, a: Array, b: Array) -> Array:
        return a + b


@dataclass(frozen=True)
class Halves:
    """Splits a vector in two."""

    raw: ClassVar[bool] = True

    def infer(self, x: TensorType) -> tuple[TensorType, TensorType]:
        half = x.with_shape((x.shape[0] // 2,))
        return half, half

    def reference(self, x: Array) -> tuple[Array, Array]:
        return x[: len(x) // 2], x[len(x) // 2 :]


@dataclass(frozen=True)
class Grow:
    """Repeats a vector `times` times."""

    times: int
    raw: ClassVar[bool] = True

    def infer(self, x: TensorType) -> TensorType:
        return x.with_shape((x.shape[0] * self.times,))

    def reference(self, x: Array) -> Array:
        return x.repeat(self.times)


def import_sum(node: Any) -> Value:
    return node.apply(Sum(), node.value(0), node.value(1)).output


def import_double(node: Any) -> Value:
    x = node.value(0)
    return node.apply(Sum(), x, x, suffix="inner").output


def import_halves(node: Any) -> tuple[Value, ...]:
    return node.apply(Halves(), node.value(0), outputs=2).outputs


def import_grow(node: Any) -> Value:
    return node.apply(Grow(node.attr("times", 2)), node.value(0)).output


def import_scaled(node: Any) -> Value:
    assert (round(node.attr("alpha"), 5), node.attr("beta")) == (0.16667, 0.5)
    return node.value(0)


def import_same(node: Any) -> Value:
    return node.value(0)


IMPORTERS = {
    ("toy", "Sum"): import_sum,
    ("toy", "Double"): import_double,
    ("toy", "Halves"): import_halves,
    ("toy", "Grow"): import_grow,
    ("toy", "Same"): import_same,
}
