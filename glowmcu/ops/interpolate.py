"""Interpolate: one axis resampled with any weights (cubic, antialiased, cropped); see Resize2D."""

from __future__ import annotations

import math

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.types import Array, TensorType
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder
from glowmcu.instr.instruction import In, Instruction, Out
from glowmcu.ops._resize_taps import Axis
from glowmcu.ops.base import Example, Op, f32
from glowmcu.targets.kernel import Kernel


class Interpolate(Op):
    """Dimension `axis` of x resampled as `how` says, mode linear or cubic; elsewhere
    `extrapolation` where the coordinate lies outside a cropped region.
    """

    floats = (dtypes.F32,)

    axis: int
    how: Axis
    mode: str = "linear"
    cubic_a: float = -0.75
    antialias: bool = False
    exclude_outside: bool = False
    extrapolation: float = 0.0

    def infer(self, x: TensorType) -> TensorType:
        if x.dtype != dtypes.F32 and x.quant is None:
            raise TypeError(f"mode '{self.mode}' works on float numbers, not on {x.dtype}")
        if x.shape[self.axis] != self.how.size:
            raise TypeError(f"axis {self.axis} of {x} has not {self.how.size} elements")
        shape = (*x.shape[: self.axis], self.how.out, *x.shape[self.axis + 1 :])
        return TensorType(dtypes.F32, shape)

    def reference(self, x: Array) -> Array:
        index, weight = self._taps()
        before, after = x.shape[: self.axis], x.shape[self.axis + 1 :]
        y = weighted_sum(x.reshape(math.prod(before), self.how.size, -1), index, weight)
        y += self._bias().reshape(-1, 1)
        return y.reshape(*before, self.how.out, *after)

    def _taps(self) -> tuple[Array, Array]:
        return self.how.taps(self.mode, self.cubic_a, self.antialias, self.exclude_outside)

    def _bias(self) -> Array:
        return self.how.outside().astype(np.float32) * np.float32(self.extrapolation)

    def lower(self, b: Builder, x: Buffer) -> Buffer:
        y, (index, weight), bias = b.result(), self._taps(), self._bias()
        b.emit(
            InterpolateF32(
                y=y,
                x=x,
                index=b.constant(index, f"{b.name}.index"),
                weight=b.constant(weight, f"{b.name}.weight"),
                bias=b.constant(bias, f"{b.name}.extrapolation") if np.any(bias) else None,
                outer=math.prod(x.type.shape[: self.axis]),
                size=self.how.size,
                inner=math.prod(x.type.shape[self.axis + 1 :]),
                out=self.how.out,
                taps=index.shape[1],
            )
        )
        return y

    examples = (
        Example(
            (f32(2, 5, 3),), {"axis": 1, "how": Axis(5, 8, 1.6), "mode": "cubic"}, tolerance=1e-6
        ),
        Example(
            (f32(1, 6, 9),),
            {"axis": 2, "how": Axis(9, 4, 4 / 9), "antialias": True},
            tolerance=1e-6,
        ),
    )


def weighted_sum(x: Array, index: Array, weight: Array) -> Array:
    """Return y[a, o, c] = sum_t x[a, index[o, t], c] * weight[o, t], in float32 and this order."""
    y = np.zeros((x.shape[0], index.shape[0], x.shape[2]), np.float32)
    for t in range(index.shape[1]):
        y += x[:, index[:, t]] * weight[:, t].reshape(-1, 1)
    return y


class InterpolateF32(Instruction):
    """y[a][o][c] = bias[o] + sum_t x[a][index[o][t]][c] * weight[o][t]."""

    y: Out
    x: In
    index: In
    weight: In
    bias: In | None = None
    outer: int
    size: int
    inner: int
    out: int
    taps: int

    kernels = (Kernel("gm_interpolate_f32", core=True),)

    @property
    def macs(self) -> int:
        return self.outer * self.out * self.inner * self.taps

    def reference(self, x: Array, index: Array, weight: Array, bias: Array | None) -> Array:
        y = weighted_sum(x.reshape(self.outer, self.size, self.inner), index, weight)
        return y if bias is None else y + bias.reshape(-1, 1)
