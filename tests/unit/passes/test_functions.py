"""Functions written in parts are recognized, and what only looks like them is not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from law import changed, network, operators, source

from glowmcu.graph.graph import Value, apply, constant
from glowmcu.ops.elementwise import Elementwise
from glowmcu.passes.functions import recognize_functions

X = source(3, 8)


def fn(name: str, *inputs: Value | float) -> Value:
    values = [constant("c", np.float32(v)) if isinstance(v, float) else v for v in inputs]
    return apply(Elementwise(name), *values).output


def relu6(x: Value) -> Value:
    return fn("clip", x, 0.0, 6.0)


def one_plus_erf(by: float = math.sqrt(2)) -> Value:
    return fn("add", fn("erf", fn("div", X, by)), 1.0)


PARTS = {
    "swish": [
        fn("mul", X, fn("sigmoid", X)),
        fn("mul", fn("sigmoid", fn("mul", 1.702, X)), X),
    ],
    "hard_swish": [
        fn("mul", X, fn("hard_sigmoid", X, 1 / 6, 0.5)),
        fn("div", fn("mul", X, relu6(fn("add", X, 3.0))), 6.0),
        fn("mul", fn("mul", relu6(fn("add", 3.0, X)), 1 / 6), X),
        fn("mul", X, fn("div", relu6(fn("add", X, 3.0)), 6.0)),
    ],
    "gelu": [
        fn("mul", fn("mul", X, one_plus_erf()), 0.5),
        fn("mul", fn("mul", 0.5, X), one_plus_erf()),
        fn("mul", X, fn("mul", one_plus_erf(), 0.5)),
        fn("mul", fn("mul", 0.5, X), fn("add", fn("erf", fn("mul", X, math.sqrt(0.5))), 1.0)),
    ],
}
OTHERS = [
    fn("mul", X, fn("sigmoid", fn("neg", X))),
    fn("mul", fn("mul", X, fn("sigmoid", X)), 2.0),
    fn("mul", X, fn("hard_sigmoid", X, 0.2, 0.5)),
    fn("div", fn("mul", X, relu6(fn("add", X, 3.0))), 5.0),
    fn("mul", X, relu6(fn("add", X, 3.0))),
    fn("mul", fn("mul", X, one_plus_erf(1.5)), 0.5),
    fn("div", 1.0, fn("mul", X, fn("sigmoid", X))),
]


@pytest.mark.parametrize(("name", "y"), [(name, y) for name, ys in PARTS.items() for y in ys])
def test_recognized(name: str, y: Value) -> None:
    assert operators(changed(network([X], y), recognize_functions)) == [name]


@pytest.mark.parametrize("number", range(len(OTHERS)))
def test_not_recognized(number: int) -> None:
    graph = network([X], OTHERS[number])
    after = operators(changed(graph, recognize_functions, 1e-4))
    assert not {"hard_swish", "gelu"} & set(after)
    assert after.count("swish") == (number in (1, 6))


def test_the_whole_tensor_is_meant() -> None:
    x = source(1, 8)
    wide = source(3, 8, name="wide")
    y = fn("mul", wide, fn("sigmoid", x))
    graph = network([x, wide], y)
    assert operators(changed(graph, recognize_functions)) == ["sigmoid", "mul"]


def test_parts_that_others_read_are_kept_for_them() -> None:
    part = fn("sigmoid", X)
    after = changed(network([X], fn("mul", X, part), part), recognize_functions)
    assert sorted(operators(after)) == ["sigmoid", "swish"]


def test_division_by_a_constant() -> None:
    after = changed(network([X], fn("div", X, 3.0)), recognize_functions)
    assert operators(after) == ["mul"]
    for divisor in (0.0, 1e-45, 3e38, math.inf):
        graph = network([X], fn("div", X, divisor))
        with np.errstate(all="ignore"):
            assert operators(changed(graph, recognize_functions)) == ["div"]
    assert operators(changed(network([X], fn("div", 3.0, X)), recognize_functions)) == ["div"]
