"""With --io int8 the generated C has no float instruction: it compiles for a core without any."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from test_quantize import fn, network, samples, through_passes, weights

from glowmcu.emit.unit import CodeUnit, ModelInfo
from glowmcu.generate import generate
from glowmcu.graph.graph import Graph, Value, apply, constant
from glowmcu.lowering.lower import lower
from glowmcu.lowering.schedule import schedule
from glowmcu.ops._resize_taps import Axis
from glowmcu.ops.base import f32
from glowmcu.ops.conv import Conv2D
from glowmcu.ops.dense import Dense
from glowmcu.ops.pool import Pool2D
from glowmcu.ops.reduce import Reduce
from glowmcu.ops.resize import Resize2D
from glowmcu.options import Options
from glowmcu.passes import islands
from glowmcu.quantize import quantize


def functions() -> Graph:
    """Every function that is computed in integers, after each other."""
    x = Value("x", f32(1, 6, 6, 4))
    y = apply(Conv2D(), x, weights(4, 3, 3, 4), weights(4)).output
    for name in ("sigmoid", "tanh", "gelu", "hard_swish", "erf", "softplus", "abs", "sqrt", "exp"):
        y = fn(name, y)
    y = fn("leaky_relu", y, constant("slope", np.float32(0.1)))
    y = fn("mul", fn("add", y, fn("neg", y)), fn("sub", y, weights(4)))
    y = fn("max", y, fn("min", y, weights(4)))
    grown = Resize2D(Axis(4, 8, 2.0), Axis(4, 8, 2.0), "linear")
    y = apply(Pool2D("average", (2, 2), (2, 2)), apply(grown, y).output).output
    y = apply(Reduce("mean", (1, 2), keepdims=False), y).output
    return Graph("functions", (x,), (apply(Dense(), y, weights(3, 4)).output,), ("y",))


def unit_of(graph: Graph, target: str) -> CodeUnit:
    before = through_passes(graph)
    after = through_passes(quantize(before, samples(before)))
    assert islands(after) == []
    lowered = lower(after, schedule(after), "net")
    return generate(lowered, Options(target=target), ModelInfo()).unit


@pytest.mark.cross
@pytest.mark.parametrize("make", [network, functions])
def test_no_float_in_the_code(
    make: Callable[[], Graph], float_calls: Callable[[dict[str, str]], list[str]]
) -> None:
    assert float_calls(unit_of(make(), "cortex-m0").files) == []


@pytest.mark.cross
def test_float_in_the_code_is_found(
    float_calls: Callable[[dict[str, str]], list[str]],
) -> None:
    graph = through_passes(network())
    lowered = lower(graph, schedule(graph), "net")
    unit = generate(lowered, Options(target="cortex-m0"), ModelInfo()).unit
    assert "__aeabi_fmul" in float_calls(unit.files)
