"""Names: C identifiers from anything that a model may contain."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glowmcu.emit.names import check_model_name, distinct, identifier, model_name, short
from glowmcu.errors import OptionError

VALID = re.compile(r"[a-z][a-z0-9_]*")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("input_1", "input_1"),
        ("serving_default_input:0", "serving_default_input_0"),
        ("/block1/conv/Conv", "block1_conv_conv"),
        ("1x", "n1x"),
        ("", "tensor"),
        ("你好", "tensor"),
        ("int", "int_"),
        ("class", "class_"),
        ("I", "i_"),
        ("errno", "errno_"),
        ("NULL", "null_"),
        ("__x__", "x"),
    ],
)
def test_identifier(text: str, name: str) -> None:
    assert identifier(text) == name


def test_names_that_become_equal_are_told_apart() -> None:
    assert distinct(["x.1", "x/1", "x_1", "X_1"]) == ("x_1", "x_1_2", "x_1_3", "x_1_4")
    assert distinct(["x", "x", "x_2"]) == ("x", "x_3", "x_2")


@given(st.lists(st.text(max_size=8), max_size=8))
def test_names_are_valid_and_distinct(texts: list[str]) -> None:
    names = distinct(texts)
    assert len({n.upper() for n in names}) == len(texts)
    assert all(VALID.fullmatch(n) for n in names)
    assert distinct(texts) == names


@given(st.text(max_size=60) | st.sampled_from(["gm", "gm_x", "string", "int"]))
def test_every_text_gives_a_model_name(text: str) -> None:
    assert check_model_name(model_name(text))


@pytest.mark.parametrize(
    "name", ["", "1x", "a-b", "int", "class", "string", "math", "gm_x", "a b", "é", "x" * 49, "_x"]
)
def test_a_name_that_cannot_be_used_is_explained(name: str) -> None:
    with pytest.raises(OptionError, match="cannot be used") as found:
        check_model_name(name)
    assert "--name" in str(found.value)


@pytest.mark.parametrize("name", ["kws", "KWS", "net2", "a_b"])
def test_a_good_name_is_taken_as_it_is(name: str) -> None:
    assert check_model_name(name) == name
    assert model_name(name) == name


def test_long_names_are_shortened_in_comments() -> None:
    assert short("/block1/conv/Conv") == "/block1/conv/Conv"
    fused = "model/Relu;model/bn/FusedBatchNormV3;model/Conv2D;model/BiasAdd;model/resource1"
    assert short(fused) == "model/Relu;...;model/resource1"
    assert all(len(short("x" * n, 40)) <= 40 for n in range(100))
    assert len(identifier("x" * 100)) == 40
