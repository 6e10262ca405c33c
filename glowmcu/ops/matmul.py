"""Matrix product of two tensors that are computed at run time, numpy broadcasting; ONNX Gemm."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.dtypes import DType
from glowmcu.core.fixedpoint import multiplier_of, requantize
from glowmcu.core.types import Array, TensorType
from glowmcu.graph.graph import Value
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder
from glowmcu.instr.instruction import In, Instruction, Out
from glowmcu.ops._linear import for_type, is_stored, narrowed, require_real, wide_result, widened
from glowmcu.ops.base import Example, Op, f32, f64, i8, i16, onnx_op
from glowmcu.ops.contract import COMPUTED, emit_product
from glowmcu.ops.elementwise import Elementwise
from glowmcu.ops.map import collapse
from glowmcu.ops.reshape import Reshape
from glowmcu.ops.strided_copy import Move, dense_strides, emit_move
from glowmcu.ops.transpose import Transpose
from glowmcu.targets.kernel import Kernel

I32_MATRIX = TensorType(dtypes.I32, (7, 7))


class MatMul(Op):
    """a [..., M, K] . b [..., K, N] -> [..., M, N], the leading dimensions broadcast.

    dtype  what integers are taken to and summed up in, wrapping; None: the type of a
    """

    floats = (dtypes.F32, dtypes.F64)

    dtype: DType | None = None

    def infer(self, a: TensorType, b: TensorType) -> TensorType:
        if a.rank < 2 or b.rank < 2 or a.shape[-1] != b.shape[-2]:
            raise TypeError(f"matrices of shapes {a.shape} and {b.shape} have no product")
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        return TensorType(self.dtype or a.dtype, (*batch, a.shape[-2], b.shape[-1]))

    def reference(self, a: Array, b: Array) -> Array:
        dtype = self.dtype.numpy if self.dtype else a.dtype
        y: Array = np.matmul(a.astype(dtype), b.astype(dtype))
        return y

    def integer(self, inputs: Any, outputs: Any) -> bool:
        tensors = (*inputs, *outputs)
        if not all(map(is_stored, tensors)):
            return False
        return _scaling(tensors, inputs[0].shape[-1]) is not None

    def lower(self, b: Builder, a: Buffer, c: Buffer) -> Buffer:
        y = b.result()
        if y.type.dtype in COMPUTED:
            emit_product(b, y, a, c)
            return y
        if a.type.quant is not None and dtypes.I16 in (a.type.dtype, c.type.dtype, y.type.dtype):
            a, c = widened(b, a), widened(b, c)
        batch = y.type.shape[:-2]
        rows, inner, cols = a.type.shape[-2], a.type.shape[-1], c.type.shape[-1]
        sizes, steps = collapse(batch, [a.type.shape[:-2], c.type.shape[:-2]])
        if len(sizes) > 2:
            a, c = _expanded(b, a, batch), _expanded(b, c, batch)
            sizes, steps = [math.prod(batch)], [[1], [1]]
        a_steps, c_steps = ([0, 0, *s][-2:] for s in steps)
        if len(sizes) == 1 and a_steps[1] == 1 and c_steps[1] == 0:
            # one right-hand side for the whole batch: a taller left-hand side
            rows, sizes, a_steps = rows * sizes[0], [], [0, 0]
        outer, middle = [1, 1, *sizes][-2:]
        shape: dict[str, int] = {
            "outer": outer,
            "middle": middle,
            "rows": rows,
            "inner": inner,
            "cols": cols,
            "a_outer": a_steps[0] * a.type.shape[-2] * inner,
            "a_middle": a_steps[1] * a.type.shape[-2] * inner,
            "b_outer": c_steps[0] * inner * cols,
            "b_middle": c_steps[1] * inner * cols,
        }
        if a.type.quant is None:
            b.emit(MatMulF32(y=y, a=a, b=c, **shape))
        else:
            _emit_stored(b, y, a, c, shape)
        return y

    examples = (
        Example((f32(3, 4), f32(4, 5))),
        Example((f32(2, 3, 7), f32(7, 2))),
        Example((f32(5, 2), f32(3, 2, 9))),
        Example((f32(2, 1, 3, 4), f32(5, 4, 2))),
        Example((f32(2, 1, 2, 3, 4), f32(3, 1, 4, 1))),
        Example((f64(3, 4), f64(4, 5)), tolerance=1e-15),
        Example((f64(2, 1, 3, 4), f64(5, 4, 1)), tolerance=1e-15),
        Example((I32_MATRIX, I32_MATRIX), low=-(2.0**31), high=2.0**31),
        Example(
            (TensorType(dtypes.U8, (3, 5)), TensorType(dtypes.I8, (2, 5, 6))),
            {"dtype": dtypes.I32},
            low=-128,
            high=255,
        ),
        Example((i8(2, 3, 7), i8(2, 7, 5, zero_point=4)), output=i8(2, 3, 5), tolerance=1),
        Example((i8(1, 9), i8(9, 1)), output=i8(1, 1, scale=0.02), tolerance=1),
        *(
            Example((a, c), output=y, tolerance=1)
            for a, c, y in (
                (i16(2, 3, 7), i16(2, 7, 5, scale=2e-4), i16(2, 3, 5, scale=9e-4)),
                (i16(3, 7, zero_point=5), i16(7, 5, zero_point=-9), i16(3, 5, zero_point=3)),
                (i8(3, 7), i16(7, 4), i16(3, 4, scale=9e-4)),
                (i16(3, 7), i8(7, 4), i8(3, 4)),
            )
        ),
    )


def _expanded(b: Builder, x: Buffer, batch: tuple[int, ...]) -> Buffer:
    """Return x with its leading dimensions written out."""
    shape = (*batch, *x.type.shape[-2:])
    if x.type.shape == shape:
        return x
    padded = (1,) * (len(shape) - x.type.rank) + x.type.shape
    steps = tuple(0 if n == 1 else s for n, s in zip(padded, dense_strides(padded), strict=True))
    y = b.activation(x.type.with_shape(shape))
    emit_move(b, y, x, Move(shape, steps, dense_strides(shape)))
    return y


def _scaling(types: tuple[TensorType, ...], inner: int) -> tuple[int, int] | None:
    """Return (multiplier, shift) of a product of stored a, b -> y; None where sums are too large.

    With int16, sums have 64 bits; they are shifted right where they could pass 2^31.
    """
    a, c, y = types
    assert a.quant and c.quant and y.quant
    scale = a.quant.scale[0] * c.quant.scale[0] / y.quant.scale[0]
    bits = max(t.dtype.bits for t in types)
    bound = inner << 2 * bits
    right = max(0, bound.bit_length() - 31 + 1) if bits == 16 else 0
    if scale * 2.0**right >= 2.0**14:
        return None
    multiplier, left = multiplier_of(scale * 2.0**right)
    fits = left == 0 if right else bound << left < 1 << 31
    return (multiplier, left - right) if fits else None


def _emit_stored(b: Builder, y: Buffer, a: Buffer, c: Buffer, shape: dict[str, int]) -> None:
    assert a.type.quant and c.type.quant and y.type.quant
    found = _scaling((a.type, c.type, y.type), shape["inner"])
    assert found is not None
    result = y if a.type.dtype is dtypes.I8 else wide_result(b, y)
    b.emit(
        MatMulS8(
            y=result,
            a=a,
            b=c,
            **shape,
            a_zero=a.type.quant.zero_point[0],
            b_zero=c.type.quant.zero_point[0],
            multiplier=found[0],
            shift=found[1],
            zero_point=y.type.quant.zero_point[0],
            low=y.type.dtype.low,
            high=y.type.dtype.high,
        )
    )
    narrowed(b, y, result)


class _Product(Instruction):
    """Base of the products: y[o][m] = a[o * a_outer + m * a_middle] . b[...], row-major."""

    outer: int
    middle: int
    rows: int
    inner: int
    cols: int
    a_outer: int
    a_middle: int
    b_outer: int
    b_middle: int

    @property
    def macs(self) -> int:
        return self.outer * self.middle * self.rows * self.inner * self.cols

    def product(self, a: Array, b: Array) -> Array:
        """Return [outer, middle, rows, cols] in the type of a."""

        def matrices(x: Array, outer: int, middle: int, rows: int, cols: int) -> Array:
            shape = (self.outer, self.middle, rows, cols)
            flat = np.ascontiguousarray(x).reshape(-1)
            steps = [s * flat.itemsize for s in (outer, middle, cols, 1)]
            return np.lib.stride_tricks.as_strided(flat, shape, steps)

        left = matrices(a, self.a_outer, self.a_middle, self.rows, self.inner)
        right = matrices(b, self.b_outer, self.b_middle, self.inner, self.cols)
        y: Array = left @ right
        return y


class MatMulF32(_Product):
    """The product of float matrices."""

    y: Out
    a: In
    b: In

    kernels = (Kernel("gm_matmul_f32", core=True),)

    def reference(self, a: Array, b: Array) -> Array:
        return self.product(a, b)


class MatMulS8(_Product):
    """y = requantize(sum (a - a_zero) * (b - b_zero)), int8 or int16."""

    y: Out
    a: In
    b: In
    a_zero: int
    b_zero: int
    multiplier: int
    shift: int
    zero_point: int
    low: int
    high: int

    kernels = (
        *for_type(dtypes.I8, Kernel("gm_matmul_s8", core=True)),
        *for_type(dtypes.I16, Kernel("gm_matmul_s16", core=True)),
    )

    def reference(self, a: Array, b: Array) -> Array:
        left, right = a.astype(np.float64) - self.a_zero, b.astype(np.float64) - self.b_zero
        acc = self.product(left, right).astype(np.int64)
        y = requantize(acc, self.multiplier, self.shift, self.zero_point, self.low, self.high)
        return y.astype(self.y.type.dtype.numpy)


@onnx_op("MatMul")
def import_matmul(node: Any) -> Value:
    """numpy.matmul of any ranks; a constant second operand becomes a dense layer."""
    a, b = node.value(0), node.value(1)
    if a.type.rank == 0 or b.type.rank == 0:
        node.fail("an operand is a scalar")
    require_real(node, a, b, also=COMPUTED)
    return product(node, a, b)


def product(node: Any, a: Value, b: Value, dtype: DType | None = None, suffix: str = "") -> Value:
    """Apply numpy.matmul, vectors included; dtype as in MatMul."""
    op = MatMul(dtype)
    if a.type.rank > 1 and b.type.rank > 1:
        return node.apply(op, a, b, suffix=suffix).output  # type: ignore[no-any-return]
    left = a if a.type.rank > 1 else node.apply(Reshape((1, *a.shape)), a, suffix="a").output
    right = b if b.type.rank > 1 else node.apply(Reshape((*b.shape, 1)), b, suffix="b").output
    y = node.apply(op, left, right, suffix="y").output
    shape = list(y.shape)
    if b.type.rank == 1:
        del shape[-1]
    if a.type.rank == 1:
        del shape[-1 if b.type.rank == 1 else -2]
    return node.apply(Reshape(tuple(shape)), y, suffix=suffix).output  # type: ignore[no-any-return]


@onnx_op("Gemm")
def import_gemm(node: Any) -> Value:
    """alpha * a' . b' + beta * c, both transpositions, every shape of c that broadcasts."""
    a, b, c = node.value(0), node.value(1), node.optional(2)
    require_real(node, a, b, c, also=COMPUTED)
    alpha, beta = float(node.attr("alpha", 1.0)), float(node.attr("beta", 1.0))
    if a.type.rank != 2 or b.type.rank != 2:
        node.fail(f"the operands must be matrices, they have ranks {a.type.rank}, {b.type.rank}")
    if node.attr("transA", 0):
        a = node.apply(Transpose((1, 0)), a, suffix="a").output
    if node.attr("transB", 0):
        b = node.apply(Transpose((1, 0)), b, suffix="b").output
    dtype = a.type.dtype.numpy
    if a.type.dtype.is_integer and a.type.quant is None and (alpha % 1 or beta % 1):
        node.fail(f"alpha {alpha:g} and beta {beta:g} on {a.type.dtype}", why="they are fractions")
    has_bias = c is not None and beta != 0.0
    scaled = alpha != 1.0
    y: Value = node.apply(MatMul(), a, b, suffix="ab" if has_bias or scaled else "").output
    if scaled:
        factor = node.constant(np.asarray(alpha, dtype), "alpha")
        suffix = "scaled" if has_bias else ""
        y = node.apply(Elementwise("mul"), y, factor, suffix=suffix).output
    if has_bias:
        if beta != 1.0:
            factor = node.constant(np.asarray(beta, dtype), "beta")
            c = node.apply(Elementwise("mul"), c, factor, suffix="c").output
        y = node.apply(Elementwise("add"), y, c).output
    return y
