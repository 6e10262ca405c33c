"""Tables: any function of one stored 8-bit or 16-bit number, made offline."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.dtypes import DType
from glowmcu.core.types import Array, TensorType
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder
from glowmcu.instr.instruction import In, Instruction, Out, RowWindow
from glowmcu.ops._mve import MVE
from glowmcu.ops._pieces import divided, looked_up
from glowmcu.targets.kernel import Kernel


def _between(x: int, y: int) -> Callable[[Lut], str]:
    """Accept elements of so many bytes."""

    def accepts(i: Lut) -> str:
        fits = (i.x.type.dtype.nbytes, i.y.type.dtype.nbytes) == (x, y)
        return "" if fits else f"is for elements of {8 * x} bits to elements of {8 * y} bits"

    return accepts


class Lut(Instruction):
    """y[i] = table[x[i]]: bytes of any kind to bytes, or int8 and int16 to each other.

    The table of bytes has 256 elements; that of int16 is made by _pieces.divided.
    """

    y: Out
    x: In
    table: In
    count: int

    kernels = (
        Kernel(
            "gm_lut_s8_mve",
            requires=MVE,
            folder="arm_mve",
            accepts=_between(1, 1),
            core=True,
            cycles=lambda i: 0.6 * i.count + 20,
            flash=lambda _: 80,
        ),
        Kernel("gm_lut_s8", accepts=_between(1, 1), core=True),
        Kernel("gm_lut_s16", accepts=_between(2, 2), core=True),
        Kernel("gm_lut_s16_s8", accepts=_between(2, 1), core=True),
        Kernel("gm_lut_s8_s16", accepts=_between(1, 2), core=True),
    )

    def shares(self) -> tuple[tuple[str, str], ...]:
        """y may lie where x does unless its elements are wider."""
        fits = self.y.type.dtype.nbytes <= self.x.type.dtype.nbytes
        return (("y", "x"),) if fits else ()

    def reference(self, x: Array, table: Array) -> Array:
        if self.x.type.dtype.nbytes == 2:
            return looked_up(table, x).astype(self.y.type.dtype.numpy)
        found = table[np.ascontiguousarray(x).view(np.uint8)]
        return found.view(self.y.type.dtype.numpy)

    def windows(self) -> Mapping[str, RowWindow]:
        return {"x": RowWindow()}

    def at_row(self, row: int) -> Lut:
        rows = self.y.type.shape[1] if self.y.type.rank == 4 else 1
        return replace(self, count=self.y.type.numel // rows)


def every_value(dtype: DType) -> Array:
    """Return all values of an 8-bit type or int16 in the order in which `emit_lut` takes them."""
    if dtype.nbytes == 1:
        return np.arange(256, dtype=np.uint8).view(dtype.numpy)
    return np.arange(-(1 << 15), 1 << 15).astype(np.int16)


def emit_lut(b: Builder, y: Buffer, x: Buffer, values: Array) -> None:
    """Emit y = values[x]; `values` are one of y's type for each of every_value(x's type).

    From int16, y may differ from them by 1.
    """
    table = np.ascontiguousarray(values)
    if x.type.dtype.nbytes == 2:
        table = divided(table)
    elif y.type.dtype.nbytes == 1:
        table = table.view(np.uint8)
    constant = b.constant(table, f"{y.name}.table")
    b.emit(Lut(y=y, x=x, table=constant, count=x.type.numel))


def is_byte(dtype: DType) -> bool:
    """Tell whether a type has 8 bits."""
    return dtype in (dtypes.I8, dtypes.U8)


def has_table(x: TensorType, y: TensorType) -> bool:
    """Tell whether `emit_lut` can compute functions from x to y."""
    if is_byte(x.dtype) and y.dtype.nbytes == 1:
        return True
    stored = (dtypes.I8, dtypes.I16)
    return x.dtype in stored and y.dtype in stored and y.quant is not None
