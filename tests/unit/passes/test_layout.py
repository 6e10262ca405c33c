"""Transposes sink and cancel; names and permutations of values stay true."""

from __future__ import annotations

import numpy as np
import pytest
from law import changed, network, operators, same_tensors, source, weights

from glowmcu.core import dtypes
from glowmcu.core.types import Quant, TensorType
from glowmcu.graph.graph import Graph, Value, apply, constant
from glowmcu.ops.base import i8, weights_i8
from glowmcu.ops.broadcast import Broadcast
from glowmcu.ops.cast import Cast
from glowmcu.ops.concat import Concat
from glowmcu.ops.conv import Conv2D
from glowmcu.ops.dense import Dense
from glowmcu.ops.elementwise import Elementwise
from glowmcu.ops.gather import Gather
from glowmcu.ops.pad import Pad
from glowmcu.ops.quant import AsQuant, Dequantize, Quantize
from glowmcu.ops.reduce import Reduce
from glowmcu.ops.reshape import Reshape
from glowmcu.ops.slice import Slice
from glowmcu.ops.softmax import Softmax
from glowmcu.ops.transpose import Transpose
from glowmcu.passes.layout import sink_transposes, transposed_bytes

TO_NHWC, TO_NCHW = (0, 2, 3, 1), (0, 3, 1, 2)


def c(data: object) -> Value:
    return constant("c", np.asarray(data, np.float32))


def nhwc(x: Value) -> Value:
    return apply(Transpose(TO_NHWC), x, name=x.name, perm=TO_NHWC).output


def nchw(x: Value, name: str = "") -> Value:
    return apply(Transpose(TO_NCHW), x, name=name or f"{x.name}_nchw").output


def fn(name: str, *inputs: Value) -> Value:
    return apply(Elementwise(name), *inputs, name=f"{name}_{inputs[0].name}").output


def sunk(inputs: list[Value], *outputs: Value) -> Graph:
    """Run the pass; every value that keeps its name must be that tensor, transposed by perm."""
    before = network(inputs, *outputs)
    after = changed(before, sink_transposes)
    assert transposed_bytes(after) <= transposed_bytes(before)
    same_tensors(before, after)
    return after


UNARY = [
    Elementwise("relu"),
    Cast(dtypes.I32),
    Pad((0, 0, 1, 2, 0, 3, 0, 1)),
    Slice((0, 3, 1, 0), (1, -1, 1, 2), (1, 2, 3, 2)),
    Reduce("mean", (2, 3), True),
    Reduce("max", (1,), True),
    Softmax(),
]


def core(x: Value, name: str) -> Value:
    """A convolution between two transposes, as importers make it."""
    w = c(weights(3, 1, 1, x.shape[1]))
    inner = apply(Conv2D(), nhwc(x), w, name=name, perm=TO_NHWC).output
    return nchw(inner, name)


@pytest.mark.parametrize("op", UNARY[:-1], ids=str)
def test_between_two_transposes(op: object) -> None:
    x = source(1, 4, 5, 6)
    y = apply(op, nchw(x), name="y").output
    assert "Transpose" not in operators(sunk([x], nhwc(y)))


def test_softmax_over_another_axis_stays() -> None:
    x = source(1, 4, 5, 6)
    y = nhwc(apply(Softmax(), nchw(x), name="y").output)
    assert operators(sunk([x], y)) == ["Transpose", "Softmax", "Transpose"]
    swap = Transpose((0, 2, 1, 3))
    y = apply(swap, apply(Softmax(), apply(swap, x).output, name="y").output).output
    assert operators(sunk([x], y)) == ["Softmax"]


def test_dense_over_the_last_axis() -> None:
    x = source(2, 4, 5, 6)
    swap = Transpose((0, 2, 1, 3))
    y = apply(Dense(), apply(swap, x).output, c(weights(3, 6)), name="y").output
    assert operators(sunk([x], apply(swap, y).output)) == ["Dense"]


def test_reduce_without_kept_dimensions() -> None:
    x = source(1, 4, 5, 6)
    y = apply(Reduce("mean", (2, 3), False), nchw(x), name="y").output
    assert operators(sunk([x], y)) == ["Reduce"]


def test_gather_and_broadcast() -> None:
    x = source(1, 4, 5, 6)
    index = constant("i", np.array([2, 0, -1], np.int64))
    y = nhwc(apply(Gather(1), nchw(x), index, name="y").output)
    assert operators(sunk([x], y)) == ["Gather"]
    y = nhwc(apply(Broadcast((3, 6, 4, 5)), nchw(x), name="y").output)
    assert operators(sunk([x], y)) == ["Broadcast"]


def test_elementwise_with_constants() -> None:
    x = source(1, 4, 5, 6)
    y = fn("mul", nchw(x), c(weights(6, 1, 1)))
    y = fn("add", c(weights(1, 6, 4, 1)), y)
    y = fn("add", y, c(0.5))
    assert operators(sunk([x], nhwc(y))) == ["mul", "add", "add"]


def test_elementwise_with_stored_constants() -> None:
    x = source(1, 4, 5, 6)
    data = np.arange(6, dtype=np.int8).reshape(6, 1, 1)
    w = constant("w", data, weights_i8(6, 1, 1))
    y = fn("mul", nchw(x), apply(Dequantize(), w).output)
    after = sunk([x], nhwc(y))
    assert operators(after) == ["Dequantize", "mul"]


def test_two_transposed_operands() -> None:
    x, z = source(1, 4, 5, 6), source(1, 4, 5, 6, name="z")
    assert operators(sunk([x, z], nhwc(fn("add", nchw(x), nchw(z))))) == ["add"]
    y = apply(Concat(1), nchw(x), nchw(z), name="y").output
    assert operators(sunk([x, z], nhwc(y))) == ["Concat"]


def test_operand_of_which_no_byte_moves() -> None:
    x, scale = source(1, 4, 5, 6), source(1, 6, 1, 1, name="scale")
    assert operators(sunk([x, scale], nhwc(fn("mul", nchw(x), scale)))) == ["Reshape", "mul"]


def test_residual_of_two_layouts_takes_the_cheaper() -> None:
    x, small = source(1, 4, 5, 6), source(1, 6, 4, 1, name="small")
    y = nhwc(fn("add", nchw(x), small))
    after = sunk([x, small], y)
    assert operators(after) == ["Transpose", "add"]
    assert transposed_bytes(after) == 4 * 24
    y = fn("add", nchw(x), source(1, 6, 4, 5, name="large"))
    assert y.producer is not None
    large = y.producer.inputs[1]
    assert large is not None
    assert operators(sunk([x, large], y)) == ["Transpose", "add"]


def test_chain_of_convolutions() -> None:
    x = source(1, 4, 5, 6)
    first = fn("relu", core(x, "a"))
    z = fn("add", core(first, "b"), first)
    after = sunk([x], core(z, "c"))
    assert operators(after).count("Transpose") == 2


def test_quantize_and_dequantize() -> None:
    x = source(1, 4, 5, 6)
    quant = Quant.per_tensor(0.05, 3)
    y = apply(Quantize(dtypes.I8, quant), nchw(x), name="y").output
    y = nhwc(apply(Dequantize(), y, name="z").output)
    assert operators(sunk([x], y)) == ["Quantize", "Dequantize"]
    plain = Value("x", TensorType(dtypes.I8, (1, 4, 5, 6)))
    y = nhwc(apply(AsQuant(quant), nchw(plain), name="y").output)
    assert operators(sunk([plain], y)) == ["AsQuant"]
    per_axis = Quant((0.1, 0.2, 0.3, 0.4), (0, 1, 2, 3), 2)
    y = nhwc(apply(Quantize(dtypes.I8, per_axis), nchw(x), name="y").output)
    after = sunk([x], y)
    assert operators(after) == ["Quantize"]
    assert after.outputs[0].type.quant == Quant(per_axis.scale, per_axis.zero_point, 1)


def test_quantized_elementwise_keeps_its_type() -> None:
    x = Value("x", i8(1, 4, 5, 6))
    types = (i8(1, 6, 4, 5, scale=0.2),)
    y = apply(Elementwise("add"), nchw(x), nchw(x), types=types, name="y").output
    after = sunk([x], nhwc(y))
    assert operators(after) == ["add"]
    assert after.outputs[0].type == i8(1, 4, 5, 6, scale=0.2)


def test_reshape_that_keeps_what_belongs_together() -> None:
    x = source(1, 4, 5, 6)
    patches = apply(Reshape((1, 6, 20)), nchw(x), name="y").output
    y = apply(Transpose((0, 2, 1)), patches, name="z").output
    assert operators(sunk([x], y)) == ["Reshape"]
    shuffle = apply(Reshape((1, 2, 3, 4, 5)), nchw(x), name="y").output
    shuffle = apply(Transpose((0, 2, 1, 3, 4)), shuffle, name="z").output
    y = nhwc(apply(Reshape((1, 6, 4, 5)), shuffle, name="w").output)
    assert operators(sunk([x], y)) == ["Reshape", "Transpose", "Reshape"]


def test_reshape_that_mixes_stays() -> None:
    x = source(1, 4, 5, 6)
    y = apply(Reshape((1, 120)), nchw(x), name="y").output
    assert operators(sunk([x], y)) == ["Transpose", "Reshape"]
    y = apply(Reshape((1, 12, 10)), nchw(x), name="y").output
    assert operators(sunk([x], y)) == ["Transpose", "Reshape"]


def test_flatten_before_dense() -> None:
    x = source(2, 4, 5, 3)
    flat = fn("relu", apply(Reshape((2, 60)), nchw(x), name="flat").output)
    y = apply(Dense(), flat, c(weights(7, 60)), c(weights(7)), name="y").output
    assert operators(sunk([x], y)) == ["relu", "Reshape", "Dense"]
    stored = constant("w", np.arange(120, dtype=np.int8).reshape(2, 60), weights_i8(2, 60))
    quant = Quant.per_tensor(0.05)
    flat = apply(Quantize(dtypes.I8, quant), flat, name="q").output
    flat = apply(Dequantize(), flat, name="d").output
    y = apply(Dense(), flat, apply(Dequantize(), stored).output, name="y").output
    assert "Transpose" not in operators(sunk([x], y))


def test_unflatten_after_dense() -> None:
    x = source(2, 5)
    data = np.arange(300, dtype=np.int16).astype(np.int8).reshape(60, 5)
    for w in (
        c(weights(60, 5)),
        apply(Dequantize(), constant("w", data, weights_i8(60, 5))).output,
    ):
        y = apply(Dense(), x, w, c(weights(60)), name="y").output
        z = nhwc(apply(Reshape((2, 3, 4, 5)), y, name="z").output)
        assert "Transpose" not in operators(sunk([x], z))
        assert "Transpose" in operators(sunk([x], z, y))
    wide = nhwc(apply(Reshape((1, 6, 4, 5)), y, name="z").output)
    assert "Transpose" in operators(sunk([x], wide))


def test_flatten_of_the_batch_too_stays() -> None:
    x = source(2, 4, 5, 3)
    moved = apply(Transpose((3, 0, 1, 2)), x, name="t").output
    flat = apply(Reshape((3, 40)), moved, name="flat").output
    y = apply(Dense(), flat, c(weights(7, 40)), name="y").output
    assert "Transpose" in operators(sunk([x], y))


def test_other_readers_see_the_same() -> None:
    x = source(1, 4, 5, 6)
    t = nchw(x, "t")
    y = fn("relu", t)
    sunk([x], nhwc(y), y, t)
