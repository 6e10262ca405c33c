"""Padding and activations become parameters of a layer, where they mean the same there."""

from __future__ import annotations

import math

import numpy as np
import pytest
from law import changed, network, operators, source, weights

from glowmcu.graph.graph import Graph, Value, apply, constant
from glowmcu.ops.base import i8
from glowmcu.ops.conv import Conv2D
from glowmcu.ops.dense import Dense
from glowmcu.ops.elementwise import Elementwise
from glowmcu.ops.pad import Pad
from glowmcu.ops.pool import Pool2D
from glowmcu.ops.reshape import Reshape
from glowmcu.ops.standardize import Standardize
from glowmcu.ops.transpose import Transpose
from glowmcu.passes.fuse import fuse_activations, fuse_pad

BORDER = (0, 1, 2, 0, 0, 3, 0, 0)


def c(data: object) -> Value:
    return constant("c", np.asarray(data, np.float32))


def clip(x: Value, low: float, high: float) -> Value:
    return apply(Elementwise("clip"), x, c(low), c(high)).output


def relu(x: Value) -> Value:
    return apply(Elementwise("relu"), x).output


def conv(x: Value, clamp: tuple[float, float] | None = None) -> Value:
    return apply(Conv2D(clamp=clamp), x, c(weights(6, 3, 3, x.shape[-1]))).output


def dense(x: Value) -> Value:
    return apply(Dense(), x, c(weights(6, x.shape[-1]))).output


def clamp_of(graph: Graph) -> object:
    return graph.nodes()[0].op.clamp


def test_activations_fuse() -> None:
    x = source(1, 5, 5, 4)
    added = apply(Elementwise("add"), x, c(weights(4))).output
    for layer in (conv(x), dense(x), added):
        after = changed(network([x], relu(layer)), fuse_activations)
        assert len(after.nodes()) == 1
        assert clamp_of(after) == (0.0, math.inf)
        after = changed(network([x], clip(relu(layer), -1, 0.75)), fuse_activations)
        assert clamp_of(after) == (0.0, 0.75)


def plus(x: Value, y: Value) -> Value:
    return apply(Elementwise("add"), x, y).output


def test_scale_and_bias_of_standardized_rows_fuse() -> None:
    x = source(3, 5)
    rows = apply(Standardize(1e-5), x).output
    scaled = apply(Elementwise("mul"), c(weights(1, 5)), rows).output
    after = changed(network([x], plus(scaled, c(weights(5)))), fuse_activations)
    assert [len(n.inputs) for n in after.nodes()] == [3]
    after = changed(network([x], plus(rows, c(weights(5)))), fuse_activations)
    assert [v is None for v in after.nodes()[0].inputs] == [False, True, False]
    late = apply(Elementwise("mul"), plus(rows, c(weights(5))), c(weights(5))).output
    assert operators(fuse_activations(network([x], late))) == ["Standardize", "mul"]
    assert len(fuse_activations(network([x], plus(scaled, rows))).nodes()) == 3


def test_disjoint_clips() -> None:
    x = source(1, 5, 5, 4)
    after = changed(network([x], clip(clip(conv(x), -3, -2), -1, 1)), fuse_activations)
    assert clamp_of(after) == (-1.0, -1.0)


def test_activation_after_reshape() -> None:
    x = source(1, 5, 5, 4)
    y = relu(apply(Reshape((1, 54)), conv(x)).output)
    assert operators(changed(network([x], y), fuse_activations)) == ["Conv2D", "Reshape"]


def test_activation_after_maxima_and_transposes() -> None:
    x = source(1, 7, 7, 4)
    pool = Pool2D(kind="max", kernel=(2, 2), strides=(2, 2), pads=(0, 1, 0, 0))
    y = apply(Transpose((0, 3, 1, 2)), apply(pool, conv(x)).output).output
    after = changed(network([x], relu(y)), fuse_activations)
    assert operators(after) == ["Conv2D", "Pool2D", "Transpose"]
    for kind, outputs in (("average", 1), ("max", 2)):
        op = Pool2D(kind=kind, kernel=(2, 2))
        y = apply(op, conv(x)).output
        graph = network([x], *[relu(y), y][:outputs])
        assert operators(changed(graph, fuse_activations)) == ["Conv2D", "Pool2D", "relu"]


def test_activations_that_stay() -> None:
    x, low = source(1, 5, 5, 4), source(1, name="low")
    layer = conv(x)
    y = apply(Elementwise("clip"), layer, low, c(9)).output
    for graph in (
        network([x], relu(layer), layer),
        network([x, low], y),
        network([x], apply(Elementwise("clip"), layer, c(weights(6) - 3), c(9)).output),
        network([x], apply(Elementwise("leaky_relu"), layer, c(0.1)).output),
    ):
        before = operators(graph)
        assert operators(changed(graph, fuse_activations)) == before


def test_activation_on_another_quantization_stays() -> None:
    x = Value("x", i8(2, 6))
    same, other = i8(2, 6, scale=0.1), i8(2, 6, scale=0.2)
    for types, left in (((same, same), 1), ((same, other), 2)):
        added = apply(Elementwise("add"), x, x, types=types[:1]).output
        y = apply(Elementwise("relu"), added, types=types[1:]).output
        assert len(changed(network([x], y), fuse_activations).nodes()) == left


def window(x: Value, kind: str, pads: tuple[int, int, int, int] = (0, 0, 0, 0)) -> Value:
    if kind == "conv":
        return apply(Conv2D(pads=pads), x, c(weights(6, 3, 3, x.shape[-1]))).output
    op = Pool2D(kind=kind, kernel=(3, 3), strides=(2, 2), pads=pads, count_include_pad=False)
    return apply(op, x).output


def padded(x: Value, value: float, pads: tuple[int, ...] = BORDER, mode: str = "constant") -> Value:
    return apply(Pad(pads, mode, value), x).output


@pytest.mark.parametrize(("kind", "value"), [("conv", 0.0), ("max", -math.inf), ("average", 0.0)])
def test_pad_fuses(kind: str, value: float) -> None:
    x = source(1, 6, 6, 4)
    after = changed(network([x], window(padded(x, value), kind)), fuse_pad)
    assert "Pad" not in operators(after)


def test_pad_before_a_transpose() -> None:
    x = source(1, 4, 6, 6)
    y = apply(Transpose((0, 2, 3, 1)), padded(x, 0.0, (0, 0, 1, 2, 0, 0, 3, 0))).output
    after = changed(network([x], window(y, "conv")), fuse_pad)
    assert operators(after) == ["Transpose", "Conv2D"]


def test_pad_that_stays() -> None:
    x = source(1, 6, 6, 4)
    for y in (
        window(padded(x, 1.0), "conv"),
        window(padded(x, 0.0), "max"),
        window(padded(x, 0.0), "average", (1, 1, 1, 1)),
        window(padded(x, 0.0, (0, 1, 2, 1, 0, 3, 0, 0)), "conv"),
        window(padded(x, 0.0, mode="reflect"), "conv"),
    ):
        before = operators(network([x], y))
        assert operators(changed(network([x], y), fuse_pad)) == before


def test_quantized_pad_fuses() -> None:
    x = Value("x", i8(1, 6, 6, 4))
    low = i8(1).quant
    assert low is not None
    for kind, value in (("conv", 0.0), ("max", low.scale[0] * (-128 - low.zero_point[0]))):
        wide = apply(Pad(BORDER, "constant", value), x, types=(i8(1, 10, 8, 4),)).output
        y = window(wide, kind)
        type_ = i8(*y.shape, scale=1.0 if kind == "conv" else 0.05)
        assert y.producer is not None
        y = apply(y.producer.op, *y.producer.inputs, types=(type_,)).output
        assert "Pad" not in operators(changed(network([x], y), fuse_pad))
