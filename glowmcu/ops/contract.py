"""Contraction: sums of products of two strided tensors, in the type of the result."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.dtypes import DType
from glowmcu.core.types import Array
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder
from glowmcu.instr.instruction import In, Instruction, Out
from glowmcu.ops._program import Input, Program, Step, Temp, append
from glowmcu.ops._window import Window
from glowmcu.ops.elementwise import clamp_steps, emit_map
from glowmcu.ops.map import strides
from glowmcu.ops.strided_copy import Fill, Ints, Move, collapse, dense_strides, emit_move
from glowmcu.targets.kernel import Kernel

COMPUTED = (dtypes.F64, dtypes.I32, dtypes.I64, dtypes.U32, dtypes.U64)
"""Types that sums of products are computed in here; float32 and int8 have kernels of their own."""


class Contract(Instruction):
    """y[i . y_strides] = sum of a[i . a_strides] * b[i . b_strides] over the i that y has no
    stride for; i runs over shape. Operands are taken to the type of y, in which integers wrap.
    """

    y: Out
    a: In
    b: In
    shape: Ints
    y_strides: Ints
    a_strides: Ints
    b_strides: Ints

    kernels = (Kernel("gm_contract", template="contract.c.j2", view=lambda i: _view(i)),)

    @property
    def macs(self) -> int:
        return math.prod(self.shape)

    def reference(self, a: Array, b: Array) -> Array:
        dtype = self.y.type.dtype.numpy
        left, right = (
            np.lib.stride_tricks.as_strided(
                np.ascontiguousarray(x).reshape(-1).astype(dtype),
                self.shape,
                [s * dtype.itemsize for s in steps],
            )
            for x, steps in ((a, self.a_strides), (b, self.b_strides))
        )
        every = list(range(len(self.shape)))
        kept = [n for n, s in enumerate(self.y_strides) if s]
        y: Array = np.einsum(left, every, right, every, kept)
        return y


def _view(i: Contract) -> Mapping[str, Any]:
    shape, (ys, xs, ws) = collapse(i.shape, i.y_strides, i.a_strides, i.b_strides)
    dims = list(zip(shape, ys, xs, ws, strict=True))
    kept, reduced = [d for d in dims if d[1]], [d for d in dims if not d[1]]
    names = [f"i{n}" for n in range(len(kept))]
    inner = [f"k{n}" for n in range(len(reduced))]
    # four columns at once where they see the same elements of a
    columns = 4 if kept and kept[-1][2] == 0 and kept[-1][0] >= 4 else 1
    sums, take = _arithmetic(i.a.type.dtype, i.b.type.dtype, i.y.type.dtype)
    a = _index([*names, *inner], [d[2] for d in kept + reduced])
    b = _index([*names, *inner], [d[3] for d in kept + reduced])
    return {
        "type": i.y.type.dtype.c,
        "a_type": i.a.type.dtype.c,
        "b_type": i.b.type.dtype.c,
        "sums": sums,
        "kept": list(zip(names, (d[0] for d in kept), strict=True)),
        "reduced": list(zip(inner, (d[0] for d in reduced), strict=True)),
        "columns": columns,
        "y_step": kept[-1][1] if kept else 0,
        "b_step": kept[-1][3] if kept else 0,
        "place": _index(names, [d[1] for d in kept]),
        "a_place": a,
        "b_place": b,
        "take": take,
        "zero": "0.0" if i.y.type.dtype.is_float else "0",
        "convert": "" if sums == i.y.type.dtype.c else f"({i.y.type.dtype.c})",
    }


def _index(names: list[str], steps: list[int]) -> str:
    terms = [n if s == 1 else f"{n} * {s}" for n, s in zip(names, steps, strict=True) if s]
    return " + ".join(terms) or "0"


def _arithmetic(a: DType, b: DType, y: DType) -> tuple[str, str]:
    """Return the C type of the sums, and the product as a format of {a} and {b}: it wraps."""
    if y.is_float:
        return y.c, "{a} * {b}"
    wrapping = f"uint{y.bits}_t"
    if max(a.bits, b.bits) <= 16 and y.bits == 32:
        return wrapping, f"({wrapping})({{a}} * {{b}})"
    return wrapping, f"({wrapping}){{a}} * ({wrapping}){{b}}"


def emit_product(b: Builder, y: Buffer, left: Buffer, right: Buffer) -> None:
    """Emit y [..., M, N] = left [..., M, K] . right [..., K, N], leading dimensions broadcast."""
    *batch, rows, cols = y.type.shape
    inner = left.type.shape[-1]
    if y.type.numel == 0:
        return
    left_batch = strides(left.type.shape[:-2], tuple(batch))
    right_batch = strides(right.type.shape[:-2], tuple(batch))
    emit_contract(
        b,
        y,
        (left, right),
        (*batch, rows, cols, inner),
        (*dense_strides(y.type.shape), 0),
        (*(s * rows * inner for s in left_batch), inner, 0, 1),
        (*(s * inner * cols for s in right_batch), 0, 1, cols),
    )


def emit_dense(
    b: Builder, x: Buffer, w: Buffer, bias: Buffer | None, clamp: tuple[float, float] | None
) -> None:
    """Emit y [..., N] = clamp(x [..., K] . w [N, K] + bias)."""
    y = b.result()
    cols, inner = w.type.shape
    rows = math.prod(x.type.shape[:-1])
    total = y if bias is None and clamp is None else b.activation(y.type)
    emit_contract(b, total, (x, w), (rows, cols, inner), (cols, 1, 0), (inner, 0, 1), (0, inner, 1))
    _finish(b, y, total, bias, clamp)


def emit_convolution(
    b: Builder,
    operands: tuple[Buffer, Buffer, Buffer | None],
    window: Window,
    groups: int,
    clamp: tuple[float, float] | None,
) -> None:
    """Emit the convolution of NHWC x with OHWI w, padding of zeros written out."""
    (x, w, bias), y = operands, b.result()
    n, (out_height, out_width) = x.type.shape[0], window.output
    outputs, inner = w.type.shape[0] // groups, w.type.shape[3]
    image = _padded(b, x, window) if window.padded else x
    _, row, pixel, _ = dense_strides(image.type.shape)
    over, at = window.strides, window.dilations
    total = y if bias is None and clamp is None else b.activation(y.type)
    y_image, y_row, y_pixel, _ = dense_strides(y.type.shape)
    w_out, w_row, w_tap, _ = dense_strides(w.type.shape)
    emit_contract(
        b,
        total,
        (image, w),
        (n, out_height, out_width, groups, outputs, *window.kernel, inner),
        (y_image, y_row, y_pixel, outputs, 1, 0, 0, 0),
        (
            math.prod(image.type.shape[1:]),
            over[0] * row,
            over[1] * pixel,
            inner,
            0,
            at[0] * row,
            at[1] * pixel,
            1,
        ),
        (0, 0, 0, outputs * w_out, w_out, w_row, w_tap, 1),
    )
    _finish(b, y, total, bias, clamp)


def emit_contract(
    b: Builder,
    y: Buffer,
    operands: tuple[Buffer, Buffer],
    shape: Ints,
    y_strides: Ints,
    a_strides: Ints,
    b_strides: Ints,
) -> None:
    """Emit the sums of products, zeros where none is added up."""
    if 0 in shape:
        b.emit(Fill(y=y, value=0))
        return
    sizes, (ys, xs, ws) = collapse(shape, y_strides, a_strides, b_strides)
    a, c = operands
    b.emit(Contract(y=y, a=a, b=c, shape=sizes, y_strides=ys, a_strides=xs, b_strides=ws))


def _padded(b: Builder, x: Buffer, window: Window) -> Buffer:
    """Return the part of NHWC x that windows see, with zeros around it."""
    n, _, _, channels = x.type.shape
    size = (window.reach(0), window.reach(1))
    y = b.activation(x.type.with_shape((n, *size, channels)))
    top, left = window.pads[:2]
    seen = [min(s, r - p) for s, r, p in zip(window.size, size, (top, left), strict=True)]
    strides_, source = dense_strides(y.type.shape), dense_strides(x.type.shape)
    b.emit(Fill(y=y, value=0))
    offset = top * strides_[1] + left * strides_[2]
    if min(seen) > 0:
        emit_move(b, y, x, Move((n, *seen, channels), source, strides_, 0, offset))
    return y


def _finish(
    b: Builder, y: Buffer, total: Buffer, bias: Buffer | None, clamp: tuple[float, float] | None
) -> None:
    """Emit y = clamp(total + bias)."""
    program: Program = () if bias is None else (Step("add", (Input(0), Input(1))),)
    if clamp is not None:
        value = Temp(len(program) - 1) if program else Input(0)
        program = append(program, clamp_steps(clamp, y.type.dtype), {0: value})
    if program:
        emit_map(b, y, (total,) if bias is None else (total, bias), program)
