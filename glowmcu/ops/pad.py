"""Pad: a border of one value, or of the tensor's own elements mirrored, repeated or wrapped."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from glowmcu.core.types import Array, TensorType, quantize
from glowmcu.graph.graph import Value
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder
from glowmcu.ops._requantize import is_requantizable, requantized
from glowmcu.ops.base import Example, Op, f32, i8, onnx_op
from glowmcu.ops.onnx_node import OnnxNode
from glowmcu.ops.reshape import normal_axis
from glowmcu.ops.slice import Slice, sliced
from glowmcu.ops.strided_copy import Fill, Move, dense_strides, emit_move, part_of

MODES = ("constant", "reflect", "edge", "wrap")


class Pad(Op):
    """x with `pads` (all begins, then all ends; none negative) elements around it.

    The border holds the real `value`, or elements of x: reflect (without the edge), edge, wrap.
    """

    pads: tuple[int, ...]
    mode: str = "constant"
    value: float = 0.0

    def infer(self, x: TensorType) -> TensorType:
        if len(self.pads) != 2 * x.rank or min(self.pads, default=0) < 0:
            raise TypeError(f"pads {self.pads} do not go with {x.rank} dimensions")
        shape = tuple(s + a + e for s, (a, e) in zip(x.shape, self.pairs(), strict=True))
        return x.with_shape(shape).with_quant(None)

    def pairs(self) -> list[tuple[int, int]]:
        """(begin, end) of each dimension."""
        half = len(self.pads) // 2
        return list(zip(self.pads[:half], self.pads[half:], strict=True))

    def reference(self, x: Array) -> Array:
        if self.mode != "constant":
            return np.pad(x, self.pairs(), self.mode)  # type: ignore[call-overload,no-any-return]
        return np.pad(x, self.pairs(), constant_values=np.asarray(self.value, x.dtype))

    def integer(self, inputs: Any, outputs: Any) -> bool:
        return is_requantizable(inputs[0], outputs[0])

    def lower(self, b: Builder, x: Buffer) -> Buffer:
        y = b.result()
        part = requantized(b, x, y.type)
        if self.mode == "constant":
            self._lower_constant(b, y, part)
            return y
        for move in _bordered(x.type.shape, self.pairs(), self.mode):
            emit_move(b, y, part, move)
        return y

    def _lower_constant(self, b: Builder, y: Buffer, x: Buffer) -> None:
        """Fill the border (all of y where the border is in many pieces), then place x."""
        strides = dense_strides(y.type.shape)
        offset = sum(begin * s for (begin, _), s in zip(self.pairs(), strides, strict=True))
        move = Move(x.type.shape, dense_strides(x.type.shape), strides, 0, offset)
        value, count, total = self._stored(y.type), x.type.numel, y.type.numel
        pieces = [(0, total)]
        if count and move.is_contiguous:
            pieces = [(0, offset), (offset + count, total)]
        for start, end in pieces:
            if start < end:
                b.emit(Fill(y=part_of(b, y, start, end - start), value=value))
        emit_move(b, y, x, move)

    def _stored(self, y: TensorType) -> float:
        """The value as y stores it."""
        if y.quant is None:
            return self.value
        return int(quantize(np.asarray(self.value, np.float32), y.quant, y.dtype))

    examples = (
        Example((f32(2, 3),), {"pads": (1, 0, 2, 3)}),
        Example((f32(1, 4, 5, 2),), {"pads": (0, 1, 2, 0, 0, 1, 0, 0), "value": 1.5}),
        Example((f32(4, 5),), {"pads": (2, 3, 1, 4), "mode": "reflect"}),
        Example((f32(4, 5),), {"pads": (2, 0, 1, 7), "mode": "edge"}),
        Example((f32(2, 3),), {"pads": (3, 1, 0, 4), "mode": "wrap"}),
        Example((i8(2, 3, 2),), {"pads": (0, 1, 0, 1, 1, 0)}, output=i8(3, 5, 2), tolerance=0),
        Example(
            (i8(2, 3),),
            {"pads": (1, 1, 1, 1), "value": 0.7},
            output=i8(4, 5, scale=0.04, zero_point=9),
            tolerance=1,
        ),
        Example((i8(4, 5),), {"pads": (1, 3, 2, 1), "mode": "reflect"}, output=i8(7, 9)),
    )


def _bordered(shape: tuple[int, ...], pairs: list[tuple[int, int]], mode: str) -> list[Move]:
    """Return the moves of every combination of regular runs of the dimensions."""
    x_strides = dense_strides(shape)
    y_strides = dense_strides(tuple(s + a + e for s, (a, e) in zip(shape, pairs, strict=True)))
    runs = [_runs(s, begin, end, mode) for s, (begin, end) in zip(shape, pairs, strict=True)]
    moves = []
    for chosen in itertools.product(*runs):
        moves.append(
            Move(
                tuple(count for _, _, _, count in chosen),
                tuple(c[2] * s for c, s in zip(chosen, x_strides, strict=True)),
                y_strides,
                sum(c[1] * s for c, s in zip(chosen, x_strides, strict=True)),
                sum(c[0] * s for c, s in zip(chosen, y_strides, strict=True)),
            )
        )
    return moves


def _runs(size: int, begin: int, end: int, mode: str) -> list[tuple[int, int, int, int]]:
    """Return (position in y, position in x, step, count): the pieces of a padded dimension."""
    sources = np.pad(np.arange(size), (begin, end), mode).tolist()  # type: ignore[call-overload]
    found: list[tuple[int, int, int, int]] = []
    at = 0
    while at < len(sources):
        step = sources[at + 1] - sources[at] if at + 1 < len(sources) else 1
        count = 1
        while at + count < len(sources) and sources[at + count] == sources[at] + count * step:
            count += 1
        found.append((at, sources[at], step, count))
        at += count
    return found


@onnx_op("Pad")
def import_pad(node: OnnxNode) -> Value:
    """Modes constant, reflect, edge and wrap; negative pads crop; pads, value and axes constant."""
    x = node.value(0)
    rank = x.type.rank
    mode = node.attr("mode", "constant")
    if mode not in MODES:
        node.fail(f"mode '{mode}' is not known", hint=f"one of {', '.join(MODES)}")
    given = node.ints(1, "pads" if node.opset >= 2 else "paddings")
    if given is None:
        node.fail("there are no pads")
    axes = node.ints(3, "axes") or tuple(range(rank))
    if len(given) != 2 * len(axes):
        node.fail(f"{len(given)} pads do not go with {len(axes)} axes")
    pads = [0] * (2 * rank)
    for i, axis in enumerate(normal_axis(node, a, rank) for a in axes):
        pads[axis], pads[rank + axis] = given[i], given[len(axes) + i]
    starts = tuple(max(0, -p) for p in pads[:rank])
    ends = tuple(max(0, -p) for p in pads[rank:])
    shape = tuple(s - a - e for s, a, e in zip(x.shape, starts, ends, strict=True))
    if min(shape, default=0) < 0:
        node.fail(f"the negative pads {tuple(pads)} remove more than there is of {x.shape}")
    outer = tuple(max(0, p) for p in pads)
    if mode != "constant" and any(
        s == 0 and a + e for s, a, e in zip(shape, outer[:rank], outer[rank:], strict=True)
    ):
        node.fail(f"mode '{mode}' has no elements to pad {shape} with")
    crop = Slice(starts, (1,) * rank, shape)
    if not any(outer):
        return sliced(node, x, crop)
    inner = sliced(node, x, crop, suffix="cropped")
    value = _value(node, x.type)
    return node.apply(Pad(outer, mode, value), inner).output


def _value(node: OnnxNode, x: TensorType) -> float:
    found = node.const(2, "the padding value")
    if found is None or found.size == 0:
        value = node.attr("value", 0.0)
    else:
        value = np.asarray(found, x.dtype.numpy).reshape(-1)[0].item()
    return value if x.dtype.is_float else int(value)
