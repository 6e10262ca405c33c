"""Folding of constants; integers behind a Dequantize stay integers as long as possible."""

from __future__ import annotations

import numpy as np
from law import changed, network, operators, source, weights

from glowmcu.core import dtypes
from glowmcu.core.types import Quant, TensorType
from glowmcu.graph.graph import Value, apply, constant
from glowmcu.ops.base import weights_i8
from glowmcu.ops.broadcast import Broadcast
from glowmcu.ops.elementwise import Elementwise
from glowmcu.ops.quant import Dequantize, Quantize
from glowmcu.ops.reshape import Reshape
from glowmcu.ops.transpose import Transpose
from glowmcu.passes.fold import fold_constants, fold_dequantized


def stored(type_: TensorType) -> Value:
    data = np.random.default_rng(0).integers(-127, 128, type_.shape).astype(type_.dtype.numpy)
    return constant("w", data, type_)


def test_constants_fold() -> None:
    x = source(3, 4)
    c = apply(Elementwise("exp"), constant("c", weights(4))).output
    after = changed(network([x], apply(Elementwise("add"), x, c).output), fold_constants)
    assert operators(after) == ["add"]


def test_a_constant_output_folds() -> None:
    x = source(2)
    c = apply(Elementwise("neg"), constant("c", weights(4))).output
    after = changed(network([x], apply(Elementwise("neg"), x).output, c), fold_constants)
    assert operators(after) == ["neg"]


def test_quantize_of_a_constant_folds() -> None:
    c = constant("c", weights(4))
    quant = Quant.per_tensor(0.1, 3)
    x = source(2)
    after = changed(
        network(
            [x], apply(Elementwise("neg"), x).output, apply(Quantize(dtypes.I8, quant), c).output
        ),
        fold_constants,
    )
    assert after.outputs[1].type.quant == quant
    assert after.outputs[1].is_constant


def test_weights_stay_integers() -> None:
    x = source(2, 5)
    w = apply(Transpose((1, 0)), apply(Dequantize(), stored(weights_i8(5, 3))).output).output
    w = apply(Reshape((1, 3, 5)), w).output
    y = apply(Elementwise("add"), apply(Reshape((2, 1, 5)), x).output, w).output
    after = changed(network([x], y), fold_constants)
    assert operators(after) == ["Reshape", "Dequantize", "add"]
    (w_stored,) = [v for v in after.values() if v.is_constant]
    assert w_stored.type.quant is not None
    assert (w_stored.shape, w_stored.type.quant.axis) == ((1, 3, 5), 2)
    assert operators(changed(after, fold_dequantized)) == ["Reshape", "add"]


def test_a_reshape_that_mixes_channels_stays_until_the_end() -> None:
    x = source(15)
    w = apply(Reshape((15,)), apply(Dequantize(), stored(weights_i8(5, 3))).output).output
    graph = network([x], apply(Elementwise("add"), x, w).output)
    assert operators(changed(graph, fold_constants)) == ["Dequantize", "Reshape", "add"]
    assert operators(changed(graph, fold_dequantized)) == ["add"]


def test_large_expansion_is_left_to_its_reader() -> None:
    x = source(200, 200)
    wide = apply(Broadcast((200, 200)), constant("c", weights(1, 200))).output
    after = changed(network([x], apply(Elementwise("add"), x, wide).output), fold_constants)
    assert operators(after) == ["add"]
    assert max(v.type.numel for v in after.values() if v.is_constant) == 200


def test_large_expansion_without_such_a_reader_stays() -> None:
    x = source(1)
    wide = apply(Broadcast((200, 200)), constant("c", weights(1, 200))).output
    after = changed(network([x], apply(Elementwise("neg"), x).output, wide), fold_constants)
    assert operators(after) == ["neg", "Broadcast"]


def test_a_broadcast_that_makes_the_shape_stays() -> None:
    x = source(1, 4)
    wide = apply(Broadcast((3, 4)), x).output
    y = apply(Elementwise("add"), wide, constant("c", weights(4))).output
    assert operators(changed(network([x], y), fold_constants)) == ["Broadcast", "add"]
