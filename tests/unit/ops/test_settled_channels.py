"""Channels whose output does not depend on x lose their huge bias, and nothing else."""

from __future__ import annotations

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.fixedpoint import multiplier_of, requantize
from glowmcu.core.types import Quant, TensorType
from glowmcu.graph.graph import Graph, Value, apply, constant
from glowmcu.instr import evaluate as instr_level
from glowmcu.lowering.lower import lower
from glowmcu.ops.base import i8
from glowmcu.ops.dense import Dense


def test_a_dead_channel_gets_a_small_bias_and_the_same_value() -> None:
    """Training leaves channels of tiny scale with a bias near the accumulator's end."""
    x = Value("x", i8(1, 4, scale=0.05, zero_point=-128))
    scales = (0.01, 2e-9, 2e-9, 0.02)
    data = np.array([[9, -7, 5, 3], [0, 0, 0, 0], [1, 0, 2, 0], [1, 2, 3, 4]], np.int8)
    w = constant("w", data, TensorType(dtypes.I8, data.shape, Quant(scales, (0,) * 4, 0)))
    unit = tuple(0.05 * s for s in scales)
    stored = np.array([100, 900_000_000, -900_000_000, 50], np.int32)
    b = constant("b", stored, TensorType(dtypes.I32, (4,), Quant(unit, (0,) * 4, 0)))
    y = i8(1, 4, scale=0.01, zero_point=3)
    node = apply(Dense(), x, w, b, name="y", types=(y,))
    function = lower(Graph("g", (x,), node.outputs, ("y",)), (node,), "f")
    (i,) = function.instructions
    assert np.abs(i.bias.data[1:3]).max() <= 1020  # type: ignore[attr-defined]
    assert not i.w.data[2].any()  # type: ignore[attr-defined]
    assert np.array_equal(i.w.data[[0, 1, 3]], data[[0, 1, 3]])  # type: ignore[attr-defined]
    multiplier, _ = multiplier_of(unit[1] / 0.01)
    expected = requantize(stored[1:3], multiplier, 0, 3, -128, 127)
    for value in (-128, 0, 127):
        found = instr_level.evaluate(function, {"x": np.full((1, 4), value, np.int8)})["y"]
        assert np.array_equal(found[0, 1:3], expected)
