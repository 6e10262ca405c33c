"""Literals: exact values, and text that cannot break out of a comment or a string."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glowmcu.core.dtypes import ALL
from glowmcu.emit import literals


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_float_literals_are_exact(value: float) -> None:
    text = literals.float32(value)
    assert text.endswith("f")
    assert "." in text or "e" in text
    assert np.float32(text[:-1]).tobytes() == np.float32(value).tobytes()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1f"),
        (-0.0, "-0.0f"),
        (1e-45, "1e-45f"),
        (3.4028235e38, "3.4028235e+38f"),
        (float("inf"), "INFINITY"),
        (float("-inf"), "-INFINITY"),
        (float("nan"), "NAN"),
        (16777216.0, "1.6777216e+07f"),
    ],
)
def test_float_literals(value: float, text: str) -> None:
    assert literals.float32(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (7, "7"),
        (True, "1"),
        (np.int64(-3), "-3"),
        (-(1 << 31), "INT32_MIN"),
        (-(1 << 63), "INT64_MIN"),
        (1 << 40, "INT64_C(1099511627776)"),
        (0.5, "0.5f"),
        ((1, 2), "{1, 2}"),
        (((1, 2.0), 3), "{{1, 2.0f}, 3}"),
    ],
)
def test_attributes(value: object, text: str) -> None:
    assert literals.attribute(value) == text


def test_an_attribute_without_a_literal_is_refused() -> None:
    with pytest.raises(TypeError, match="no C literal"):
        literals.attribute("max")


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_arrays_of_every_type_fit_the_line(dtype) -> None:
    edges = np.asarray([0, 1, -1, 2.5, 100]).astype(dtype.numpy)
    if dtype.is_integer:
        edges = np.asarray([dtype.low, dtype.high, 0], dtype.numpy)
    lines = literals.array_lines(np.resize(edges, 50))
    assert all(len(line) <= literals.WIDTH for line in lines)
    assert sum(line.count(",") for line in lines) == 50


@pytest.mark.cc
def test_arrays_of_every_type_read_back(tmp_path: Path) -> None:
    arrays = {}
    for dtype in ALL:
        edges = np.asarray([0, 1, -1, 2.5, 100]).astype(dtype.numpy)
        if dtype.is_integer:
            edges = np.asarray([dtype.low, dtype.high, dtype.high // 2 + 1, 0], dtype.numpy)
        arrays[dtype] = edges
    text = ["#include <math.h>", "#include <stdint.h>", "#include <stdio.h>"]
    for dtype, edges in arrays.items():
        lines = literals.array_lines(edges)
        text += [f"static const {dtype.c} {dtype}_[] = {{", *lines, "};"]
    writes = [f"    fwrite({t}_, sizeof {t}_, 1, stdout);" for t in arrays]
    text += ["int main(void)", "{", *writes, "    return 0;", "}", ""]
    (tmp_path / "a.c").write_text("\n".join(text))
    command = ["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "a.c", "-o", "a"]
    subprocess.run(command, cwd=tmp_path, check=True)
    found = subprocess.run([tmp_path / "a"], capture_output=True, check=True).stdout
    assert found == b"".join(a.tobytes() for a in arrays.values())


def test_small_integers_are_dense() -> None:
    lines = literals.array_lines(np.full(100, -128, np.int8))
    assert lines[0].count(",") >= 12
    assert literals.array_lines(np.zeros(0, np.int8)) == []


def test_large_arrays_are_quick() -> None:
    weights = np.random.default_rng(0).integers(-128, 128, 219_000).astype(np.int8)
    start = time.perf_counter()
    literals.array_lines(weights)
    assert time.perf_counter() - start < 0.5


@given(st.text())
def test_comments_are_closed_by_nothing_in_them(text: str) -> None:
    safe = literals.comment(text)
    assert "*/" not in safe
    assert "/*" not in safe
    assert "??" not in safe
    assert not safe.endswith("\\")
    assert safe.isascii()
    assert safe == "" or safe.isprintable()


@given(st.text())
def test_strings_are_closed_by_nothing_in_them(text: str) -> None:
    literal = literals.string(text)
    inside = literal[1:-1].replace("\\\\", "").replace('\\"', "").replace("\\?", "")
    assert '"' not in inside
    assert "\\" not in inside
    assert "??" not in literal
    assert literal.isprintable()


@given(st.text(alphabet="ab */?\\-", max_size=300), st.integers(0, 8))
def test_blocks_fit_the_page(text: str, indent: int) -> None:
    block = literals.block(text, indent)
    assert block.count("*/") == 1
    assert block.endswith("*/")
    long = [n for n in block.split("\n") if len(n) > literals.WIDTH]
    assert all(" " not in n.strip(" */") for n in long)


def test_calls_wrap_after_commas() -> None:
    text = literals.call("gm_long_name", tuple(f"argument_number_{i}" for i in range(9)))
    lines = text.split("\n")
    assert all(len(n) <= literals.WIDTH for n in lines)
    assert len({len(n) - len(n.lstrip()) for n in lines[1:]}) == 1
    assert literals.call("f", ()) == "    f();"
