"""Float kernels for an FPU give the bits of the portable ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from dsp_layers import bound, unit_of

from glowmcu.core import dtypes
from glowmcu.core.types import Array, TensorType
from glowmcu.graph.graph import Graph, Value, apply, constant
from glowmcu.instr.evaluate import evaluate
from glowmcu.instr.function import Function
from glowmcu.lowering.lower import lower
from glowmcu.ops.conv import Conv2D
from glowmcu.targets.board import board
from glowmcu.targets.kernel import Kernel
from glowmcu.targets.target import target
from glowmcu.verify.board import run_all_on_board

M4 = target("cortex-m4")
SAME = {"pads": (1, 1, 1, 1)}
LAYERS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((1, 5, 5, 16), (8, 1, 1, 16), {}),
    ((1, 1, 2, 3), (1, 1, 1, 3), {}),
    ((2, 3, 3, 4), (7, 1, 1, 4), {"clamp": (0.0, 1.0)}),
    ((1, 1, 7, 9), (9, 1, 1, 9), {}),
    ((1, 6, 5, 3), (8, 3, 3, 3), SAME),
    ((1, 7, 7, 3), (9, 3, 3, 3), {"strides": (2, 2)}),
    ((1, 5, 7, 1), (4, 4, 3, 1), {"pads": (2, 1, 1, 1), "clamp": (-0.5, 0.5)}),
    ((2, 6, 6, 2), (5, 2, 2, 2), {"strides": (1, 2)}),
    ((1, 7, 6, 6), (4, 3, 3, 6), {"pads": (2, 2, 2, 2), "dilations": (2, 2)}),
    ((1, 4, 5, 8), (8, 3, 3, 1), {**SAME, "groups": 8}),
    ((1, 6, 6, 24), (24, 3, 3, 1), {"strides": (2, 2), "pads": (0, 0, 1, 1), "groups": 24}),
    ((2, 7, 5, 16), (16, 2, 4, 1), {"dilations": (2, 1), "groups": 16, "clamp": (0.0, 6.0)}),
]


def function_of(number: int) -> Function:
    shape, weights, attributes = LAYERS[number]
    rng = np.random.default_rng(number)
    x = Value("x", TensorType(dtypes.F32, shape))
    w = constant("w", rng.standard_normal(weights).astype(np.float32))
    parts = [w]
    if number % 3:
        parts.append(constant("b", rng.standard_normal(weights[0]).astype(np.float32)))
    node = apply(Conv2D(**attributes), x, *parts, name="y")
    graph = Graph("layer", (x,), node.outputs, ("y",))
    return lower(graph, graph.nodes(), "layer")


def kernels_of(function: Function) -> Iterator[Kernel]:
    """Yield the FPU's kernel, then the portable one."""
    (instruction,) = function.instructions
    for folder in ("arm_fpu", "c99"):
        yield next(
            k for k in instruction.kernels if k.folder == folder and not k.accepts(instruction)
        )


@pytest.mark.qemu
@pytest.mark.parametrize("optimize", ["-O0", "-O3"])
def test_results_have_the_same_bits(optimize: str, qemu: None) -> None:
    units, feeds, expected = [], [], []
    for number, (shape, _, _) in enumerate(LAYERS):
        function = function_of(number)
        rng = np.random.default_rng(number)
        given: list[dict[str, Array]] = [{"x": rng.standard_normal(shape).astype(np.float32)}]
        for kernel in kernels_of(function):
            name = f"n{number}_{kernel.folder}"
            units.append(unit_of(bound(function, kernel), name, number % 2 == 0, M4))
            feeds.append(given)
            expected.append(evaluate(function, given[0])["y"])
    runs = run_all_on_board(units, board("mps2-an386"), feeds, optimize=optimize, timeout=120)
    found = [run.outputs[0]["y"] for run in runs]
    for number, (fast, portable) in enumerate(zip(found[::2], found[1::2], strict=True)):
        np.testing.assert_array_equal(fast, portable, err_msg=str(LAYERS[number]))
        np.testing.assert_allclose(fast, expected[2 * number], rtol=1e-4, atol=1e-4)
