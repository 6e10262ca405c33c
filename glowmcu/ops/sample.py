"""Sample: values of images at coordinates computed at run time, nearest, linear or cubic."""

from __future__ import annotations

import itertools
import math

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.types import Array, TensorType
from glowmcu.graph.graph import Value
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder
from glowmcu.instr.instruction import In, Instruction, Out
from glowmcu.ops.base import INNER, Example, Op, f32, onnx_op
from glowmcu.ops.onnx_node import OnnxNode
from glowmcu.targets.kernel import Kernel

TAPS = {"nearest": 1, "linear": 2, "cubic": 4}
PADDINGS = ("zeros", "border", "reflection")


class Sample(Op):
    """x [n, c, d...] at coordinates [n, p, len(d)] (in elements of d) -> [n, c, p].

    Outside of x are zeros, the border or a reflection, at the centres (`corners`) or edges of the
    outermost elements.
    """

    floats = (dtypes.F32,)

    mode: str = "linear"
    padding: str = "zeros"
    corners: bool = False

    def infer(self, x: TensorType, at: TensorType) -> TensorType:
        dims = x.rank - 2
        if not 1 <= dims <= 3 or at.rank != 3 or at.shape[0] != x.shape[0] or at.shape[2] != dims:
            raise TypeError(f"coordinates {at} do not fit {x}")
        if {x.real().dtype, at.real().dtype} != {dtypes.F32}:
            raise TypeError(f"float32 can be sampled, not {x.dtype} at {at.dtype}")
        return TensorType(dtypes.F32, (x.shape[0], x.shape[1], at.shape[1]))

    def reference(self, x: Array, at: Array) -> Array:
        return sample(x, at, TAPS[self.mode], PADDINGS.index(self.padding), self.corners)

    def lower(self, b: Builder, x: Buffer, at: Buffer) -> Buffer:
        y = b.result()
        if not y.type.numel:
            return b.view(x, y.type)
        depth, height, width = (*x.type.shape[2:], 1, 1)[:3]
        b.emit(
            SampleF32(
                y=y,
                x=x,
                at=at,
                batch=x.type.shape[0],
                channels=x.type.shape[1],
                points=at.type.shape[1],
                dims=x.type.rank - 2,
                size=(depth, height, width),
                taps=TAPS[self.mode],
                padding=PADDINGS.index(self.padding),
                corners=int(self.corners),
            )
        )
        return y

    examples = (
        *(
            Example(
                (f32(2, 3, 4, 5), f32(2, 7, 2)),
                {"mode": mode, "padding": padding, "corners": padding == "reflection"},
                low=-3.0,
                high=6.0,
                tolerance=1e-5,
            )
            for mode, padding in itertools.product(TAPS, PADDINGS)
        ),
        Example((f32(1, 2, 3, 4, 2), f32(1, 5, 3)), {}, low=-1.0, high=3.0, tolerance=1e-5),
    )


@onnx_op("Sample", domain=INNER)
def import_sample(node: OnnxNode) -> Value:
    """What GridSample, RoiAlign and DeformConv are made of."""
    op = Sample(node.attr("mode"), node.attr("padding"), bool(node.attr("corners")))
    return node.apply(op, node.value(0), node.value(1)).output


class SampleF32(Instruction):
    """y[n][c][i] = x[n][c] interpolated at at[n][i]."""

    y: Out
    x: In
    at: In
    batch: int
    channels: int
    points: int
    dims: int
    size: tuple[int, int, int]
    taps: int
    padding: int
    corners: int

    kernels = (Kernel("gm_sample_f32", core=True),)

    @property
    def macs(self) -> int:
        return self.batch * self.channels * self.points * int(self.taps**self.dims)

    def reference(self, x: Array, at: Array) -> Array:
        shape = (self.batch, self.channels, *self.size[: self.dims])
        places = at.reshape(self.batch, self.points, self.dims)
        return sample(x.reshape(shape), places, self.taps, self.padding, bool(self.corners))


def _reflected(x: Array, low: float, high: float) -> Array:
    span = np.float32(high - low)
    if span <= 0:
        return np.full_like(x, low)
    beyond = np.where(x < low, low - x, np.where(x > high, x - high, 0)).astype(np.float32)
    turns = np.floor(beyond / span)
    rest = beyond - turns * span
    from_low = (x < low) != (turns % 2 != 0)
    return np.where(beyond == 0, x, np.where(from_low, low + rest, high - rest))


def _inside(x: Array, size: int, padding: int, corners: bool) -> Array:
    edge, last = 0.0 if corners else 0.5, size - 1
    if padding == 2:
        return _reflected(x, -edge, last + edge).astype(np.float32)
    if padding == 1:
        return np.where(x < -edge, 0, np.where(x > last + edge, last, x)).astype(np.float32)
    return x


def _weight(x: Array, tap: int, taps: int) -> Array:
    if taps == 1:
        return np.ones_like(x)
    if taps == 2:
        return 1 - x if tap == 0 else x
    a = np.float32(-0.75)
    away = x if tap < 2 else 1 - x
    if tap in (1, 2):
        return np.asarray(((a + 2) * away - (a + 3)) * away * away + 1)
    far = away + 1
    return np.asarray(((a * far - 5 * a) * far + 8 * a) * far - 4 * a)


def sample(x: Array, at: Array, taps: int, padding: int, corners: bool) -> Array:
    """Return x [n, c, d...] at the coordinates [n, p, len(d)]."""
    sizes = x.shape[2:]
    places: list[list[Array]] = []
    weights: list[list[Array]] = []
    for axis, size in enumerate(sizes):
        exact = np.rint(at[..., axis]) if taps == 1 else at[..., axis]
        c = _inside(exact.astype(np.float32), size, padding, corners)
        first = c if taps == 1 else np.floor(c)
        near = [first + np.float32(t - 1 if taps == 4 else t) for t in range(taps)]
        found = [_inside(n, size, padding, corners) for n in near]
        outside = [(f < 0) | (f > size - 1) if padding == 0 else f != f for f in found]
        index = [np.nan_to_num(np.clip(f, 0, size - 1)).astype(np.int64) for f in found]
        places.append(index)
        weights.append([np.where(o, 0, _weight(c - first, t, taps)) for t, o in enumerate(outside)])
    flat = x.reshape(*x.shape[:2], math.prod(sizes))
    y = np.zeros((*x.shape[:2], at.shape[1]), np.float32)
    for combination in itertools.product(range(taps), repeat=len(sizes)):
        offset = np.zeros(at.shape[:2], np.int64)
        product = np.ones(at.shape[:2], np.float32)
        for axis, tap in enumerate(combination):
            offset = offset * sizes[axis] + places[axis][tap]
            product = product * weights[axis][tap]
        y += np.take_along_axis(flat, offset[:, None, :], 2) * product[:, None, :]
    return y.astype(np.float32)
