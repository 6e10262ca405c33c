"""Rules that remove what changes nothing, each with a case that they must leave alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
from law import changed, network, operators, source, weights

from glowmcu.core import dtypes
from glowmcu.core.types import TensorType
from glowmcu.graph.graph import Graph, Value, apply, constant
from glowmcu.ops.base import i8
from glowmcu.ops.broadcast import Broadcast
from glowmcu.ops.cast import Cast
from glowmcu.ops.concat import Concat
from glowmcu.ops.elementwise import Elementwise
from glowmcu.ops.pad import Pad
from glowmcu.ops.quant import AsQuant
from glowmcu.ops.reduce import Reduce
from glowmcu.ops.reshape import Reshape
from glowmcu.ops.slice import Slice
from glowmcu.ops.transpose import Transpose
from glowmcu.passes.clean import merge_duplicates, remove_identities, transposes_to_views


def number(value: float) -> Value:
    return constant("c", np.float32(value).reshape(()))


def clean(x: Value, op: object, *rest: Value) -> Graph:
    return changed(network([x], apply(op, x, *rest).output), remove_identities)


NOTHING = [
    Reshape((2, 3)),
    Transpose((0, 1)),
    Slice((0, 0), (1, 1), (2, 3)),
    Broadcast((2, 3)),
    Cast(dtypes.F32),
    Pad((0, 0, 0, 0)),
    Concat(0),
    Elementwise("identity"),
]
SOMETHING = [
    Reshape((3, 2)),
    Transpose((1, 0)),
    Slice((1, 2), (-1, -1), (2, 3)),
    Broadcast((1, 2, 3)),
    Cast(dtypes.I32),
    Pad((0, 1, 0, 0)),
    Elementwise("neg"),
    Elementwise("identity", clamp=(0.0, 1.0)),
]


@pytest.mark.parametrize("op", NOTHING, ids=str)
def test_nothing_is_removed(op: object) -> None:
    assert operators(clean(source(2, 3), op)) == []


@pytest.mark.parametrize("op", SOMETHING, ids=str)
def test_something_stays(op: object) -> None:
    assert len(clean(source(2, 3), op).nodes()) == 1


def test_reduction_over_one_element() -> None:
    assert operators(clean(source(2, 1, 3), Reduce("mean", (1,), True))) == []
    assert operators(clean(source(2, 1, 3), Reduce("l1", (1,), True))) == ["Reduce"]


@pytest.mark.parametrize(
    ("fn", "value"), [("add", 0), ("sub", 0), ("mul", 1), ("div", 1), ("pow", 1)]
)
def test_neutral_operand(fn: str, value: float) -> None:
    x = source(2, 3)
    assert operators(clean(x, Elementwise(fn), number(value))) == []
    assert operators(clean(x, Elementwise(fn), number(value + 1))) == [fn]
    wide = constant("c", np.full((4, 1, 1), value, np.float32))
    assert operators(clean(x, Elementwise(fn), wide)) == [fn]


def test_neutral_operand_on_the_left() -> None:
    x = source(2, 3)
    assert (
        operators(
            changed(network([x], apply(Elementwise("add"), number(0), x).output), remove_identities)
        )
        == []
    )
    assert operators(
        changed(network([x], apply(Elementwise("sub"), number(0), x).output), remove_identities)
    ) == ["sub"]


def test_clip_of_everything() -> None:
    x = source(4)
    clip = Elementwise("clip")
    assert operators(clean(x, clip, number(-math.inf), number(math.inf))) == []
    assert operators(clean(x, clip, number(-1), number(math.inf))) == ["clip"]


def test_clips_in_a_row() -> None:
    x = source(40)
    inner = apply(Elementwise("clip"), x, number(0), number(1)).output
    outer = apply(Elementwise("relu"), inner).output
    assert operators(changed(network([x], outer), remove_identities)) == ["clip"]
    tighter = apply(Elementwise("clip"), inner, number(0.5), number(3)).output
    assert operators(changed(network([x], tighter), remove_identities)) == ["clip", "clip"]


def test_relu_of_a_type_without_negatives() -> None:
    for zero, left in ((-128, []), (-127, ["relu"])):
        type_ = i8(2, 3, zero_point=zero)
        x = Value("x", type_)
        y = apply(Elementwise("relu"), x, types=(type_,)).output
        assert operators(changed(network([x], y), remove_identities)) == left


def test_chains_of_reshapes_and_transposes() -> None:
    x = source(2, 3, 4)
    y = apply(Reshape((4, 6)), apply(Reshape((24,)), x).output).output
    assert operators(changed(network([x], y), remove_identities)) == ["Reshape"]
    y = apply(Transpose((1, 2, 0)), apply(Transpose((2, 0, 1)), x).output).output
    assert operators(changed(network([x], y), remove_identities)) == []
    y = apply(Transpose((1, 2, 0)), apply(Transpose((1, 0, 2)), x).output).output
    assert operators(changed(network([x], y), remove_identities)) == ["Transpose"]


def test_concat_of_concat() -> None:
    x = source(2, 3)
    inner = apply(Concat(1), x, apply(Elementwise("neg"), x).output).output
    outer = apply(Concat(1), inner, x).output
    after = changed(network([x], outer), remove_identities)
    assert operators(after).count("Concat") == 1
    after = changed(network([x], outer, inner), remove_identities)  # two readers
    assert operators(after).count("Concat") == 2
    across = apply(Concat(0), inner, constant("c", weights(1, 6))).output  # another axis
    after = changed(network([x], across), remove_identities)
    assert operators(after).count("Concat") == 2


def test_transpose_of_single_elements() -> None:
    x = source(1, 5, 1, 3)
    for perm, left in (((2, 1, 3, 0), "Reshape"), ((0, 3, 1, 2), "Transpose")):
        graph = network([x], apply(Transpose(perm), x).output)
        assert operators(changed(graph, transposes_to_views)) == [left]


def test_annotation_of_the_same() -> None:
    type_ = i8(2, 3)
    assert type_.quant is not None
    x = Value("x", type_)
    assert operators(clean(x, AsQuant(type_.quant))) == []
    plain = Value("x", TensorType(dtypes.I8, (2, 3)))
    assert operators(clean(plain, AsQuant(type_.quant))) == ["AsQuant"]


def test_equal_computations_merge() -> None:
    x = source(3, 4)
    twice = [
        apply(Elementwise("add"), x, constant(f"c{i}", weights(4, seed=5)), name=f"y{i}").output
        for i in range(2)
    ]
    other = apply(Elementwise("add"), x, constant("c", weights(4, seed=6))).output
    product = apply(Elementwise("mul"), *twice).output
    after = changed(network([x], product, other), merge_duplicates)
    assert operators(after) == ["add", "mul", "add"]
    assert sum(v.is_constant for v in after.values()) == 2
