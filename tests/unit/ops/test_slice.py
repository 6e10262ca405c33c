from __future__ import annotations

import imported
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glowmcu.errors import UnsupportedError

LOW, HIGH = -(2**63), 2**63 - 1


def x(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


@pytest.mark.parametrize(
    ("start", "end", "axis", "step"),
    [
        (9, 0, 0, -3),
        (-1, LOW, 0, -1),
        (0, 5, 0, -1),
        (0, HIGH, -1, 1),
        (2, HIGH, 0, 1),
        (-100, 100, 1, 2),
        (-100, -200, 0, -1),
        (100, 2, 0, -1),
        (1, 9, 0, HIGH),
        (5, 5, 0, 1),
        (3, -2, -2, 1),
    ],
)
def test_slice(start: int, end: int, axis: int, step: int) -> None:
    constants = {"s": i64(start), "e": i64(end), "a": i64(axis), "t": i64(step)}
    imported.run("Slice", {"x": x(10, 4)}, constants, opset=13)


def test_several_axes() -> None:
    data = {"x": x(3, 8, 7, 2)}
    constants = {"s": i64(-1, 1), "e": i64(0, 6), "a": i64(-2, 1), "t": i64(-2, 2)}
    imported.run("Slice", data, constants)
    imported.run("Slice", data, {"s": i64(1, 2), "e": i64(3, 5)})
    imported.run("Slice", data, opset=9, starts=[1, -3], ends=[HIGH, 7], axes=[0, 2])
    constants = {"s": np.array([1], np.int32), "e": np.array([-1], np.int32)}
    imported.run("Slice", data, constants, opset=10)


@settings(max_examples=40, deadline=None)
@given(
    size=st.integers(1, 6),
    start=st.integers(-9, 9),
    end=st.integers(-9, 9),
    step=st.integers(-4, 4).filter(bool),
)
def test_any_slice(size: int, start: int, end: int, step: int) -> None:
    constants = {"s": i64(start), "e": i64(end), "a": i64(1), "t": i64(step)}
    imported.run("Slice", {"x": x(2, size)}, constants, opset=13)


def test_a_slice_of_the_outermost_dimension_is_a_view() -> None:
    data = {"x": x(1, 6, 4)}
    constants = {"s": i64(2), "e": i64(5), "a": i64(1)}
    function = imported.run("Slice", data, constants)
    assert not function.instructions
    assert function.outputs[0].root_offset == 2 * 4 * 4


def test_wrong_slices_are_refused() -> None:
    for constants in (
        {"s": i64(0), "e": i64(1), "a": i64(7)},
        {"s": i64(0), "e": i64(1), "a": i64(0), "t": i64(0)},
        {"s": i64(0, 0), "e": i64(1, 1), "a": i64(0, 0)},
        {"s": i64(0, 0), "e": i64(1)},
    ):
        proto = imported.helper.make_node("Slice", ["x", *constants], ["y"])
        with pytest.raises(UnsupportedError, match="Slice"):
            imported.import_node(proto, {"x": x(4, 4)}, constants, 13)


def test_split() -> None:
    data = {"x": x(6, 5)}
    imported.run("Split", data, opset=11, outputs=3, axis=0)
    imported.run("Split", data, opset=11, outputs=2, axis=-1, split=[2, 3])
    imported.run("Split", data, {"s": i64(2, 3)}, opset=13, outputs=2, axis=1)
    imported.run("Split", data, {"s": i64(0, 5, 0)}, opset=13, outputs=3, axis=1)
    imported.run("Split", data, opset=18, outputs=2, axis=1, num_outputs=2)
    imported.run("Split", data, opset=18, outputs=4, axis=0, num_outputs=4, oracle="reference")
    proto = imported.helper.make_node("Split", ["x"], ["a", "b"], axis=1)
    with pytest.raises(UnsupportedError, match="equal parts"):
        imported.import_node(proto, data, {}, 13)
