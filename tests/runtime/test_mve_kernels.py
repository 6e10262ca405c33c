"""Kernels of MVE compute what the instructions say, to the bit, and stay in their memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from dsp_layers import bound, expected_of, feeds_of, function_of, unit_of
from vector_layers import LAYERS, depthwise

from glowmcu.core import dtypes
from glowmcu.core.types import Quant, TensorType
from glowmcu.driver import compile_network
from glowmcu.graph.graph import Graph, Value, apply
from glowmcu.instr.function import Function
from glowmcu.lowering.lower import lower
from glowmcu.ops.base import Op
from glowmcu.ops.elementwise import Elementwise
from glowmcu.ops.pool import Pool2D
from glowmcu.options import Options
from glowmcu.targets.board import board
from glowmcu.targets.kernel import Kernel
from glowmcu.targets.select import select, verdicts
from glowmcu.targets.target import target
from glowmcu.verify.board import run_all_on_board
from glowmcu.verify.host import HostLibrary

M55 = target("cortex-m55")


def offered(function: Function) -> Iterator[Kernel]:
    (instruction,) = function.instructions
    for kernel in instruction.kernels:
        if kernel.folder == "arm_mve" and not kernel.accepts(instruction):
            yield kernel


@pytest.mark.qemu
@pytest.mark.parametrize("optimize", ["-O0", "-O3"])
def test_every_kernel_is_exact(optimize: str, qemu: None) -> None:
    units, feeds, expected = [], [], []
    for number, layer in enumerate(LAYERS):
        function = function_of(layer, number)
        kernels = list(offered(function))
        assert kernels, layer
        given = feeds_of(layer, number)
        for kernel in kernels:
            name = f"n{number}_{kernel.symbol}"
            units.append(unit_of(bound(function, kernel), name, number % 2 == 0, M55))
            feeds.append(given)
            expected.append(expected_of(function, given))
    runs = run_all_on_board(units, board("mps3-an547"), feeds, optimize=optimize, timeout=120)
    wrong = [
        unit.name
        for unit, run, wants in zip(units, runs, expected, strict=True)
        for found, want in zip(run.outputs, wants, strict=True)
        if not np.array_equal(found["y"], want)
    ]
    assert not wrong


def sum_of(a: tuple[int, ...], b: tuple[int, ...], seed: int) -> Function:
    """Return the function of a sum of two int8 tensors, without kernels."""
    scales = (0.031, 0.017, 0.02)
    types = [
        TensorType(dtypes.I8, shape, Quant.per_tensor(scale, zero))
        for shape, scale, zero in zip((a, b), scales, (3, -9), strict=False)
    ]
    x, z = (Value(name, type_) for name, type_ in zip("xz", types, strict=True))
    y = TensorType(dtypes.I8, np.broadcast_shapes(a, b), Quant.per_tensor(scales[2], -7 * seed))
    node = apply(Elementwise("add"), x, z, name="y", types=(y,))
    graph = Graph("sum", (x, z), node.outputs, ("y",))
    return lower(graph, graph.nodes(), "sum")


@pytest.mark.qemu
def test_sums_are_exact(qemu: None) -> None:
    units, feeds, expected = [], [], []
    shapes = [((n,), (n,)) for n in (1, 3, 4, 5, 17)]
    shapes += [((3, 6), (6,)), ((3, 6), (3, 1)), ((5, 7), (1,)), ((2, 9), (2, 9))]
    for number, (a, b) in enumerate(shapes):
        function = sum_of(a, b, number)
        rng = np.random.default_rng(number)
        given = [{k: rng.integers(-128, 128, s).astype(np.int8) for k, s in (("x", a), ("z", b))}]
        (kernel,) = offered(function)
        units.append(unit_of(bound(function, kernel), f"sum{number}", number % 2 == 0, M55))
        feeds.append(given)
        expected.append(expected_of(function, given)[0])
    runs = run_all_on_board(units, board("mps3-an547"), feeds, optimize="-O2", timeout=120)
    for run, want in zip(runs, expected, strict=True):
        np.testing.assert_array_equal(run.outputs[0]["y"], want)


def of_one(op: Op, shape: tuple[int, ...]) -> Function:
    """Return the function of an operator that keeps the quantization, without kernels."""
    x = Value("x", TensorType(dtypes.I8, shape, Quant.per_tensor(0.05, 3)))
    node = apply(op, x, name="y", types=(x.type.with_shape(op.infer(x.type).shape),))
    graph = Graph("one", (x,), node.outputs, ("y",))
    return lower(graph, graph.nodes(), "one")


@pytest.mark.qemu
def test_maxima_and_tables_are_exact(qemu: None) -> None:
    cases: list[tuple[Op, tuple[int, ...]]] = [
        (Elementwise("tanh"), (n,)) for n in (1, 15, 16, 17, 40)
    ]
    for channels in (1, 15, 16, 17, 33):
        cases.append((Pool2D("max", (2, 2), (2, 2)), (1, 4, 6, channels)))
        cases.append((Pool2D("max", (3, 2), (1, 1), (1, 1, 1, 0)), (2, 4, 3, channels)))
    units, feeds, expected = [], [], []
    for number, (op, shape) in enumerate(cases):
        function = of_one(op, shape)
        given = [{"x": np.random.default_rng(number).integers(-128, 128, shape).astype(np.int8)}]
        (kernel,) = offered(function)
        units.append(unit_of(bound(function, kernel), f"one{number}", number % 2 == 0, M55))
        feeds.append(given)
        expected.append(expected_of(function, given)[0])
    runs = run_all_on_board(units, board("mps3-an547"), feeds, optimize="-O2", timeout=120)
    for run, want in zip(runs, expected, strict=True):
        np.testing.assert_array_equal(run.outputs[0]["y"], want)


def test_neighbouring_weights_of_minus_128_are_refused() -> None:
    """Two products of -128 and -128 do not fit 16 bits together."""
    layer = depthwise((4, 4, 8), (1, 2))
    assert list(offered(function_of(layer, 1)))
    function = function_of(replace(layer, weights="both"), 1)
    assert not list(offered(function))
    chosen = select(function.instructions[0], M55)
    assert chosen.folder != "arm_mve"
    assert "-128" in " ".join(
        reason for _, reason in verdicts(function.instructions[0], M55, "balanced", chosen)
    )


@pytest.mark.qemu
def test_code_for_the_m85_is_that_of_the_m55(shared: Path, qemu: None) -> None:
    path = shared / "mlperf_tiny" / "models" / "kws_int8.onnx"
    one, other = (
        compile_network(path, Options(name="kws", target=name))
        for name in ("cortex-m55", "cortex-m85")
    )
    (slot,) = one.unit.inputs
    rng = np.random.default_rng(5)
    feed = {slot.name: rng.integers(-128, 128, slot.type.shape).astype(np.int8)}
    expected = HostLibrary(other.for_host().unit).run(feed)
    found = run_all_on_board([other.unit], board("mps3-an547"), [[feed]])[0].outputs[0]
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values)
    kernels = [[i.kernel for i in c.function.instructions] for c in (one, other)]
    assert kernels[0] == kernels[1]
