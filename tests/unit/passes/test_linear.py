"""Matrix products become dense layers; scales and sums per channel go into the weights."""

from __future__ import annotations

import numpy as np
import pytest
from law import changed, network, operators, source, weights

from glowmcu.core import dtypes
from glowmcu.core.types import Array, Quant, TensorType
from glowmcu.graph.graph import Graph, Value, apply, constant
from glowmcu.ops.base import weights_i8
from glowmcu.ops.conv import Conv2D
from glowmcu.ops.conv_transpose import ConvTranspose2D
from glowmcu.ops.dense import Dense
from glowmcu.ops.elementwise import Elementwise
from glowmcu.ops.matmul import MatMul
from glowmcu.ops.quant import Dequantize
from glowmcu.ops.reshape import Reshape
from glowmcu.passes.linear import fold_scales, matmul_to_dense


def c(data: Array) -> Value:
    return constant("c", np.asarray(data, np.float32))


def fn(name: str, *inputs: Value) -> Value:
    return apply(Elementwise(name), *inputs).output


def stored_weights(*shape: int) -> Value:
    type_ = weights_i8(*shape)
    data = np.random.default_rng(2).integers(-127, 128, shape).astype(np.int8)
    return apply(Dequantize(), constant("w", data, type_)).output


def dense(x: Value) -> Value:
    return apply(Dense(), x, c(weights(4, x.shape[-1]))).output


def conv(x: Value, w: Value | None = None, groups: int = 1, **fields: object) -> Value:
    w = c(weights(6, 3, 3, x.shape[-1] // groups)) if w is None else w
    return apply(Conv2D(groups=groups, **fields), x, w, c(weights(6, seed=3))).output


@pytest.mark.parametrize("rank", [2, 3])
def test_matmul_with_constant(rank: int) -> None:
    x = source(*(2, 3, 5)[3 - rank :])
    y = apply(MatMul(), x, c(weights(5, 4))).output
    after = changed(network([x], y), matmul_to_dense)
    assert operators(after) == ["Dense"]
    assert after.nodes()[0].inputs[1].shape == (4, 5)


def test_matmul_with_stored_weights_keeps_the_integers() -> None:
    x = source(2, 5)
    for axis in (None, 0, 1):
        quant = Quant.per_tensor(0.1)
        if axis is not None:
            count = (5, 4)[axis]
            quant = Quant(tuple(np.linspace(0.1, 0.2, count).tolist()), (0,) * count, axis)
        data = np.arange(20, dtype=np.int8).reshape(5, 4)
        w = constant("w", data, TensorType(dtypes.I8, (5, 4), quant))
        y = apply(MatMul(), x, apply(Dequantize(), w).output).output
        after = changed(network([x], y), matmul_to_dense)
        assert operators(after) == ["Dequantize", "Dense"]
        assert after.nodes()[0].inputs[0].type.quant.axis == (None if axis is None else 1 - axis)


def test_matmul_of_two_activations_or_batches_stays() -> None:
    x, z = source(2, 5), source(5, 3, name="z")
    assert operators(changed(network([x, z], apply(MatMul(), x, z).output), matmul_to_dense)) == [
        "MatMul"
    ]
    y = apply(MatMul(), source(2, 4, 5), c(weights(2, 5, 3))).output
    assert y.producer is not None
    assert operators(changed(network([y.producer.inputs[0]], y), matmul_to_dense)) == ["MatMul"]


def batch_norm(y: Value, axis_first: bool = False) -> Value:
    n = y.shape[-1]
    shape = (1, 1, n) if y.type.rank == 4 else (n,)
    y = fn("mul", y, c(weights(n, seed=8).reshape(shape)))
    y = fn("add", c(weights(n, seed=9).reshape(shape)), y)
    y = fn("sub", c(weights(n, seed=10)), fn("div", y, c(np.full(n, 2.5))))
    return fn("neg", fn("sub", y, c(0.5)))


def test_batch_norm_after_a_layer() -> None:
    for make in (dense, conv):
        x = source(1, 6, 5, 4)
        after = changed(network([x], batch_norm(make(x))), fold_scales)
        assert len(after.nodes()) == 1
        assert after.outputs[0].name == batch_norm(make(x)).name


def test_batch_norm_after_a_transposed_convolution() -> None:
    x = source(1, 4, 5, 4)
    for groups in (1, 2):
        op = ConvTranspose2D(strides=(2, 2), groups=groups)
        y = apply(op, x, c(transposed_weights(groups))).output
        after = changed(network([x], batch_norm(y)), fold_scales)
        assert operators(after) == ["ConvTranspose2D"]


def transposed_weights(groups: int) -> Array:
    return weights(6, 3, 3, 4 // groups)


def test_batch_norm_after_a_reshaped_layer() -> None:
    x = source(1, 1, 5, 4)
    w = c(weights(6, 1, 3, 4))
    y = apply(Reshape((1, 3, 6)), apply(Conv2D(), x, w).output).output
    after = changed(network([x], fn("add", y, c(weights(1, 1, 6)))), fold_scales)
    assert operators(after) == ["Conv2D", "Reshape"]


def left_alone(graph: Graph) -> None:
    before = operators(graph)
    assert operators(changed(graph, fold_scales)) == before


def test_what_cannot_be_folded() -> None:
    x = source(1, 5, 5, 4)
    layer = conv(x)
    left_alone(network([x], fn("mul", layer, c(weights(6))), layer))  # two readers
    left_alone(network([x], fn("mul", conv(x, clamp=(0.0, 6.0)), c(weights(6)))))  # activation
    left_alone(network([x], fn("mul", layer, c(weights(3, 1)))))  # per column
    left_alone(network([x], fn("div", c(weights(6)), layer)))
    z = source(1, 3, 3, 6, name="z")
    left_alone(network([x, z], fn("add", layer, z)))  # not a constant
    left_alone(network([x], fn("relu", layer)))


def test_stored_weights_get_other_scales() -> None:
    x = source(1, 5, 5, 4)
    layer = conv(x, stored_weights(6, 3, 3, 4))
    after = changed(network([x], batch_norm(layer)), fold_scales)
    assert operators(after) == ["Dequantize", "Conv2D"]
    left_alone(network([x], fn("mul", layer, c([1, 2, 3, 0, 4, 5]))))  # a scale of zero


def test_a_bias_stays_as_it_is_stored() -> None:
    x = source(2, 5)
    bias_type = TensorType(dtypes.I32, (4,), Quant.per_tensor(0.001))
    bias = apply(Dequantize(), constant("b", np.arange(4, dtype=np.int32), bias_type)).output
    after = changed(network([x], fn("add", dense(x), bias)), fold_scales)
    assert operators(after) == ["Dequantize", "Dense"]


def test_scales_before_a_layer() -> None:
    x = source(1, 5, 5, 4)
    normal = fn("sub", fn("mul", x, c(weights(4))), c(weights(4, seed=4)))
    assert operators(changed(network([x], conv(normal)), fold_scales)) == ["Conv2D"]
    assert operators(changed(network([x], dense(normal)), fold_scales)) == ["Dense"]
    grouped = conv(fn("mul", x, c(weights(4))), groups=2)
    assert operators(changed(network([x], grouped), fold_scales)) == ["Conv2D"]
    scaled = fn("mul", x, c(weights(4)))
    padded = conv(scaled, pads=(1, 1, 1, 1))
    assert operators(changed(network([x], padded), fold_scales)) == ["Conv2D"]


def test_scales_before_a_reshape() -> None:
    x = source(1, 5, 5, 4)
    scaled = fn("mul", x, c(weights(4)))
    y = conv(apply(Reshape((5, 5, 1, 4)), scaled).output, c(weights(6, 3, 1, 4)))
    assert operators(changed(network([x], y), fold_scales)) == ["Reshape", "Conv2D"]
    left_alone(network([x], dense(apply(Reshape((1, 100)), scaled).output)))


def test_scales_before_a_transposed_convolution() -> None:
    x = source(1, 4, 5, 4)
    op = ConvTranspose2D(strides=(2, 2), groups=2)
    w = c(transposed_weights(2))
    scaled, shifted = (fn(name, x, c(weights(4))) for name in ("mul", "add"))
    after = changed(network([x], apply(op, scaled, w).output), fold_scales)
    assert operators(after) == ["ConvTranspose2D"]
    left_alone(network([x], apply(op, shifted, w).output))


def test_a_sum_before_padding_stays() -> None:
    x = source(1, 5, 5, 4)
    shifted = fn("add", x, c(weights(4)))
    left_alone(network([x], conv(shifted, pads=(1, 1, 1, 1))))
    left_alone(network([x], conv(shifted), shifted))
