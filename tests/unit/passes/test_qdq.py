"""From Quantize/Dequantize pairs to integer arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from law import changed, network, operators, source, weights

from glowmcu.core import dtypes
from glowmcu.core.dtypes import DType
from glowmcu.core.types import Quant, TensorType
from glowmcu.graph.graph import Graph, Value, apply, constant
from glowmcu.graph.printer import dump
from glowmcu.ops.base import bias_i32, i8, weights_i8
from glowmcu.ops.concat import Concat
from glowmcu.ops.conv import Conv2D
from glowmcu.ops.dense import Dense
from glowmcu.ops.elementwise import Elementwise
from glowmcu.ops.pad import Pad
from glowmcu.ops.pool import Pool2D
from glowmcu.ops.quant import AsQuant, Dequantize, Quantize
from glowmcu.ops.reshape import Reshape
from glowmcu.ops.slice import Slice
from glowmcu.ops.transpose import Transpose
from glowmcu.passes import GRAPH_PASSES
from glowmcu.passes.integer import fuse_integer, islands
from glowmcu.passes.qdq import gather_quantization, make_signed

Q = Quant.per_tensor(0.05, -3)
WIDE = Quant.per_tensor(0.5, 7)


def c(data: object) -> Value:
    return constant("c", np.asarray(data, np.float32))


def dq(x: Value, quant: Quant | None = None) -> Value:
    if quant is not None:
        x = apply(AsQuant(quant), x).output
    return apply(Dequantize(), x).output


def qu(x: Value, quant: Quant = Q, dtype: DType = dtypes.I8) -> Value:
    return apply(Quantize(dtype, quant), x).output


def fn(name: str, *inputs: Value, **fields: object) -> Value:
    return apply(Elementwise(name, **fields), *inputs).output


def stored(*shape: int, name: str = "x", dtype: DType = dtypes.I8) -> Value:
    return Value(name, TensorType(dtype, shape))


def all_passes(graph: Graph) -> Graph:
    for item in GRAPH_PASSES:
        graph = item.run(graph)
    return graph


def integers_only(graph: Graph) -> bool:
    return all(not t.dtype.is_float for node in graph.nodes() for t in node.types)


def test_input_gets_its_quantization() -> None:
    x = stored(1, 2, 3, 4)
    y = dq(apply(Transpose((0, 2, 3, 1)), x).output, Q)
    after = changed(network([x], y), gather_quantization)
    assert operators(after) == ["Transpose", "Dequantize"]
    assert after.inputs[0].type.quant == Q


def test_input_that_means_two_things_keeps_its_type() -> None:
    x = stored(4)
    after = changed(network([x], dq(x, Q), dq(x, WIDE)), gather_quantization)
    assert after.inputs[0].type.quant is None
    after = changed(network([x], dq(x, Q), fn("neg", x)), gather_quantization)
    assert after.inputs[0].type.quant is None


def test_annotations_in_a_row() -> None:
    x = Value("x", i8(4))
    y = apply(AsQuant(None), x).output
    for quant, left in ((x.type.quant, []), (WIDE, ["AsQuant"]), (None, ["AsQuant"])):
        graph = network([x], apply(AsQuant(quant), y).output)
        assert operators(changed(graph, gather_quantization)) == left


MOVEMENT = [
    Reshape((4, 6)),
    Transpose((0, 3, 2, 1)),
    Slice((0, 0, 0, 1), (1, 1, 1, 2), (1, 2, 4, 1)),
    Pad((0, 1, 0, 0, 0, 0, 2, 0), "constant", 0.0),
    Pool2D(kind="max", kernel=(2, 2), strides=(1, 1), pads=(1, 0, 0, 0)),
]


@pytest.mark.parametrize("op", MOVEMENT, ids=lambda op: type(op).__name__)
def test_movement_of_integers(op: object) -> None:
    x = Value("x", i8(1, 2, 4, 3))
    name = type(op).__name__
    after = changed(network([x], apply(op, dq(x)).output), gather_quantization)
    assert operators(after) == [name, "Dequantize"]
    z = source(1, 2, 4, 3)
    after = changed(network([z], qu(apply(op, z).output)), gather_quantization)
    assert operators(after) == ["Quantize", name]


def test_movement_that_others_read_stays() -> None:
    x = source(2, 3)
    t = apply(Transpose((1, 0)), x).output
    graph = network([x], qu(t), t)
    assert operators(changed(graph, gather_quantization)) == operators(graph)
    average = Pool2D(kind="average", kernel=(2, 2), strides=(1, 1))
    z = Value("x", i8(1, 2, 4, 3))
    graph = network([z], apply(average, dq(z)).output)
    assert operators(changed(graph, gather_quantization)) == ["Dequantize", "Pool2D"]


def test_padding_that_cannot_be_stored_stays_real() -> None:
    x = Value("x", i8(3))
    for value, left in ((0.2, ["Pad", "Dequantize"]), (0.21, ["Dequantize", "Pad"])):
        graph = network([x], apply(Pad((1, 2), "constant", value), dq(x)).output)
        assert operators(changed(graph, gather_quantization)) == left
    graph = network([x], apply(Pad((1, 2), "constant", -np.inf), dq(x)).output)
    assert operators(changed(graph, gather_quantization)) == ["Dequantize", "Pad"]


def test_concat() -> None:
    x, z = Value("x", i8(1, 3)), Value("z", i8(1, 4))
    y = apply(Concat(1), dq(x), dq(z)).output
    assert operators(changed(network([x, z], y), gather_quantization)) == ["Concat", "Dequantize"]
    other = Value("z", i8(1, 4, scale=0.3))
    y = qu(apply(Concat(1), dq(x), dq(other)).output)
    after = changed(network([x, other], y), all_passes, lsb=1)
    assert integers_only(after)


def test_pairs_cancel() -> None:
    x = Value("x", i8(5))
    assert x.type.quant is not None
    assert operators(changed(network([x], qu(dq(x), x.type.quant)), gather_quantization)) == []
    after = changed(network([x], qu(dq(x), WIDE)), all_passes)
    assert operators(after) == ["identity"]


def test_relu_that_saturation_does() -> None:
    x = source(3, 4)
    low = Quant.per_tensor(0.05, -128)
    after = changed(network([x], qu(fn("relu", x), low)), gather_quantization)
    assert operators(after) == ["Quantize"]
    after = changed(network([x], qu(fn("clip", x, c(0), c(0.05 * 255)), low)), gather_quantization)
    assert operators(after) == ["Quantize"]
    after = changed(network([x], qu(fn("relu", x))), gather_quantization)
    assert operators(after) == ["Quantize", "relu"]
    y = fn("relu", x)
    after = changed(network([x], qu(y, low), y), gather_quantization)
    assert operators(after) == ["relu", "Quantize"]


def layer(x: Value, bias: Value | None, quant: Quant = WIDE, **fields: object) -> Value:
    w = constant("w", np.arange(-8, 16, dtype=np.int8).reshape(4, 6), weights_i8(4, 6))
    return qu(apply(Dense(**fields), dq(x), dq(w), bias).output, quant)


def test_dense_with_every_kind_of_bias() -> None:
    x = Value("x", i8(2, 6))
    type_ = bias_i32(x.type, weights_i8(4, 6))
    exact = constant("b", np.arange(4, dtype=np.int32) * 100, type_)
    for bias in (None, dq(exact), c(weights(4))):
        after = changed(network([x], layer(x, bias)), fuse_integer, lsb=1)
        assert operators(after) == ["Dense"]
        inputs = after.nodes()[0].inputs
        assert bias is None or inputs[2].type.dtype == dtypes.I32


def test_dense_that_stays_float() -> None:
    x, plain = Value("x", i8(2, 6)), source(2, 6)
    w = constant("w", np.arange(24, dtype=np.int8).reshape(4, 6), weights_i8(4, 6))
    real = apply(Dense(), dq(x), dq(w)).output
    for graph in (
        network([x], qu(real), real),
        network([x], qu(apply(Dense(), dq(x), c(weights(4, 6))).output)),
        network([plain], qu(apply(Dense(), plain, dq(w)).output)),
    ):
        assert operators(changed(graph, fuse_integer)) == operators(graph)
        assert len(islands(all_passes(graph))) == 1


def test_idle_clamp_is_dropped() -> None:
    x = Value("x", i8(2, 6))
    for zero, clamp in ((-128, None), (-100, (0.0, np.inf))):
        quant = Quant.per_tensor(0.5, zero)
        after = changed(
            network([x], layer(x, None, quant, clamp=(0.0, np.inf))), fuse_integer, lsb=1
        )
        assert after.nodes()[0].op.clamp == clamp


def test_tables_and_sums() -> None:
    x, z = Value("x", i8(2, 6)), Value("z", i8(2, 6, scale=0.1))
    for y in (
        fn("sigmoid", dq(x)),
        fn("leaky_relu", dq(x), c(0.1)),
        fn("add", dq(x), dq(z)),
        fn("mul", dq(x), dq(z)),
        fn("add", dq(x), dq(z), clamp=(0.0, np.inf)),
    ):
        after = changed(network([x, z], qu(y)), fuse_integer, lsb=1)
        assert len(after.nodes()) == 1


def test_run_time_scalar_is_not_a_table() -> None:
    x, slope = Value("x", i8(2, 6)), source(1, name="slope")
    graph = network([x, slope], qu(fn("leaky_relu", dq(x), slope)))
    assert operators(changed(graph, fuse_integer)) == operators(graph)


def unsigned(scale: float, zero: int) -> Quant:
    return Quant.per_tensor(scale, zero)


def test_uint8_network_becomes_int8() -> None:
    x = stored(1, 5, 5, 4, dtype=dtypes.U8)
    a = dq(apply(Transpose((0, 2, 1, 3)), x).output, unsigned(0.05, 120))
    w = constant(
        "w",
        np.full((6, 3, 3, 4), 130, np.uint8),
        TensorType(dtypes.U8, (6, 3, 3, 4), unsigned(0.01, 128)),
    )
    y = fn("relu", apply(Conv2D(), a, dq(w)).output)
    y = dq(qu(y, unsigned(0.1, 0), dtypes.U8))
    y = apply(Pool2D(kind="max", kernel=(2, 2), strides=(1, 1)), y).output
    y = qu(y, unsigned(0.1, 0), dtypes.U8)
    after = changed(network([x], y), all_passes, lsb=1)
    assert integers_only(after)
    assert operators(after)[0] == "identity"
    assert after.inputs[0].type.dtype == after.outputs[0].type.dtype == dtypes.U8
    assert [n.types[0].dtype for n in after.nodes()[:-1]] == [dtypes.I8] * 4, dump(after)


def test_movement_of_uint8() -> None:
    x = source(1, 3, 4)
    y = qu(x, unsigned(0.05, 100), dtypes.U8)
    y = dq(apply(Transpose((0, 2, 1)), y).output)
    after = changed(network([x], y), make_signed)
    assert operators(after) == ["Quantize", "Transpose", "Dequantize"]
    assert after.nodes()[0].types[0].dtype == dtypes.I8


def test_weights_with_zero_point() -> None:
    x = source(2, 6)
    for value, zero in ((100, 0), (-120, 20)):
        type_ = TensorType(dtypes.I8, (4, 6), Quant.per_tensor(0.1, 20))
        w = constant("w", np.full((4, 6), value, np.int8), type_)
        after = changed(network([x], apply(Dense(), x, dq(w)).output), make_signed)
        assert after.nodes()[0].inputs[0].type.quant.zero_point[0] == zero


def test_islands_are_told() -> None:
    x = Value("x", i8(2, 6))
    y = qu(fn("div", fn("exp", dq(x)), fn("add", fn("cos", dq(x)), c(2))))
    (sentence,) = islands(all_passes(network([x], y)))
    assert "exp" in sentence
    assert "float" in sentence
    assert islands(network([source(2)], fn("exp", source(2)))) == []
