from __future__ import annotations

import itertools

import numpy as np

from glowmcu.core.types import Quant, type_of
from glowmcu.graph.graph import Value
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder
from glowmcu.ops.base import f32, i8
from glowmcu.ops.onnx_node import OnnxNode
from glowmcu.ops.transpose import Transpose, to_nchw, to_nhwc


def test_every_order_of_four_dimensions() -> None:
    x = np.random.default_rng(0).standard_normal((2, 1, 3, 4)).astype(np.float32)
    for perm in itertools.permutations(range(4)):
        op = Transpose(perm)
        assert op.infer(type_of(x)) == type_of(np.transpose(x, perm))
        buffer = Buffer("x", type_of(x), "activation")
        result = Buffer("y", op.infer(type_of(x)), "activation")
        b = Builder("n", results=(result,))
        y = op.lower(b, buffer)
        expected = np.transpose(x, perm)
        if not b.instructions:
            assert y.base is buffer
            np.testing.assert_array_equal(x.reshape(y.type.shape), expected)
        else:
            found = b.instructions[0].reference(x)
            np.testing.assert_array_equal(found.reshape(y.type.shape), expected)


def test_quantization_per_channel_moves_with_its_axis() -> None:
    x = i8(2, 3).with_quant(Quant((0.1, 0.2, 0.3), (0, 0, 0), 1))
    y = Transpose((1, 0)).infer(x)
    assert y.quant is not None and y.quant.axis == 0


def test_layout_changes_keep_the_names_of_tensors() -> None:
    x = Value("image", f32(1, 3, 8, 6))
    node = OnnxNode("Conv", "conv", 13, (x,), ("out",), {})
    inner = to_nhwc(node, x)
    assert (inner.name, inner.shape, inner.perm) == ("image", (1, 8, 6, 3), (0, 2, 3, 1))
    outer = to_nchw(node, inner)
    assert (outer.name, outer.shape, outer.perm) == ("out", (1, 3, 8, 6), None)
    assert to_nchw(node, inner, suffix="nchw").name == "out.nchw"
