"""Whole networks through all graph passes, against ONNX Runtime."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import onnx
import pytest

from glowmcu.core.passes import Runner
from glowmcu.core.types import Array
from glowmcu.errors import UnsupportedError
from glowmcu.frontend import load
from glowmcu.graph.evaluate import evaluate
from glowmcu.graph.graph import Graph
from glowmcu.graph.printer import dump
from glowmcu.graph.verify import verify
from glowmcu.ops.quant import Dequantize, Quantize
from glowmcu.ops.transpose import Transpose
from glowmcu.passes import GRAPH_PASSES, islands
from glowmcu.verify.compare import Comparison, compare_graph
from glowmcu.verify.reference import Reference

TOLERANCE = {"kws": 2, "vww": 2, "ad": 2, "ww": 2, "ic": None}


def through_passes(graph: Graph) -> Graph:
    return Runner(verify, dump, lambda g: len(g.nodes())).run(graph, GRAPH_PASSES)


def random_feeds(graph: Graph, seed: int) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    feeds: dict[str, Array] = {}
    for value in graph.inputs:
        if value.type.dtype.is_integer:
            data = rng.integers(-128, 128, value.shape)
        else:
            data = rng.uniform(0, 1, value.shape)
        feeds[value.name] = data.astype(value.type.dtype.numpy)
    return feeds


@pytest.mark.parametrize("name", TOLERANCE)
def test_integer_networks(shared: Path, name: str) -> None:
    path = shared / "mlperf_tiny" / "models" / f"{name}_int8.onnx"
    before = load(path, {}).graph
    start = time.perf_counter()
    graph = through_passes(before)
    assert time.perf_counter() - start < 2
    kinds = [n.op for n in graph.nodes()]
    assert not any(isinstance(op, (Transpose, Quantize, Dequantize)) for op in kinds)
    assert not any(t.dtype.is_float for n in graph.nodes() for t in n.types)
    assert islands(graph) == []
    reference = Reference(onnx.load(path))
    layers = Comparison("graph")
    for seed in range(2):
        feeds = random_feeds(graph, seed)
        golden = reference.run(feeds)
        compare_graph(graph, golden, layers)
        (output, got), *_ = evaluate(graph, feeds).items()
        want, tolerance = golden[output].astype(int), TOLERANCE[name]
        assert got.dtype == np.int8
        if tolerance is None:
            assert want.argmax() == got.argmax()
        else:
            assert np.abs(want - got).max() <= tolerance
    assert layers.passed, layers.first
    assert len(layers.layers) >= 0.8 * len(graph.nodes())


@pytest.mark.parametrize("name", ["kws", "ic", "ad", "vww"])
def test_float_networks(shared: Path, name: str) -> None:
    path = shared / "mlperf_tiny" / "models" / f"{name}_float.onnx"
    graph = through_passes(load(path, {}).graph)
    assert not any(isinstance(n.op, (Transpose, Dequantize)) for n in graph.nodes())
    feeds = random_feeds(graph, 0)
    golden = Reference(onnx.load(path), intermediates=False).run(feeds)
    for output, got in evaluate(graph, feeds).items():
        np.testing.assert_allclose(got, golden[output], rtol=1e-3, atol=1e-3)


MODELS = [
    "atmega_mnist",
    "Autoencoder1D",
    "CCT_1_16_16_8",
    "ch_ppocr_mobile_v2.0_cls_infer",
    "conv_2ch_3kernels_randombias",
    "embedding_model",
    "lstm_k1_b1_r1",
    "melspectrogram",
    "micro_kws_m_qdq",
    "micro_kws_m_static_fp32",
    "micro_kws_m_static_qoperator",
    "mixed_ops_dynamic_batch",
    "mnist_model",
    "mnist_pytorch",
    "nmp",
    "silero_vad_openvino_16k",
    "tfl_helloworld",
]


def shapes_of(folder: Path, name: str) -> dict[str, tuple[int, ...]]:
    """The input shapes to bind, from the table beside the models: NAME=1,3,32 NAME=…."""
    for line in (folder / "models.tsv").read_text().splitlines():
        file, _, shapes, *_ = line.split("\t")
        if file == f"{name}.onnx":
            pairs = (part.split("=") for part in shapes.split())
            return {key: tuple(int(d) for d in dims.split(",")) for key, dims in pairs}
    return {}


@pytest.mark.parametrize("name", MODELS)
def test_deployed_networks(shared: Path, name: str) -> None:
    folder = shared / "models_real"
    path = folder / f"{name}.onnx"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    try:
        before = load(path, shapes_of(folder, name)).graph
    except UnsupportedError as error:
        pytest.skip(f"{name}: {error.problems[0].what}")
    after = through_passes(before)
    data = np.load(folder / f"{name}.npz")
    feeds = {
        v.name: data[f"in_{i}"].astype(v.type.dtype.numpy).reshape(v.shape)
        for i, v in enumerate(before.inputs)
    }
    want, got = evaluate(before, feeds), evaluate(after, feeds)
    for output, expected in want.items():
        span = float(np.ptp(expected.astype(np.float64))) or 1.0
        delta = np.abs(expected.astype(np.float64) - got[output].astype(np.float64))
        assert float(delta.max(initial=0)) <= (2 if expected.dtype.kind in "iu" else 1e-3 * span)
