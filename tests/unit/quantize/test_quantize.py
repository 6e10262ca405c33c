"""Quantized networks: what is stored, what stays float, and how near the result is."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from glowmcu.core import dtypes
from glowmcu.core.passes import Runner
from glowmcu.core.types import Array, dequantize
from glowmcu.core.types import quantize as to_stored
from glowmcu.errors import OptionError
from glowmcu.graph.evaluate import evaluate
from glowmcu.graph.graph import Graph, Value, apply, constant
from glowmcu.graph.printer import dump
from glowmcu.graph.verify import verify
from glowmcu.ops.base import f32
from glowmcu.ops.conv import Conv2D
from glowmcu.ops.dense import Dense
from glowmcu.ops.elementwise import Elementwise
from glowmcu.ops.pad import Pad
from glowmcu.ops.reshape import Reshape
from glowmcu.ops.softmax import Softmax
from glowmcu.passes import GRAPH_PASSES, islands
from glowmcu.quantize import Settings, quantize


def through_passes(graph: Graph) -> Graph:
    return Runner(verify, dump, lambda g: len(g.nodes())).run(graph, GRAPH_PASSES)


def weights(*shape: int, seed: int = 1) -> Value:
    data = np.random.default_rng(seed).normal(0, 0.3, shape).astype(np.float32)
    return constant(f"w{seed}", data)


def fn(name: str, *inputs: Value) -> Value:
    return apply(Elementwise(name), *inputs).output


def network() -> Graph:
    """A convolution with a residual sum, a table, a flatten and a dense layer with softmax."""
    x = Value("x", f32(1, 6, 5, 4))
    op = Conv2D(pads=(1, 1, 1, 1), clamp=(0.0, np.inf))
    y = fn("add", x, apply(op, x, weights(4, 3, 3, 4), weights(4, seed=2)).output)
    y = fn("leaky_relu", fn("mul", y, weights(4, seed=3)), constant("s", np.float32(0.1)))
    flat = apply(Reshape((1, 120)), y).output
    y = apply(Dense(), flat, weights(5, 120, seed=4), weights(5, seed=5)).output
    return Graph("net", (x,), (apply(Softmax(), y, name="p").output,), ("p",))


def samples(graph: Graph, count: int = 20, seed: int = 0) -> list[dict[str, Array]]:
    rng = np.random.default_rng(seed)
    return [
        {v.name: rng.normal(0, 1, v.shape).astype(np.float32) for v in graph.inputs}
        for _ in range(count)
    ]


def run_real(graph: Graph, sample: dict[str, Array]) -> Array:
    """Run a network on real numbers, whether its inputs and outputs are stored as int8 or not."""
    feeds = {
        v.name: to_stored(sample[v.name], v.type.quant, v.type.dtype)
        if v.type.quant
        else sample[v.name]
        for v in graph.inputs
    }
    (output,) = evaluate(graph, feeds).values()
    quant = graph.outputs[0].type.quant
    return dequantize(output, quant) if quant else output


@pytest.mark.parametrize("io", ["int8", "float"])
def test_whole_network(io: Literal["int8", "float"]) -> None:
    before = through_passes(network())
    after = through_passes(quantize(before, samples(before), Settings(io=io)))
    dtype = dtypes.I8 if io == "int8" else dtypes.F32
    assert after.inputs[0].type.dtype == after.outputs[0].type.dtype == dtype
    real = [n for n in after.nodes() if n.types[0].dtype.is_float]
    assert len(real) == (0 if io == "int8" else 1)
    assert islands(after) == []
    for sample in samples(before, 5, seed=9):
        assert np.abs(run_real(before, sample) - run_real(after, sample)).max() < 0.05


def test_bias_and_weights_are_integers() -> None:
    graph = through_passes(network())
    after = through_passes(quantize(graph, samples(graph)))
    layers = [n for n in after.nodes() if isinstance(n.op, (Conv2D, Dense))]
    for node in layers:
        _, w, b = node.inputs
        assert (w.type.dtype, b.type.dtype) == (dtypes.I8, dtypes.I32)
        assert w.type.quant.axis == 0


def test_what_has_no_integer_arithmetic_stays_float() -> None:
    x = Value("x", f32(2, 6))
    a = apply(Dense(), x, weights(6, 6)).output
    inner = fn("pow", fn("abs", a), fn("sigmoid", fn("mul", a, x)))
    y = apply(Dense(), inner, weights(3, 6, seed=2), name="y").output
    graph = Graph("net", (x,), (y,), ("y",))
    after = through_passes(quantize(graph, samples(graph)))
    (sentence,) = islands(after)
    assert "pow" in sentence
    for sample in samples(graph, 5, seed=9):
        expected = run_real(graph, sample)
        assert np.abs(expected - run_real(after, sample)).max() < 0.1 * np.ptp(expected)


def test_infinite_padding_stays_float() -> None:
    x = Value("x", f32(1, 4))
    y = apply(Pad((0, 1, 0, 0), "constant", -np.inf), fn("tanh", x)).output
    graph = Graph("net", (x,), (y,), ("y",))
    after = through_passes(quantize(graph, samples(graph), Settings(io="float")))
    (sample,) = samples(graph, 1, seed=9)
    np.testing.assert_allclose(run_real(after, sample), run_real(graph, sample), atol=0.03)


def test_maximum_with_a_constant() -> None:
    x = Value("x", f32(4, 8))
    y = fn("max", fn("add", x, x), weights(8))
    graph = Graph("net", (x,), (y,), ("y",))
    after = through_passes(quantize(graph, samples(graph)))
    assert not any(t.dtype.is_float for n in after.nodes() for t in n.types)
    (sample,) = samples(graph, 1, seed=9)
    np.testing.assert_allclose(run_real(after, sample), run_real(graph, sample), atol=0.1)


def test_between_float_operators_nothing_is_stored() -> None:
    x, z = Value("x", f32(2, 6)), Value("z", f32(2, 6))
    y = fn("pow", fn("pow", x, z), z)
    graph = Graph("net", (x, z), (y,), ("y",))
    after = through_passes(
        quantize(
            graph,
            [{k: abs(v) for k, v in s.items()} for s in samples(graph)],
            Settings(io="float"),
        )
    )
    assert [n.op for n in after.nodes()] == [Elementwise("pow")] * 2


def test_it_is_deterministic() -> None:
    graph = through_passes(network())
    first, second = (through_passes(quantize(graph, samples(graph))) for _ in range(2))
    assert dump(first) == dump(second)
    for a, b in zip(first.values(), second.values(), strict=True):
        assert a.data is None or (b.data is not None and a.data.tobytes() == b.data.tobytes())


def test_percentile() -> None:
    graph = through_passes(network())
    data = samples(graph, 200)
    data[0]["x"][0, 0, 0, 0] = 1e4
    data[0]["x"][0, 1, 0, 0] = 1e4
    wide = quantize(graph, data).inputs[0].type.quant
    narrow = quantize(graph, data, Settings(observer="percentile")).inputs[0].type.quant
    assert wide is not None
    assert narrow is not None
    assert narrow.scale[0] < wide.scale[0]


@pytest.mark.parametrize("name", ["d", "net/d?nse"])
def test_a_layer_can_stay_float(name: str) -> None:
    x = Value("x", f32(1, 8))
    first = fn(
        "leaky_relu", apply(Dense(), x, weights(8, 8)).output, constant("s", np.float32(0.1))
    )
    node = apply(Dense(), first, weights(6, 8, seed=2), name="d", origin=("net/dense",))
    y = apply(Softmax(), fn("tanh", node.output)).output
    graph = Graph("net", (x,), (y,), ("y",))
    after = through_passes(quantize(graph, samples(graph), Settings(keep_float=(name,))))
    (sentence,) = islands(after)
    assert "Dense" in sentence
    (sample,) = samples(graph, 1, seed=9)
    np.testing.assert_allclose(run_real(after, sample), run_real(graph, sample), atol=0.03)


def test_a_function_can_stay_float() -> None:
    x = Value("x", f32(1, 8))
    y = fn("tanh", apply(Dense(), x, weights(8, 8)).output)
    graph = Graph("net", (x,), (y,), ("y",))
    kept = Settings(keep_float=(y.name,))
    after = through_passes(quantize(graph, samples(graph), kept))
    assert any(n.op == Elementwise("tanh") and n.types[0].dtype.is_float for n in after.nodes())
    with pytest.raises(OptionError, match="no layer 'tahn'"):
        quantize(graph, samples(graph), Settings(keep_float=("tahn",)))
