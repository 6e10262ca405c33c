"""Sums and products of int8 tensors for Arm's DSP extension, four elements at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from glowmcu.ops._conv_dsp import DSP, LONG_CODE
from glowmcu.targets.kernel import Kernel

if TYPE_CHECKING:
    from glowmcu.ops.binary_s8 import AddS8, MulS8


def _accepts_sum(i: AddS8) -> str:
    if max(abs(i.a_multiplier), abs(i.b_multiplier)) >= 1 << 23:
        return "256 times a multiplier would pass 32 bits"
    return ""


def _four_times(value: int) -> int:
    return (value & 0xFF) * 0x01010101


def _loops(i: AddS8 | MulS8) -> Mapping[str, Any]:
    """Return the sizes of the loops and the clamp."""
    one = i.rows == 1 or (i.b_row == i.cols and i.b_col == 1)
    return {
        "rows": 1 if one else i.rows,
        "cols": i.rows * i.cols if one else i.cols,
        "b_row": i.b_row,
        "single": i.b_col == 0 and i.cols > 1,
        "clamped": (i.low, i.high) != (-128, 127),
        "low": _four_times(i.low),
        "high": _four_times(i.high),
    }


def _view_sum(i: AddS8) -> Mapping[str, Any]:
    numbers = {"a": i.a_multiplier, "b": i.b_multiplier, "offset": i.offset, "shift": i.shift}
    return {**_loops(i), **numbers, "product": False}


def _view_product(i: MulS8) -> Mapping[str, Any]:
    return {
        **_loops(i),
        "product": True,
        "a_zero": (-i.a_zero & 0xFFFF) * 0x10001,
        "b_zero": (-i.b_zero & 0xFFFF) * 0x10001,
        "scale": 1 << i.shift,
        "multiplier": i.multiplier,
        "zero_point": i.zero_point,
        "shift": 0,
    }


ADD_DSP = (
    Kernel(
        "gm_add_s8_four",
        requires=DSP,
        folder="arm_dsp",
        modes=LONG_CODE,
        accepts=_accepts_sum,
        template="binary_bytes.c.j2",
        view=_view_sum,
        cycles=lambda i: i.rows * (6.5 * i.cols + 12) + 40,
        flash=lambda _: 200,
    ),
)
"""Kernels of AddS8, the preferred one first."""
MUL_DSP = (
    Kernel(
        "gm_mul_s8_four",
        requires=DSP,
        folder="arm_dsp",
        modes=LONG_CODE,
        template="binary_bytes.c.j2",
        view=_view_product,
        cycles=lambda i: i.rows * (6.5 * i.cols + 12) + 40,
        flash=lambda _: 200,
    ),
)
"""Kernels of MulS8, the preferred one first."""
