"""Whole models: every tensor of the imported graph against ONNX Runtime without optimisation."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from glowmcu.errors import GlowmcuError, UnsupportedError
from glowmcu.frontend import load
from glowmcu.graph.evaluate import evaluate_all
from glowmcu.graph.graph import Graph, Value
from glowmcu.ops.quant import Dequantize

Arrays = dict[str, NDArray[Any]]
MAY_BE_REFUSED = frozenset(
    {
        "A23_maxpool_indices",
        "F02_lstm_only_h0",
        "F04_gru_lbr1",
        "F06_gru_bidir_lbr1_nobias",
        "F08_lstm_peephole_clip",
        "F10_lstm_custom_acts",
        "G14_float16_io",
        "H02_qlconv_i8_zp_m128",
        "H04_qlconv_i8w_perch_zp_nonzero",
        "H06_qlconv_scale_gt1",
        "H22_dynamic_quant",
        "I05_scan_cumsum",
        "micro_kws_m_static_qoperator",
        "lstm_k1_b1_r1",
        "silero_vad_openvino_16k",
    }
)
"""What needs operators without a card is refused; once there is a card, it must be right."""
SHARED = Path(__file__).resolve().parents[4] / "shared"


def rows(table: Path) -> list[dict[str, str]]:
    if not table.exists():
        return []
    with table.open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream, delimiter="\t"))


CASES = {row["id"]: row for row in rows(SHARED / "cases" / "cases.tsv")}
REAL = {row["file"]: row for row in rows(SHARED / "models_real" / "models.tsv")}
TINY = sorted(p.name for p in (SHARED / "mlperf_tiny" / "models").glob("*.onnx"))


def step_of(value: Value) -> float:
    """What one stored integer is worth in a dequantized tensor, 0 for others."""
    node = value.producer
    source = node.inputs[0] if node is not None and isinstance(node.op, Dequantize) else None
    return max(source.type.quant.scale) if source and source.type.quant else 0.0


def close(got: NDArray[Any], expected: NDArray[Any], what: str, step: float = 0.0) -> None:
    """Integers within 1, floats within 1e-4 of the largest value or one step; NaN alike."""
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape), what
    if got.dtype.kind in "iu" and got.dtype.itemsize == 1:
        assert np.abs(got.astype(int) - expected.astype(int)).max(initial=0) <= 1, what
    elif got.dtype.kind in "iub":
        np.testing.assert_array_equal(got, expected, what)
    else:
        finite = np.abs(expected[np.isfinite(expected)]).max(initial=1e-3)
        np.testing.assert_allclose(got, expected, 1e-4, 1e-4 * float(finite) + step, err_msg=what)


def loaded(path: Path, shapes: dict[str, tuple[int, ...]]) -> Graph:
    try:
        return load(path, shapes).graph
    except UnsupportedError as error:
        if path.stem in MAY_BE_REFUSED:
            pytest.skip(f"refused: {error.problems[0].what}")
        raise


def check_golden(path: Path, shapes: dict[str, tuple[int, ...]]) -> None:
    graph = loaded(path, shapes)
    golden = np.load(path.with_suffix(".npz"))
    arrays = evaluate_all(graph, {v.name: golden[f"in_{i}"] for i, v in enumerate(graph.inputs)})
    for i, (name, value) in enumerate(zip(graph.output_names, graph.outputs, strict=True)):
        close(arrays[value], golden[f"out_{i}"], name, step_of(value))


@pytest.mark.parametrize("case", CASES)
def test_case(case: str) -> None:
    path = SHARED / "cases" / f"{case}.onnx"
    if CASES[case]["oracle"] == "refuse":
        with pytest.raises(GlowmcuError):
            load(path)
        return
    check_golden(path, {})


@pytest.mark.parametrize("file", REAL)
def test_deployed_network(file: str) -> None:
    shapes = {}
    for item in REAL[file]["input shapes"].split():
        name, dims = item.rsplit("=", 1)
        shapes[name] = tuple(int(d) for d in dims.split(","))
    check_golden(SHARED / "models_real" / file, shapes)


@pytest.mark.parametrize("file", TINY)
def test_every_tensor_of_a_tiny_network(file: str) -> None:
    """Names and layouts are true: each value is the ONNX tensor it is named after."""
    runtime = pytest.importorskip("onnxruntime")
    path = SHARED / "mlperf_tiny" / "models" / file
    graph = loaded(path, {})
    proto = onnx.load(path)
    names = [o for n in proto.graph.node for o in n.output if o]
    del proto.graph.output[:]
    proto.graph.output.extend(onnx.ValueInfoProto(name=n) for n in names)
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = runtime.InferenceSession(proto.SerializeToString(), options)
    feeds = {v.name: random_array(v) for v in graph.inputs}
    expected = dict(zip(names, session.run(names, feeds), strict=True))
    arrays = evaluate_all(graph, feeds)
    seen = 0
    for value, array in arrays.items():
        if value.name in expected and value.producer is not None:
            seen += 1
            tensor = expected[value.name]
            tensor = tensor.transpose(value.perm) if value.perm else tensor
            close(array, tensor, value.name, step_of(value))
    assert seen > 0.5 * len(graph.nodes())


def random_array(value: Value) -> NDArray[Any]:
    random = np.random.default_rng(1)
    dtype = value.type.dtype.numpy
    if dtype.kind == "f":
        return random.normal(size=value.shape).astype(dtype)
    return random.integers(-128, 128, value.shape).astype(dtype)
