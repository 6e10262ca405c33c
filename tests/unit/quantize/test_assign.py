"""Observers, and scales and zero points from what they saw."""

from __future__ import annotations

import numpy as np
import pytest

from glowmcu.core import dtypes
from glowmcu.core.types import Quant, dequantize, quantize
from glowmcu.errors import InvalidModelError, OptionError
from glowmcu.graph.graph import Graph, Value, apply, constant
from glowmcu.ops.base import f32
from glowmcu.ops.concat import Concat
from glowmcu.ops.elementwise import Elementwise
from glowmcu.ops.reshape import Reshape
from glowmcu.ops.softmax import Softmax
from glowmcu.options import Schema
from glowmcu.quantize.assign import activation_quant, assign, bias_floor, weight_quant
from glowmcu.quantize.calibrate import calibrate
from glowmcu.quantize.ranges import Range


def fn(name: str, *inputs: Value) -> Value:
    return apply(Elementwise(name), *inputs).output


@pytest.mark.parametrize("span", [(-1, 3), (0.5, 3), (-3, -1), (0, 6), (-0.001, 100), (-7, 0)])
def test_activations_represent_their_range_and_zero(span: tuple[float, float]) -> None:
    quant = activation_quant(Range(*span))
    ends = np.array([min(span[0], 0), 0, max(span[1], 0)], np.float32)
    stored = quantize(ends, quant, dtypes.I8)
    back = dequantize(stored, quant)
    assert back[1] == 0.0
    assert np.abs(back - ends).max() <= quant.scale[0] * 0.51


def test_empty_range() -> None:
    assert activation_quant(Range(0.0, 0.0)) == Quant.per_tensor(1.0, 0)


def test_weights_are_symmetric_per_channel() -> None:
    data = np.array([[1.0, -2.54], [0.0, 0.0], [0.127, 0.1]], np.float32)
    quant = weight_quant(data, 0, np.zeros(3), "asymmetric")
    np.testing.assert_allclose(quant.scale, [0.02, 1.0, 0.001], rtol=1e-5)
    assert quant.zero_point == (0, 0, 0)
    assert np.abs(quantize(data, quant, dtypes.I8)).max() == 127


def test_scales_leave_room_for_the_bias() -> None:
    x = Quant.per_tensor(0.1)
    bias = np.array([0.0, 1e6], np.float32)
    quant = weight_quant(np.full((2, 1), 1e-6, np.float32), 0, bias_floor(bias, x, 2), "asymmetric")
    assert bias[1] / (x.scale[0] * quant.scale[1]) < 2.0**25


def ranges_of(graph: Graph, low: float = -1.0, high: float = 2.0) -> dict[Value, Range]:
    reals = [v for v in graph.values() if not v.is_constant]
    return {v: Range(low * (i + 1), high * (i + 1)) for i, v in enumerate(reals)}


def test_moved_values_share() -> None:
    x, z = Value("x", f32(2, 3)), Value("z", f32(2, 3))
    both = apply(Concat(0), x, fn("abs", z)).output
    y = apply(Reshape((12,)), both).output
    graph = Graph("g", (x, z), (y,), ("y",))
    quants = assign(graph, ranges_of(graph))
    assert len({quants[x], quants[both], quants[y], quants[both.producer.inputs[1]]}) == 1  # type: ignore[union-attr,index]
    assert quants[z] != quants[x]


def test_known_results_have_known_scales() -> None:
    x = Value("x", f32(2, 3))
    outputs = (apply(Softmax(), x).output, fn("sigmoid", x), fn("tanh", x), fn("exp", x))
    graph = Graph("g", (x,), outputs, tuple("abcd"))
    quants = assign(graph, ranges_of(graph))
    assert [quants[v].scale[0] for v in outputs[:3]] == [1 / 256, 1 / 256, 1 / 128]
    assert quants[outputs[3]].scale[0] not in (1 / 256, 1 / 128)


def test_concat_does_not_override_known_scales() -> None:
    x, z = Value("x", f32(2, 3)), Value("z", f32(2, 3))
    unit = fn("sigmoid", x)
    y = apply(Concat(0), unit, fn("abs", z)).output
    graph = Graph("g", (x, z), (y,), ("y",))
    quants = assign(graph, ranges_of(graph))
    assert quants[unit].scale[0] == 1 / 256
    assert quants[y].scale[0] > 1 / 256


def test_a_choice_has_room_for_all_its_inputs() -> None:
    x = Value("x", f32(2, 3))
    wide = constant("c", np.full((2, 3), 3, np.float32))
    unit = fn("tanh", x)
    y, z = fn("max", unit, wide), fn("max", x, x)
    graph = Graph("g", (x,), (y, z), ("y", "z"))
    quants = assign(graph, ranges_of(graph))
    assert quants[unit].scale[0] == 1 / 128
    assert quants[y] != quants[unit]
    assert quants[z] == quants[x]


def test_calibration_needs_samples_and_numbers() -> None:
    x = Value("x", f32(2))
    graph = Graph("g", (x,), (fn("log", x),), ("y",))
    with pytest.raises(OptionError, match="calibration"):
        calibrate(graph, [])
    with pytest.raises(InvalidModelError, match="not a finite number"), np.errstate(all="ignore"):
        calibrate(graph, [{"x": np.array([-1, -2], np.float32)}])
    with pytest.raises(InvalidModelError, match="sample 1 of input 'x' has NaN"):
        calibrate(graph, [{"x": np.array(v, np.float32)} for v in ([1, 2], [1, np.nan])])
    with pytest.raises(InvalidModelError, match="are 3 everywhere"):
        calibrate(graph, [{"x": np.full(2, 3, np.float32)}] * 2)


def test_calibration_reports_progress() -> None:
    x = Value("x", f32(2))
    graph = Graph("g", (x,), (fn("add", x, constant("c", np.ones(2, np.float32))),), ("y",))
    seen: list[tuple[int, int]] = []
    samples = [{"x": np.array([i, -i], np.float32)} for i in range(3)]
    found = calibrate(graph, samples, lambda *progress: seen.append(progress))
    assert seen == [(1, 3), (2, 3), (3, 3)]
    ranges = {v: (o.histogram.low, o.histogram.high) for v, o in found.items()}
    assert ranges == {x: (-2.0, 2.0), graph.outputs[0]: (-1.0, 3.0)}


def test_schemas() -> None:
    def quant(low: float, high: float, schema: Schema) -> Quant:
        return activation_quant(Range(low, high), schema)

    assert quant(-1, 2, "symmetric") == Quant.per_tensor(2 / 127)
    assert quant(-2, 1, "symmetric") == Quant.per_tensor(2 / 128)
    assert quant(-1, 2, "symmetric-uint8") == quant(-1, 2, "symmetric")
    assert quant(0, 2, "symmetric-uint8") == Quant.per_tensor(2 / 255, -128)
    assert quant(-1, 2, "power-of-two") == Quant.per_tensor(1 / 32)
    weights = np.array([[1.0], [3.0]], np.float32)
    assert weight_quant(weights, 0, np.zeros(2), "power-of-two").scale == (1 / 64, 1 / 32)
    assert weight_quant(weights, None, np.zeros(2), "symmetric").scale == (np.float32(3 / 127),)
