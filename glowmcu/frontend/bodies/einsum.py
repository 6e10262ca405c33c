"""Einsum: operands are combined from left to right, each time by one batched matrix product."""

from __future__ import annotations

import math

import numpy as np

from glowmcu.frontend.bodies.body import Body, body
from glowmcu.ops.onnx_node import OnnxNode


@body("Einsum")
def einsum(b: Body, node: OnnxNode) -> str:
    """Any equation: diagonals, ellipses, implicit results."""
    terms, result = _letters(node)
    sizes: dict[str, int] = {}
    for number, term in enumerate(terms):
        for letter, size in zip(term, node.value(number).shape, strict=True):
            sizes[letter] = size if sizes.get(letter, 1) == 1 else sizes[letter]
    name, have = "", ""
    for number, term in enumerate(terms):
        part, letters = _diagonal(b, b.input(number), term, node.value(number).shape)
        later = "".join(terms[number + 1 :]) + result
        if name:
            part, letters = _product(b, (name, have), (part, letters), later, sizes)
        name, have = _summed(b, part, letters, later)
    return b.transpose(name, *(have.index(c) for c in result)) if have else name


def _letters(node: OnnxNode) -> tuple[list[str], str]:
    """Return the letters of each operand and of the result, the ellipses spelled out."""
    equation = str(node.attr("equation", "")).replace(" ", "")
    left, arrow, result = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(node.inputs):
        node.fail(f"the equation '{equation}' has {len(terms)} operands")
    ranks = [node.value(i).type.rank - len(t.replace("...", "")) for i, t in enumerate(terms)]
    longest = max((r for r, t in zip(ranks, terms, strict=True) if "..." in t), default=0)
    dots = "".join(chr(ord("\u0100") + i) for i in range(longest))
    if not arrow:
        once = sorted({c for c in left if c.isalpha() and left.count(c) == 1})
        result = ("..." if "..." in left else "") + "".join(once)
    spelled = [
        t.replace("...", dots[len(dots) - r :] if r > 0 else "")
        for t, r in zip(terms, ranks, strict=True)
    ]
    for number, term in enumerate(spelled):
        if len(term) != node.value(number).type.rank:
            node.fail(f"operand {number} does not have the dimensions of '{terms[number]}'")
    return spelled, result.replace("...", dots)


def _diagonal(b: Body, name: str, term: str, shape: tuple[int, ...]) -> tuple[str, str]:
    """Take the diagonal of letters that an operand has twice."""
    letters, sizes = term, list(shape)
    for letter in dict.fromkeys(term):
        while letters.count(letter) > 1:
            first = letters.index(letter)
            second = letters.index(letter, first + 1)
            rest = [d for d in range(len(letters)) if d not in (first, second)]
            size = sizes[first]
            moved = b.transpose(name, first, second, *rest)
            flat = b.reshape(moved, size * size, *(sizes[d] for d in rest))
            name = b("Gather", flat, np.arange(size, dtype=np.int64) * (size + 1), axis=0)
            letters = letter + "".join(letters[d] for d in rest)
            sizes = [size, *(sizes[d] for d in rest)]
    return name, letters


def _summed(b: Body, name: str, letters: str, later: str) -> tuple[str, str]:
    """Sum over the letters that nothing needs any more."""
    axes = [i for i, c in enumerate(letters) if c not in later]
    if not axes:
        return name, letters
    kept = "".join(c for c in letters if c in later)
    return b("ReduceSum", name, np.asarray(axes, np.int64), keepdims=0), kept


def _product(
    b: Body, left: tuple[str, str], right: tuple[str, str], later: str, sizes: dict[str, int]
) -> tuple[str, str]:
    """Multiply two operands and sum over the letters that both have and nothing needs later."""
    (x, xs), (y, ys) = left, right
    batch = "".join(c for c in xs if c in ys and c in later)
    inner = "".join(c for c in xs if c in ys and c not in later)
    rows = "".join(c for c in xs if c not in ys)
    cols = "".join(c for c in ys if c not in xs)

    def matrix(name: str, letters: str, first: str, second: str) -> str:
        order = batch + first + second
        moved = b.transpose(name, *(letters.index(c) for c in order)) if order else name
        whole = b("Expand", moved, np.asarray([sizes[c] for c in order], np.int64))
        return b.reshape(
            whole, *(math.prod(sizes[c] for c in part) for part in (batch, first, second))
        )

    product = b("MatMul", matrix(x, xs, rows, inner), matrix(y, ys, inner, cols))
    letters = batch + rows + cols
    return b.reshape(product, *(sizes[c] for c in letters)), letters
