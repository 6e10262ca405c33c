"""Symbolic dimensions: batch bound to 1, the rest by `shapes`, what is wrong named."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from toy import model

from glowmcu.errors import InvalidModelError, OptionError
from glowmcu.frontend import load
from glowmcu.graph.evaluate import evaluate


def net(dims: str, *more: str) -> onnx.ModelProto:
    inputs = ", ".join(f"float[{d}] X{i}" for i, d in enumerate((dims, *more)))
    return model(f"({inputs}) => (float[{dims}] Y) {{ Y = toy.Double(X0) }}")


def shapes_of(proto: onnx.ModelProto, **shapes: tuple[int, ...]) -> list[tuple[int, ...]]:
    return [v.shape for v in load(proto, shapes).graph.inputs]


def with_dim(proto: onnx.ModelProto, number: int, value: int, where: str = "input") -> None:
    getattr(proto.graph, where)[0].type.tensor_type.shape.dim[number].dim_value = value


def test_batch_symbol_is_one_everywhere() -> None:
    proto = net("N, 4", "3, N")
    assert shapes_of(proto) == [(1, 4), (3, 1)]
    assert load(proto).notes == ("dimension 'N' of input 'X0' is taken as a batch of 1",)


def test_batch_of_minus_one() -> None:
    proto = net("N, 4")
    with_dim(proto, 0, -1)
    assert shapes_of(proto) == [(1, 4)]
    assert "dimension 0 of input 'X0'" in load(proto).notes[0]


def test_zero_is_a_batch_only_if_outputs_say_so_too() -> None:
    proto = net("N, 4")
    with_dim(proto, 0, 0)
    with_dim(proto, 1, 4, "output")
    assert shapes_of(proto) == [(0, 4)]
    with_dim(proto, 0, 0, "output")
    assert shapes_of(proto) == [(1, 4)]


def test_given_shapes() -> None:
    assert shapes_of(net("N, H, 4"), X0=(2, 3, 4)) == [(2, 3, 4)]
    assert shapes_of(net("N, H, 4"), H=(3,)) == [(1, 3, 4)]
    assert shapes_of(net("N, H, 4", "H"), X0=(2, 3, 4)) == [(2, 3, 4), (3,)]
    assert shapes_of(net("N, 4"), N=(8,)) == [(8, 4)]


def test_question_marks_are_different_dimensions() -> None:
    proto = net("N, A, B")
    for dim in proto.graph.input[0].type.tensor_type.shape.dim:
        dim.dim_param = "?"
    assert shapes_of(proto, X0=(1, 2, 3)) == [(1, 2, 3)]


def test_unbound_dimensions_are_named() -> None:
    with pytest.raises(InvalidModelError) as raised:
        load(net("N, H, 4", "N, W"))
    text = str(raised.value)
    assert "input 'X0' has unknown dimensions: 1 ('H')" in text
    assert "--shape X0=1,H,4, or the dimension alone: --shape H=32" in text
    assert "input 'X1' has unknown dimensions: 1 ('W')" in text


def test_input_without_shape() -> None:
    proto = net("4")
    proto.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(InvalidModelError, match="input 'X0' has no shape"):
        load(proto)
    assert shapes_of(proto, X0=(4,)) == [(4,)]


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"Z": (1,)}, "names 'Z', which is neither"),
        ({"X0": (1, 2)}, "has 2 dimensions; the model's input has 3"),
        ({"X0": (1, 2, 5)}, "dimension 2 is 4 in the model"),
        ({"H": (1, 2)}, "a dimension is one number"),
        ({"X0": (1, -2, 4)}, "is not a tuple of sizes"),
        ({"X0": (1, 2, 4), "H": (3,)}, "the sizes 3 and 2"),
    ],
)
def test_wrong_options(shapes: dict[str, tuple[int, ...]], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        load(net("N, H, 4"), shapes)


def test_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(OptionError, match="inputs: X0, X1; dimensions: H, N"):
        load(net("N, H, 4", "2"), {"Z": (1,)})


RATE = """(float[2] X, int64 rate) => (float[2] Y) { k = Constant<value_int = 16000>()
c = Equal(rate, k) Y = If (c) <
then_branch = one () => (float[2] a) { a = toy.Double(X) },
else_branch = two () => (float[2] b) { b = toy.Same(X) } > }"""


@pytest.mark.parametrize(("rate", "expected"), [(16000, [2, 4]), (8000, [1, 2])])
def test_fixed_input_is_a_constant(rate: int, expected: list[float]) -> None:
    imported = load(model(RATE), fix_inputs={"rate": rate})
    assert [v.name for v in imported.graph.inputs] == ["X"]
    assert evaluate(imported.graph, {"X": np.float32([1, 2])})["Y"].tolist() == expected
    assert imported.notes == (f"input 'rate' is fixed to {rate}",)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"Z": 1}, "not an input of the model"),
        ({"rate": 0.5}, "cannot hold 0.5"),
        ({"rate": "a"}, "not a number"),
        ({"rate": [1, 2]}, "is a scalar; it is fixed to shape"),
        ({"X": [1, 2, 3]}, "is 2; it is fixed to shape"),
    ],
)
def test_wrong_fixed_inputs(values: dict[str, object], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        load(model(RATE), fix_inputs=values)  # type: ignore[arg-type]
