"""Transposed convolution over images, NHWC: every input spreads over a window of the output."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.types import Array, Quant, TensorType
from glowmcu.errors import DoesNotFitError
from glowmcu.graph.graph import Value
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder
from glowmcu.ops._linear import (
    clamp_range,
    fold_linear,
    integer_linear,
    narrowed,
    of_one_type,
    require_real,
)
from glowmcu.ops._window import Pads, Pair, Sliding, Window, extent, kernel_of, stated
from glowmcu.ops.base import Example, Op, bias_i32, f32, i8, i16, onnx_op, weights_i8
from glowmcu.ops.conv_transpose2d import ConvTransposeF32, ConvTransposeS8, spread
from glowmcu.ops.reshape import Reshape
from glowmcu.ops.transpose import Transpose, to_nchw, to_nhwc


def _quantized(x: TensorType, w: TensorType, y: TensorType, **attributes: Any) -> Example:
    return Example((x, w, bias_i32(x, w)), attributes, (1, 2), y, tolerance=1)


class ConvTranspose2D(Op):
    """x [N, H, W, C], w [O, KH, KW, C / groups], optional b [O] -> [N, H', W', O], clamped.

    H' = (H - 1) * stride + window - pads + output_padding. Output channel o belongs to group
    o // (O / groups), as in a convolution; ONNX has the input channels first in w.
    """

    floats = (dtypes.F32,)

    strides: Pair = (1, 1)
    pads: Pads = (0, 0, 0, 0)
    dilations: Pair = (1, 1)
    output_padding: Pair = (0, 0)
    groups: int = 1
    clamp: tuple[float, float] | None = None

    def _output(self, size: tuple[int, ...], kernel: tuple[int, ...]) -> Pair:
        h, w = (
            (size[a] - 1) * self.strides[a]
            + extent(kernel[a], self.dilations[a])
            - self.pads[a]
            - self.pads[a + 2]
            + self.output_padding[a]
            for a in (0, 1)
        )
        return h, w

    def _window(self, x: TensorType, w: TensorType, y: TensorType) -> Window:
        """Return how the window lies: it slides over y, in steps of an element of x."""
        size, output, kernel = ((t.shape[1], t.shape[2]) for t in (x, y, w))
        return Window(size, output, kernel, self.strides, self.dilations, self.pads)

    def infer(self, x: TensorType, w: TensorType, b: TensorType | None = None) -> TensorType:
        if x.rank != 4 or w.rank != 4:
            raise TypeError(f"x and w must have four dimensions, not {x.rank} and {w.rank}")
        if x.shape[3] != w.shape[3] * self.groups or w.shape[0] % self.groups:
            raise TypeError(f"x {x} and the weights {w} do not divide into {self.groups} groups")
        if b is not None and b.shape != (w.shape[0],):
            raise TypeError(f"the bias has shape {b.shape}, the weights {w.shape[0]} channels")
        output = self._output(x.shape[1:3], w.shape[1:3])
        if min(output) < 1:
            raise TypeError(f"the pads leave an output of {output[0]} x {output[1]}")
        return TensorType(x.dtype, (x.shape[0], *output, w.shape[0]))

    def reference(self, x: Array, w: Array, b: Array | None = None) -> Array:
        output = self._output(x.shape[1:3], w.shape[1:3])
        start = (self.pads[0], self.pads[1])
        y = spread(x, w, self.groups, self.strides, self.dilations, start, output)
        y = y if b is None else y + b
        return y if self.clamp is None else np.clip(y, *self.clamp).astype(x.dtype)

    def integer(self, inputs: Any, outputs: Any) -> bool:
        return integer_linear(inputs, outputs)

    def lower(self, b: Builder, x: Buffer, w: Buffer, bias: Buffer | None = None) -> Buffer:
        y = b.result()
        geometry: dict[str, Any] = self._window(x.type, w.type, y.type).attributes(
            x.type.shape[0]
        ) | {
            "groups": self.groups,
            "channels": w.type.shape[3],
            "out_channels": w.type.shape[0] // self.groups,
        }
        quant = x.type.quant
        if quant is None:
            low, high = self.clamp or (-math.inf, math.inf)
            b.emit(ConvTransposeF32(y=y, x=x, w=w, bias=bias, **geometry, low=low, high=high))
            return y
        # which taps reach an output depends on where it lies: the zero point cannot be folded
        one = of_one_type(b, x, y)
        assert one.x.type.quant is not None
        symmetric = one.x.type.with_quant(Quant.per_tensor(quant.scale[0]))
        fill = one.x.type.quant.zero_point[0]
        reach = one.reach or abs(fill) - x.type.dtype.low
        folded = fold_linear(b, symmetric, w, bias, one.y.type, 0, reach)
        if folded.is_wide:
            raise DoesNotFitError(
                f"the sums of '{b.name}' could pass 2^31",
                hint="keep that layer in float, or quantize it to int8",
            )
        low_q, high_q = clamp_range(self.clamp, y.type)
        b.emit(
            ConvTransposeS8(
                y=one.y,
                x=one.x,
                **geometry,
                **folded.attributes(),
                fill=fill,
                low=low_q,
                high=high_q,
            )
        )
        narrowed(b, y, one.y)
        return y

    examples = (
        Example((f32(1, 3, 4, 2), f32(5, 3, 3, 2), f32(5)), {"strides": (2, 2)}, (1, 2)),
        Example(
            (f32(2, 4, 3, 6), f32(4, 2, 3, 3), None),
            {
                "strides": (3, 2),
                "pads": (1, 0, 0, 2),
                "dilations": (2, 1),
                "output_padding": (1, 1),
                "groups": 2,
                "clamp": (-1.0, 1.0),
            },
            (1,),
        ),
        Example((f32(1, 4, 2, 1), f32(1, 18, 1, 1), f32(1)), {"pads": (3, 0, 2, 0)}, (1, 2)),
        Example((f32(1, 5, 5, 3), f32(3, 1, 1, 3), f32(3)), {"strides": (2, 3)}),
        _quantized(
            i8(1, 3, 4, 2), weights_i8(5, 3, 3, 2), i8(1, 7, 9, 5, scale=0.08), strides=(2, 2)
        ),
        _quantized(
            i8(2, 4, 3, 6, zero_point=-128),
            weights_i8(4, 2, 3, 3),
            i8(2, 12, 6, 4, zero_point=11),
            strides=(3, 2),
            pads=(1, 0, 0, 2),
            dilations=(2, 1),
            output_padding=(1, 1),
            groups=2,
            clamp=(-1.0, 2.0),
        ),
        _quantized(i8(1, 4, 2, 1), weights_i8(1, 18, 1, 1), i8(1, 16, 2, 1), pads=(3, 0, 2, 0)),
        _quantized(
            i16(1, 3, 4, 2, zero_point=9),
            weights_i8(5, 3, 3, 2),
            i16(1, 7, 9, 5, scale=3e-4),
            strides=(2, 2),
        ),
    )


def _resolved(
    node: Any, spatial: tuple[int, ...], kernel: tuple[int, ...]
) -> tuple[Sliding, list[int]]:
    """Return the window with explicit pads, and output_padding, of an ONNX ConvTranspose."""
    rank = len(spatial)
    found, mode = stated(node, rank)
    extra = [int(v) for v in node.attr("output_padding") or (0,) * rank]
    wanted = node.attr("output_shape")
    if len(extra) != rank or (wanted is not None and len(wanted) not in (rank, rank + 2)):
        node.fail("output_padding or output_shape has another number of dimensions than the input")
    if wanted is not None:
        outputs = [int(v) for v in wanted][-rank:]
    elif mode.startswith("SAME"):
        outputs = [n * s for n, s in zip(spatial, found.strides, strict=True)]
    else:
        return found, extra
    begins, ends = [], []
    for axis, output in enumerate(outputs):
        span = extent(kernel[axis], found.dilations[axis])
        natural = (spatial[axis] - 1) * found.strides[axis] + span + extra[axis]
        total = max(natural - output, 0)
        extra[axis] += max(output - natural, 0)
        small, large = total // 2, total - total // 2
        begins.append(small if mode == "SAME_UPPER" else large)
        ends.append(large if mode == "SAME_UPPER" else small)
    return replace(found, begins=tuple(begins), ends=tuple(ends)), extra


def _output_channels_first(node: Any, w: Value, groups: int) -> Value:
    """Return ONNX weights [C, O / groups, ...] as [O, ..., C / groups]."""
    spatial = tuple(range(2, w.type.rank))
    if groups == 1:
        return node.apply(Transpose((1, *spatial, 0)), w, suffix="w").output  # type: ignore[no-any-return]
    c, o, *kernel = w.shape
    split = node.apply(Reshape((groups, c // groups, o, *kernel)), w, suffix="w.split").output
    perm = (0, 2, *(axis + 1 for axis in spatial), 1)
    moved = node.apply(Transpose(perm), split, suffix="w.moved").output
    shape = (groups * o, *kernel, c // groups)
    return node.apply(Reshape(shape), moved, suffix="w").output  # type: ignore[no-any-return]


@onnx_op("ConvTranspose")
def import_conv_transpose(node: Any) -> Value:
    """One and two spatial dimensions, every attribute."""
    x, w, b = node.value(0), node.value(1), node.optional(2)
    require_real(node, x, w, b)
    kernel = kernel_of(node, w, "a transposed convolution", 2)
    spatial = len(kernel)
    groups = int(node.attr("group", 1))
    if w.shape[0] % groups:
        node.fail(f"{w.shape[0]} input channels do not divide into {groups} groups")
    window, extra = _resolved(node, x.shape[2:], kernel)
    strides, dilations, pads = window.last_two()
    e0, e1 = (0, *extra)[-2:]
    op = ConvTranspose2D(strides, pads, dilations, (e0, e1), groups)
    weights = _output_channels_first(node, w, groups)
    image = to_nhwc(node, x)
    perm = (0, *range(2, spatial + 2), 1)
    if spatial == 2:
        return to_nchw(node, node.apply(op, image, weights, b, perm=perm).output)
    (n, length, c), (o, k, i) = image.shape, weights.shape
    image = node.apply(Reshape((n, 1, length, c)), image, suffix="x").output
    weights = node.apply(Reshape((o, 1, k, i)), weights, suffix="w2d").output
    y = node.apply(op, image, weights, b, suffix="y").output
    return to_nchw(node, node.apply(Reshape((n, *y.shape[2:])), y, perm=perm).output)
