"""Tools against the loss of accuracy: equalization, rounding by the output, bias correction."""

from __future__ import annotations

import numpy as np
import pytest

from glowmcu.core.types import Array, dequantize
from glowmcu.graph.evaluate import evaluate
from glowmcu.graph.graph import Graph, Value, apply, constant
from glowmcu.ops.base import f32
from glowmcu.ops.conv import Conv2D
from glowmcu.ops.dense import Dense
from glowmcu.ops.pool import Pool2D
from glowmcu.options import Tool
from glowmcu.quantize import Settings, layer_errors, quantize
from glowmcu.quantize.calibrate import calibrate
from glowmcu.quantize.equalize import apply_factors, find_factors
from glowmcu.quantize.fit import round_by_output

RELU = (0.0, np.inf)


def layers() -> Graph:
    """Convolutions, one depthwise, whose channels have ranges of very different size."""
    rng = np.random.default_rng(4)

    def weights(*shape: int) -> Value:
        spread = 4.0 ** rng.uniform(-2, 2, (shape[0], 1, 1, 1))
        return constant("w", (rng.normal(0, 0.3, shape) * spread).astype(np.float32))

    def bias(n: int) -> Value:
        return constant("b", rng.normal(0, 0.2, n).astype(np.float32))

    x = Value("x", f32(1, 8, 8, 3))
    y = apply(Conv2D(clamp=RELU), x, weights(8, 3, 3, 3), bias(8), name="a").output
    wide = Conv2D(pads=(1, 1, 1, 1), groups=8, clamp=RELU)
    y = apply(wide, y, weights(8, 3, 3, 1), bias(8), name="b").output
    y = apply(Pool2D("max", (2, 2), (2, 2)), y, name="c").output
    y = apply(Conv2D(groups=2), y, weights(6, 1, 1, 4), name="d").output
    return Graph("net", (x,), (y,), ("y",))


def samples(graph: Graph, count: int, seed: int = 0) -> list[dict[str, Array]]:
    rng = np.random.default_rng(seed)
    (x,) = graph.inputs
    return [{x.name: rng.normal(0.3, 1, x.shape).astype(np.float32)} for _ in range(count)]


def test_equalization_keeps_the_function() -> None:
    graph = layers()
    data = samples(graph, 8)
    seen = calibrate(graph, data)
    after = apply_factors(graph, find_factors(graph, data))
    for sample in data:
        a, b = evaluate(graph, sample)["y"], evaluate(after, sample)["y"]
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
    before_spread, spread = (
        {
            v.name: np.ptp(np.log(o.channels[o.channels > 0]))
            for v, o in found.items()
            if o.channels is not None
        }
        for found in (seen, calibrate(after, data))
    )
    assert spread["a"] < before_spread["a"] * 0.7


def error(graph: Graph, settings: Settings) -> float:
    quantized = quantize(graph, samples(graph, 16), settings)
    return layer_errors(graph, quantized, samples(graph, 8, seed=1))[-1].sqnr


def test_rounding_and_bias_correction_help() -> None:
    graph = layers()
    plain = error(graph, Settings(tools=()))
    tools: tuple[Tool, ...] = ("weight-rounding", "bias-correction")
    for tool in tools:
        assert error(graph, Settings(tools=(tool,))) > plain - 0.5
    assert error(graph, Settings(tools=tools)) > plain
    assert error(graph, Settings(tools=("weight-clipping",))) > plain - 0.5


def test_rounding_by_output_is_nearer_than_the_nearest() -> None:
    rng = np.random.default_rng(0)
    inputs = rng.normal(0, 1, (400, 5)) @ rng.normal(0, 1, (5, 24)) + rng.normal(0, 0.1, (400, 24))
    units = rng.uniform(-20, 20, (1, 6, 24))
    moments = (inputs.T @ inputs / len(inputs))[None]
    found = round_by_output(units, moments)

    def lost(stored: Array) -> float:
        return float(np.square((stored - units)[0] @ inputs.T).sum())

    assert lost(found) < 0.5 * lost(np.rint(units))
    assert np.abs(found - units).max() < 8


@pytest.mark.parametrize("count", [1, 3])
def test_dead_inputs_do_no_harm(count: int) -> None:
    x = Value("x", f32(1, 6))
    w = constant("w", np.random.default_rng(0).normal(0, 1, (4, 6)).astype(np.float32))
    graph = Graph("net", (x,), (apply(Dense(), x, w).output,), ("y",))
    data = [{"x": np.array([[1, 0, 0, 0, 0, i]], np.float32)} for i in range(count)]
    after = quantize(graph, data)
    for sample in data:
        feeds = {"x": np.rint(sample["x"] / after.inputs[0].type.quant.scale[0])}  # type: ignore[union-attr]
        quant = after.outputs[0].type.quant
        assert quant is not None
        feeds["x"] = (feeds["x"] + after.inputs[0].type.quant.zero_point[0]).astype(np.int8)  # type: ignore[union-attr]
        got = dequantize(evaluate(after, feeds)["y"], quant)
        np.testing.assert_allclose(got, evaluate(graph, sample)["y"], atol=0.1)


def test_equalization_sees_all_samples_and_never_expects_harm() -> None:
    graph = layers()
    data = samples(graph, 40)
    before = find_factors(graph, data)
    spike = {"x": data[7]["x"].copy()}
    spike["x"][..., 0] *= 30
    after = find_factors(graph, [*data, spike])
    assert any(not np.allclose(before[n], after[n]) for n in before if n in after)
    # wide activations leave nothing to win: their rounding is no error beside that of the weights
    wide = find_factors(graph, data, 1 << 24)
    for name, factor in wide.items():
        assert np.ptp(np.log(factor)) < np.ptp(np.log(before[name])) + 1e-9
