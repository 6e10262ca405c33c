"""A plugin: the operator com.example.Snake with its C, and a faster kernel for a built-in one.

Use it with `glowmcu compile model.onnx --plugin my_ops.py -o out`, or import it in Python.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import glowmcu
from glowmcu.core.types import Array, TensorType
from glowmcu.graph.graph import Value
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder
from glowmcu.instr.instruction import In, Instruction, Out
from glowmcu.ops.base import Op, onnx_op
from glowmcu.ops.dense import DenseF32
from glowmcu.ops.onnx_node import OnnxNode
from glowmcu.targets.kernel import Kernel

HERE = str(Path(__file__).resolve().parent)


# 1. An operator of one's own: its meaning, its ONNX name, its instruction.


class Snake(Op):
    """y = x + sin(alpha x)^2 / alpha."""

    alpha: float = 1.0

    def infer(self, x: TensorType) -> TensorType:
        """The result has the type of x, as real numbers."""
        return x.with_quant(None)

    def reference(self, x: Array) -> Array:
        """The meaning, with numpy."""
        alpha = x.dtype.type(self.alpha)
        return x + np.sin(alpha * x) ** 2 / alpha

    def lower(self, b: Builder, x: Buffer) -> Buffer:
        """One instruction computes it."""
        y = b.result()
        b.emit(SnakeF32(y=y, x=x, count=x.type.numel, alpha=self.alpha))
        return y


@onnx_op("Snake", domain="com.example")
def import_snake(node: OnnxNode) -> Value:
    """x + sin(alpha x)^2 / alpha; `alpha` is an attribute."""
    return node.apply(Snake(float(node.attr("alpha", 1.0))), node.value(0)).output


class SnakeF32(Instruction):
    """Operands first, then attributes: the members of `snake_f32_t` in snake_f32.h."""

    y: Out
    x: In
    count: int
    alpha: float

    kernels = (Kernel("snake_f32", folder=HERE),)
    may_share = (("y", "x"),)  # y may lie where x is

    def reference(self, x: Array) -> Array:
        """What the kernel computes, with numpy."""
        alpha = np.float32(self.alpha)
        return x + np.sin(alpha * x) ** 2 / alpha


# 2. A kernel of one's own for an instruction that glowmcu has: it is tried before the others.


def _accepts(i: Any) -> str:
    return "" if i.rows == 1 and i.bias is not None else "wants one row and a bias"


glowmcu.register_kernel(DenseF32, Kernel("one_row_f32", folder=HERE, accepts=_accepts))
