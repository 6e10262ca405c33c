"""Rows with mean 0 and variance 1: the heart of layer, group and instance normalization."""

from __future__ import annotations

import math

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.types import Array, TensorType
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder
from glowmcu.instr.instruction import In, Instruction, Out
from glowmcu.ops.base import Example, Op, f32
from glowmcu.targets.kernel import Kernel


class Standardize(Op):
    """(x - mean) / sqrt(variance + epsilon) along the last axis; the mean is 0 unless `centre`."""

    floats = (dtypes.F32,)

    epsilon: float
    centre: bool = True

    def infer(self, x: TensorType) -> TensorType:
        if x.rank == 0 or x.dtype is not dtypes.F32:
            raise TypeError(f"Standardize takes rows of float32, not {x}")
        return TensorType(x.dtype, x.shape)

    def reference(self, x: Array) -> Array:
        centred = x - x.mean(axis=-1, keepdims=True) if self.centre else x
        variance = (centred * centred).mean(axis=-1, keepdims=True)
        y: Array = centred / np.sqrt(variance + np.float32(self.epsilon))
        return y

    def lower(self, b: Builder, x: Buffer) -> Buffer:
        y = b.result()
        *rows, cols = x.type.shape
        b.emit(
            StandardizeF32(
                y=y,
                x=x,
                rows=math.prod(rows),
                cols=cols,
                epsilon=self.epsilon,
                centre=int(self.centre),
            )
        )
        return y

    examples = (
        Example((f32(3, 17),), {"epsilon": 1e-5}, tolerance=1e-5),
        Example((f32(2, 3, 8),), {"epsilon": 1e-3, "centre": False}, tolerance=1e-5),
    )


class StandardizeF32(Instruction):
    """y[r] = (x[r] - mean) / sqrt(variance + epsilon)."""

    y: Out
    x: In
    rows: int
    cols: int
    epsilon: float
    centre: int

    kernels = (Kernel("gm_standardize_f32", core=True),)
    may_share = (("y", "x"),)

    def reference(self, x: Array) -> Array:
        return Standardize(self.epsilon, bool(self.centre)).reference(x)
