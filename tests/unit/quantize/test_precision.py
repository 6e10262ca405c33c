"""Precision per layer: int16 activations beside int8, and what lies between them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from test_quantize import fn, network, run_real, samples, through_passes, weights

from glowmcu.core import dtypes
from glowmcu.errors import OptionError
from glowmcu.graph.graph import Graph, Value, apply
from glowmcu.ops.base import f32
from glowmcu.ops.concat import Concat
from glowmcu.ops.conv import Conv2D
from glowmcu.ops.dense import Dense
from glowmcu.ops.pool import Pool2D
from glowmcu.ops.quant import Quantize
from glowmcu.ops.reshape import Reshape
from glowmcu.quantize import Settings, quantize
from glowmcu.quantize.assign import activation_quant
from glowmcu.quantize.ranges import Range

INT16 = Settings(precision="int16", edges=dtypes.I16)


def widths(graph: Graph) -> dict[str, str]:
    """The type in which every value with a name is stored as integers, by that name."""
    stored = (n.output for n in graph.nodes() if isinstance(n.op, Quantize))
    return {v.name: str(v.type.dtype) for v in (*graph.inputs, *stored) if v.type.quant}


def distance(before: Graph, after: Graph) -> float:
    errors = [run_real(before, s) - run_real(after, s) for s in samples(before, 6, seed=9)]
    return float(np.sqrt(np.square(errors).mean()))


def test_all_of_int16() -> None:
    before = through_passes(network())
    narrow = through_passes(quantize(before, samples(before)))
    wide = through_passes(quantize(before, samples(before), INT16))
    assert {v.type.dtype for v in (*wide.inputs, *wide.outputs)} == {dtypes.I16}
    assert not {t.dtype for n in wide.nodes() for t in n.types} & {dtypes.I8}
    assert distance(before, wide) < distance(before, narrow) / 2
    for node in wide.nodes():
        quants = [t.quant for t in node.types if t.dtype == dtypes.I16 and t.quant]
        assert all(q.zero_point == (0,) and q.axis is None for q in quants)


def layers() -> Graph:
    """Three layers with a movement between them; two branches joined."""
    x = Value("x", f32(1, 4, 4, 3))
    op = Conv2D(pads=(1, 1, 1, 1), clamp=(0.0, math.inf))
    a = apply(op, x, weights(4, 3, 3, 3), name="a").output
    b = apply(op, a, weights(4, 3, 3, 4), name="b").output
    pooled = apply(Pool2D("max", (2, 2), (2, 2)), b, name="pooled").output
    other = apply(Pool2D("max", (2, 2), (2, 2)), a, name="other").output
    joined = apply(Concat(3), other, pooled, name="joined").output
    flat = apply(Reshape((1, 32)), joined, name="flat").output
    y = apply(Dense(), flat, weights(5, 32), name="y").output
    return Graph("layers", (x,), (y,), ("y",))


def test_one_layer_of_int16() -> None:
    before = layers()
    data = samples(before)
    found = widths(quantize(before, data, Settings(keep_int16=("b",))))
    assert found["x"] == found["a"] == "i8"
    assert found["a.i16"] == found["b"] == "i16"
    # what joins them is as wide as the wider one; the next layer reads int8
    assert found["joined"] == "i16"
    assert found["flat.i8"] == found["y"] == "i8"
    after = through_passes(quantize(before, data, Settings(keep_int16=("b",))))
    narrow = through_passes(quantize(before, data))
    assert distance(before, after) < 1.1 * distance(before, narrow)


def test_an_input_is_as_wide_as_its_reader() -> None:
    before = layers()
    found = widths(quantize(before, samples(before), Settings(keep_int16=("a", "y"))))
    assert (found["x"], found["y"]) == ("i16", "i16")
    assert (found["a"], found["a.i8"], found["b"]) == ("i16", "i8", "i8")


def test_float_in_a_network_of_int16() -> None:
    before = layers()
    settings = Settings(precision="int16", edges=dtypes.I16, keep_float=("a", "y"))
    found = widths(quantize(before, samples(before), settings))
    assert (found["x"], found["y"], found["a"]) == ("i16", "i16", "i16")


def test_between_kept_layers_nothing_is_stored() -> None:
    x = Value("x", f32(1, 6))
    a = apply(Dense(), x, weights(6, 6), name="a").output
    b = apply(Dense(), a, weights(6, 6, seed=2), name="b").output
    y = apply(Dense(), fn("tanh", b), weights(6, 6, seed=3), name="y").output
    graph = Graph("net", (x,), (y,), ("y",))
    found = widths(quantize(graph, samples(graph), Settings(keep_float=("a", "b"))))
    assert "a" not in found


def test_names_that_do_not_exist() -> None:
    graph = layers()
    with pytest.raises(OptionError, match="no layer 'c' to keep in int16"):
        quantize(graph, samples(graph), Settings(keep_int16=("c",)))


def test_fixed_ranges_of_int16() -> None:
    x = Value("x", f32(1, 6))
    graph = Graph("net", (x,), (fn("sigmoid", x), fn("tanh", x)), ("a", "b"))
    after = quantize(graph, samples(graph), INT16)
    for value in after.outputs:
        assert value.type.quant is not None
        assert value.type.quant.scale == (1 / 32768,)


def test_int16_has_room_for_more_than_was_seen() -> None:
    quant = activation_quant(Range(-1.0, 3.0), dtype=dtypes.I16)
    assert quant.zero_point == (0,)
    assert quant.scale[0] * 32767 == pytest.approx(6.0)
