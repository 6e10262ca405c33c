"""The MLPerf Tiny networks quantized here: as accurate as in float, and portable as ONNX."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path

import networks
import numpy as np
import onnxruntime
import pytest

from glowmcu.core.types import Array, dequantize
from glowmcu.core.types import quantize as to_stored
from glowmcu.driver import Compilation, compile_network
from glowmcu.options import Options
from glowmcu.quantize import Settings, measure
from glowmcu.quantize.write import to_onnx
from glowmcu.verify.host import HostLibrary

pytestmark = pytest.mark.cc
BAR = {"kws": 0.900, "ic": 0.850, "vww": 0.830, "ad": 0.875}
AGREEMENT = {"kws": 0.98, "ic": 0.96, "vww": 0.98}


@cache
def data(shared: Path, name: str) -> Array:
    if not networks.model(shared, name, "float").is_file():
        pytest.skip(f"the network {name} is not among the shared models")
    return networks.inputs(shared, name, "float")


def calibration(shared: Path, name: str, part: str) -> Array:
    """The first 100 samples (ad: windows of the first 20), or others of the same number."""
    x = data(shared, name)
    count = {"ad": 20 * 196, "ic": 50 if part == "other" else 100}.get(name, 100)
    found = x[:count] if part == "first" else x[-count:]
    return found[::8] if name == "ad" else found


@cache
def quantized(shared: Path, name: str, part: str, io: str = "int8") -> Compilation:
    path = networks.model(shared, name, "float")
    samples = calibration(shared, name, part)
    return compile_network(path, Options(quantize="int8", io=io), {"x": samples})  # type: ignore[arg-type]


@cache
def real_outputs(shared: Path, name: str) -> Array:
    return run(
        compile_network(networks.model(shared, name, "float"), Options()), data(shared, name)
    )


def run(found: Compilation, x: Array) -> Array:
    """Return the real outputs of the C on real inputs, one row a sample."""
    library = HostLibrary(found.unit)
    (slot,), (output,) = found.unit.inputs, found.unit.outputs
    if slot.type.quant is not None:
        x = to_stored(x, slot.type.quant, slot.type.dtype)
    rows = [library.run({slot.name: sample})[output.name].reshape(-1) for sample in x]
    y = np.stack(rows)
    return dequantize(y, output.type.quant) if output.type.quant else y


@pytest.mark.parametrize("part", ["first", "other"])
@pytest.mark.parametrize("name", list(AGREEMENT))
def test_classes_stay_the_same(shared: Path, name: str, part: str) -> None:
    step = 1 if part == "first" else 2
    x = data(shared, name)[::step]
    y = run(quantized(shared, name, part), x)
    if part == "first":
        assert (y.argmax(1) == networks.labels(shared, name)).mean() >= BAR[name]
    same = (y.argmax(1) == real_outputs(shared, name)[::step].argmax(1)).mean()
    assert same >= AGREEMENT[name]


def test_anomalies_are_found(shared: Path) -> None:
    x = data(shared, "ad")
    y = run(quantized(shared, "ad", "first"), x)
    scores = np.square(y - x).mean(axis=1).reshape(-1, 196).mean(axis=1)
    assert networks.auc(scores.astype(np.float64), networks.labels(shared, "ad")) >= BAR["ad"]


@pytest.mark.parametrize("name", list(BAR))
def test_nothing_is_left_in_float(shared: Path, name: str) -> None:
    data(shared, name)
    found = quantized(shared, name, "first")
    buffers = [b for i in found.function.instructions for b in (*i.inputs(), *i.outputs())]
    assert not [b.name for b in buffers if b.type.dtype.is_float]
    assert all(layer["sqnr_db"] > 20 for layer in found.unit.report["quantization"]["layers"])


@pytest.mark.parametrize(("name", "io"), [("kws", "float"), ("ic", "int8"), ("ad", "int8")])
def test_as_onnx_it_is_the_same_network(shared: Path, name: str, io: str) -> None:
    x = data(shared, name)[:30]
    found = quantized(shared, name, "first", io)
    model = to_onnx(found.graph).SerializeToString()
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    again = compile_network(model, Options(name="again"))
    first, second = HostLibrary(found.unit), HostLibrary(again.unit)
    slot, output = found.unit.inputs[0], found.unit.outputs[0]
    for sample in x:
        shaped = sample.reshape(slot.type.shape)
        stored = to_stored(shaped, slot.type.quant, slot.type.dtype) if io == "int8" else shaped
        ours = first.run({slot.name: stored})[output.name]
        (theirs,) = session.run(None, {slot.name: stored})
        np.testing.assert_array_equal(ours, second.run({slot.name: stored})[output.name])
        if name != "ad":
            assert ours.argmax() == theirs.argmax()
        elif io == "int8":
            assert np.abs(ours.astype(int) - theirs).max() <= 1


def test_calibration_is_quick(shared: Path) -> None:
    x = data(shared, "vww")[:100]
    graph = quantized(shared, "vww", "first").imported
    samples = [{graph.inputs[0].name: sample[None]} for sample in x]
    start = time.process_time()
    measure(graph, samples, Settings())
    assert time.process_time() - start < 10
