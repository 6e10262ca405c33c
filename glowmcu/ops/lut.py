"""A table of 256 bytes: any function of one 8-bit number, made offline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.types import Array
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder
from glowmcu.instr.instruction import In, Instruction, Out, RowWindow
from glowmcu.ops._mve import MVE
from glowmcu.targets.kernel import Kernel


class LutS8(Instruction):
    """y[i] = table[(uint8_t)x[i]]: bytes to bytes, whether signed, unsigned or bool."""

    y: Out
    x: In
    table: In
    count: int

    kernels = (
        Kernel(
            "gm_lut_s8_mve",
            requires=MVE,
            folder="arm_mve",
            core=True,
            cycles=lambda i: 0.6 * i.count + 20,
            flash=lambda _: 80,
        ),
        Kernel("gm_lut_s8", core=True),
    )
    may_share = (("y", "x"),)

    def reference(self, x: Array, table: Array) -> Array:
        found = table[np.ascontiguousarray(x).view(np.uint8)]
        return found.view(self.y.type.dtype.numpy)

    def windows(self) -> Mapping[str, RowWindow]:
        return {"x": RowWindow()}

    def at_row(self, row: int) -> LutS8:
        rows = self.y.type.shape[1] if self.y.type.rank == 4 else 1
        return replace(self, count=self.y.type.numel // rows)


def every_byte(x: Buffer) -> Array:
    """Return the 256 values of an 8-bit type in the order of the table."""
    return np.arange(256, dtype=np.uint8).view(x.type.dtype.numpy)


def emit_lut(b: Builder, y: Buffer, x: Buffer, table: Array) -> None:
    """Emit y = table[x]; `table` holds 256 elements of y's 8-bit type."""
    constant = b.constant(np.ascontiguousarray(table).view(np.uint8), f"{y.name}.table")
    b.emit(LutS8(y=y, x=x, table=constant, count=x.type.numel))


def is_byte(dtype: dtypes.DType) -> bool:
    """Tell whether a table can index by this type."""
    return dtype in (dtypes.I8, dtypes.U8)
