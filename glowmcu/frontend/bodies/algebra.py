"""Det: minors of small matrices; MelWeightMatrix: a constant; optional values that are tensors."""

from __future__ import annotations

import itertools

import numpy as np

from glowmcu.frontend.bodies.body import Body, body
from glowmcu.ops.onnx_node import OnnxNode

_LARGEST = 6


@body("Det")
def det(b: Body, node: OnnxNode) -> str:
    """Matrices of up to 6 by 6, by minors of one row more each time."""
    x = node.value(0)
    size = x.shape[-1]
    if size != x.shape[-2] or not 1 <= size <= _LARGEST:
        node.fail(f"the determinant of a matrix of {x.shape[-2]} by {size}, at most 6 by 6")
    flat = b.reshape(b.real(0), x.type.numel // size**2, size * size)

    def element(row: int, col: int) -> str:
        return b.part(flat, 1, row * size + col, row * size + col + 1)

    minors: dict[tuple[int, ...], str] = {(c,): element(0, c) for c in range(size)}
    for row in range(1, size):
        elements = [element(row, c) for c in range(size)]
        found: dict[tuple[int, ...], str] = {}
        for cols in itertools.combinations(range(size), row + 1):
            total = ""
            for place, col in enumerate(cols):
                product = b("Mul", elements[col], minors[(*cols[:place], *cols[place + 1 :])])
                negative = (row + place) % 2 == 1
                if not total:
                    total = b("Neg", product) if negative else product
                else:
                    total = b("Sub" if negative else "Add", total, product)
            found[cols] = total
        minors = found
    return b.like(b.reshape(minors[tuple(range(size))], *x.shape[:-2]), 0)


@body("MelWeightMatrix")
def mel_weight_matrix(b: Body, node: OnnxNode) -> None:
    """On constants only, from which it is computed at compile time."""
    for index in range(5):
        node.const(index, "an argument")


@body("OptionalGetElement")
def optional_get_element(b: Body, node: OnnxNode) -> str:
    """Of a tensor: the tensor."""
    return b.input(0)


@body("OptionalHasElement")
def optional_has_element(b: Body, node: OnnxNode) -> str:
    """Of a tensor: true; of nothing: false."""
    return b("Identity", np.asarray(node.optional(0) is not None))
