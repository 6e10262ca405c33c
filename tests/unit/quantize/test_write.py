"""Graphs as ONNX: other runtimes compute the same, and it can be imported again."""

from __future__ import annotations

import fnmatch
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from test_precision import INT16
from test_quantize import network, samples, through_passes, weights

from glowmcu.core import dtypes
from glowmcu.core.types import Array
from glowmcu.core.types import quantize as to_stored
from glowmcu.errors import GlowmcuError
from glowmcu.frontend import load
from glowmcu.graph.evaluate import evaluate
from glowmcu.graph.graph import Graph, Value, apply, constant
from glowmcu.ops.base import f32
from glowmcu.ops.bounded import BitCast
from glowmcu.ops.concat import Concat
from glowmcu.ops.conv import Conv2D
from glowmcu.ops.conv_transpose import ConvTranspose2D
from glowmcu.ops.dense import Dense
from glowmcu.ops.elementwise import Elementwise
from glowmcu.ops.matmul import MatMul
from glowmcu.ops.pad import Pad
from glowmcu.ops.pool import Pool2D
from glowmcu.ops.reduce import Reduce
from glowmcu.ops.reshape import Reshape
from glowmcu.ops.slice import Slice
from glowmcu.ops.transpose import Transpose
from glowmcu.quantize import Settings, quantize
from glowmcu.quantize.write import save_onnx, to_onnx


def fn(name: str, *inputs: Value) -> Value:
    return apply(Elementwise(name), *inputs).output


def image() -> Graph:
    """Everything that works on images, channels last; two outputs."""
    x = Value("x", f32(1, 8, 6, 4))
    y = apply(Conv2D(pads=(1, 1, 1, 1), clamp=(0.0, 6.0)), x, weights(4, 3, 3, 4)).output
    z = apply(Conv2D(groups=4, pads=(1, 1, 1, 1)), y, weights(4, 3, 3, 1), weights(4)).output
    y = fn("add", apply(Elementwise("mul", (0.0, math.inf)), y, z).output, weights(4))
    y = fn("leaky_relu", fn("hard_swish", y), constant("s", np.float32(0.1)))
    low = apply(Pool2D("average", (2, 2), (2, 2)), y).output
    high = apply(Pool2D("max", (3, 3), (2, 2), (0, 0, 1, 1)), y).output
    y = apply(Concat(3), low, high).output
    up = ConvTranspose2D((2, 2), clamp=(0.0, math.inf))
    y = apply(up, y, weights(3, 2, 2, 8), weights(3)).output
    first = apply(Reduce("mean", (1, 2), keepdims=False), y).output
    second = apply(Reduce("max", (3,)), apply(Pad((0, 1, 0, 0, 0, 0, 2, 0)), y).output).output
    return Graph("image", (x,), (first, second), ("first", "second"))


def sequence() -> Graph:
    """Dense layers on rows, a product at run time, movement."""
    x = Value("x", f32(1, 5, 8))
    a = apply(Dense(), x, weights(6, 8), weights(6)).output
    b = fn("tanh", apply(Dense(clamp=(-1.0, 2.0)), x, weights(6, 8, seed=3)).output)
    y = apply(MatMul(), a, apply(Transpose((0, 2, 1)), b).output).output
    y = apply(Slice((0, 4, 0), (1, -1, 2), (1, 4, 2)), fn("sigmoid", y)).output
    return Graph("sequence", (x,), (apply(Reshape((8,)), y).output,), ("y",))


def stored(graph: Graph, sample: dict[str, Array]) -> dict[str, Array]:
    return {
        v.name: to_stored(sample[v.name], v.type.quant, v.type.dtype)
        if v.type.quant
        else sample[v.name]
        for v in graph.inputs
    }


MIXED = Settings(edges=dtypes.I16, keep_int16=("*conv2d", "*add", "first"), keep_float=("*max",))
SETTINGS = [Settings(), Settings(io="float"), INT16, replace(INT16, io="float"), MIXED]


@pytest.mark.parametrize("settings", SETTINGS, ids=["int8", "float", "int16", "int16f", "mixed"])
@pytest.mark.parametrize("make", [network, image, sequence])
def test_other_runtimes_compute_the_same(make: type, settings: Settings, tmp_path: Path) -> None:
    graph = through_passes(make())
    names = {name for node in graph.nodes() for name in node.names}
    kept = {
        field: tuple(p for p in getattr(settings, field) if fnmatch.filter(names, p))
        for field in ("keep_int16", "keep_float")
    }
    after = through_passes(quantize(graph, samples(graph), replace(settings, **kept)))
    save_onnx(after, tmp_path / "q.onnx")
    again = through_passes(load(tmp_path / "q.onnx", {}).graph)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(tmp_path / "q.onnx"), options)
    for sample in samples(graph, 4, seed=3):
        feed = stored(after, sample)
        ours, back = evaluate(after, feed), evaluate(again, feed)
        for name, theirs in zip(after.output_names, session.run(None, feed), strict=True):
            np.testing.assert_array_equal(ours[name], back[name])
            if settings.io == "int8":
                assert np.abs(ours[name].astype(int) - theirs).max() <= 1
            else:
                np.testing.assert_allclose(ours[name], theirs, atol=0.02 * np.ptp(theirs) + 1e-6)


def test_names_and_layout_are_those_of_the_model(tmp_path: Path) -> None:
    graph = through_passes(network())
    model = to_onnx(through_passes(quantize(graph, samples(graph))))
    assert [i.name for i in model.graph.input] == ["x"]
    assert [o.name for o in model.graph.output] == ["p"]
    kinds = [n.op_type for n in model.graph.node]
    assert kinds.count("Transpose") <= 2
    assert {"DequantizeLinear", "QuantizeLinear", "Conv", "Gemm", "Softmax"} <= set(kinds)
    assert to_onnx(through_passes(quantize(graph, samples(graph)))) == model
    onnx.checker.check_model(model, full_check=True)


def test_what_cannot_be_written(tmp_path: Path) -> None:
    x = Value("x", f32(2, 6))
    graph = Graph("net", (x,), (apply(BitCast(dtypes.I32), x).output,), ("y",))
    with pytest.raises(GlowmcuError, match="cannot be written as ONNX"):
        to_onnx(graph)
    with pytest.raises(GlowmcuError, match="cannot write"):
        save_onnx(network(), tmp_path / "none" / "q.onnx")
