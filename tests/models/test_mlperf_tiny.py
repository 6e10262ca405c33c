"""The MLPerf Tiny networks, every level against ONNX Runtime and against each other."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest
from networks import FLOAT, INT8, auc, inputs, labels, model
from numpy.typing import NDArray

from glowmcu.core.types import dequantize
from glowmcu.driver import Compilation, compile_network
from glowmcu.instr.evaluate import evaluate
from glowmcu.options import Options
from glowmcu.targets.board import board
from glowmcu.verify.board import run_on_board
from glowmcu.verify.compare import Comparison, compare_graph, compare_instructions
from glowmcu.verify.host import HostLibrary
from glowmcu.verify.reference import Reference


@cache
def compiled(path: Path, target: str = "host") -> Compilation:
    return compile_network(path, Options(target=target))


def feeds(compilation: Compilation, samples: NDArray[np.generic]) -> list[dict[str, NDArray]]:
    slot = compilation.unit.inputs[0]
    return [{slot.name: s.reshape(slot.type.shape)} for s in samples]


def golden(path: Path) -> Reference:
    return Reference(onnx.load(path), intermediates=False)


@pytest.mark.cc
@pytest.mark.parametrize("name", FLOAT)
def test_float_networks_equal_onnxruntime(shared: Path, name: str) -> None:
    path = model(shared, name, "float")
    compilation = compiled(path)
    library, reference = HostLibrary(compilation.unit), golden(path)
    output = compilation.unit.outputs[0].name
    for feed in feeds(compilation, inputs(shared, name, "float", 4)[:8]):
        want = reference.run(feed)[output]
        got = library.run(feed)[output]
        assert np.abs(want - got).max() <= 1e-4 * np.ptp(want)


@pytest.mark.parametrize("name", INT8)
def test_int8_networks_become_all_integer(shared: Path, name: str) -> None:
    graph = compiled(model(shared, name, "int8")).graph
    kinds = {type(n.op).__name__ for n in graph.nodes()}
    assert not kinds & {"Quantize", "Dequantize", "Transpose", "AsQuant"}
    assert all(v.type.dtype.is_integer for v in graph.values())


@pytest.mark.parametrize("name", INT8)
def test_int8_layers_are_within_one_lsb_of_onnxruntime(shared: Path, name: str) -> None:
    path = model(shared, name, "int8")
    compilation = compiled(path)
    reference = Reference(onnx.load(path))
    graph, function = Comparison("graph"), Comparison("instructions")
    for feed in feeds(compilation, inputs(shared, name, "int8", 3)[:5]):
        tensors = reference.run(feed)
        compare_graph(compilation.graph, tensors, graph)
        compare_instructions(compilation.function, tensors, function)
    layers = sum(n.op_type == "QuantizeLinear" for n in onnx.load(path).graph.node)
    for result in (graph, function):
        assert len(result.layers) >= layers
        assert result.first is None


@pytest.mark.cc
@pytest.mark.parametrize("name", INT8)
def test_int8_outputs_are_those_of_onnxruntime(shared: Path, name: str) -> None:
    """The class is the same for every sample; values within 2.

    In ic an average over 64 pixels meets an exact tie in one of 64 outputs. ONNX Runtime adds 64
    floats there, whose rounding errors decide; softmax then multiplies that one step of the pool.
    """
    path = model(shared, name, "int8")
    compilation = compiled(path)
    library, reference = HostLibrary(compilation.unit), golden(path)
    output = compilation.unit.outputs[0].name
    samples = inputs(shared, name, "int8", 1 if name == "ad" else 100)[:100]
    worst = []
    for feed in feeds(compilation, samples):
        want = reference.run(feed)[output].astype(np.int32)
        got = library.run(feed)[output].astype(np.int32)
        assert name == "ad" or want.argmax() == got.argmax()
        worst.append(int(np.abs(want - got).max()))
    if name == "ic":
        assert sum(w > 16 for w in worst) <= 1
        assert max(worst) <= 30
    else:
        assert max(worst) <= 2


@pytest.mark.cc
@pytest.mark.parametrize(
    ("compiler", "flags"),
    [("gcc", ("-O0",)), ("gcc", ("-O3",)), ("clang", ("-O0",)), ("clang", ("-O3",))],
)
@pytest.mark.parametrize("name", INT8)
def test_host_c_has_the_bits_of_the_instructions(
    shared: Path, name: str, compiler: str, flags: tuple[str, ...]
) -> None:
    compilation = compiled(model(shared, name, "int8"))
    library = HostLibrary(compilation.unit, compiler=compiler, flags=flags)
    for feed in feeds(compilation, inputs(shared, name, "int8", 2)[:2]):
        want = evaluate(compilation.function, feed, compilation.plan.offsets, compilation.plan.size)
        got = library.run(feed)
        for key, array in want.items():
            np.testing.assert_array_equal(got[key], array)


@pytest.mark.qemu
@pytest.mark.parametrize("name", INT8)
@pytest.mark.parametrize(
    ("target", "machine"), [("cortex-m4", "mps2-an386"), ("cortex-m0", "mps2-an385")]
)
def test_boards_have_the_bits_of_the_instructions(
    shared: Path, name: str, target: str, machine: str
) -> None:
    compilation = compiled(model(shared, name, "int8"), target)
    samples = feeds(compilation, inputs(shared, name, "int8", 2)[:2])
    results = run_on_board(compilation.unit, board(machine), samples).outputs
    for feed, got in zip(samples, results, strict=True):
        want = evaluate(compilation.function, feed, compilation.plan.offsets, compilation.plan.size)
        for key, array in want.items():
            np.testing.assert_array_equal(got[key], array)


@pytest.mark.cc
@pytest.mark.parametrize("name", ["kws", "vww", "ic", "ad"])
def test_accuracy_of_the_imported_int8_networks(shared: Path, name: str) -> None:
    compilation = compiled(model(shared, name, "int8"))
    library = HostLibrary(compilation.unit)
    slot = compilation.unit.outputs[0]
    x, y = inputs(shared, name, "int8"), labels(shared, name)
    scores = np.stack([library.run(f)[slot.name].reshape(-1) for f in feeds(compilation, x)])
    known = json.loads((shared / "mlperf_tiny" / "accuracy_reference.json").read_text())[name]
    if name == "ad":
        assert slot.type.quant is not None
        source = compilation.unit.inputs[0].type.quant
        assert source is not None
        wanted = dequantize(x.reshape(scores.shape), source)
        errors = (dequantize(scores, slot.type.quant) - wanted) ** 2
        measured = auc(errors.mean(axis=1).reshape(len(y), -1).mean(axis=1), y)
        assert abs(measured - known["tflite_int8_auc"]) <= 0.01
    else:
        points = 100 * ((scores.argmax(axis=1) == y).mean() - known["tflite_int8"])
        assert abs(round(points, 6)) <= 1
