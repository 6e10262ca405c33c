"""Addition of int8 tensors for Arm's DSP extension, four elements at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from glowmcu.targets.kernel import Kernel

if TYPE_CHECKING:
    from glowmcu.ops.binary_s8 import AddS8


def _accepts(i: AddS8) -> str:
    if (i.cols > 1 and i.b_col != 1) or (i.rows > 1 and i.b_row != i.cols):
        return "is for operands of one shape"
    if max(abs(i.a_multiplier), abs(i.b_multiplier)) >= 1 << 23:
        return "256 times a multiplier would pass 32 bits"
    return ""


def _view(i: AddS8) -> Mapping[str, Any]:
    return {
        "count": i.rows * i.cols,
        "a": i.a_multiplier,
        "b": i.b_multiplier,
        "offset": i.offset,
        "shift": i.shift,
        "clamped": (i.low, i.high) != (-128, 127),
        "low": (i.low & 0xFF) * 0x01010101,
        "high": (i.high & 0xFF) * 0x01010101,
    }


ADD_DSP = (
    Kernel(
        "gm_add_s8_four",
        requires=frozenset({"arm-dsp"}),
        folder="arm_dsp",
        accepts=_accepts,
        template="add_bytes.c.j2",
        view=_view,
        cycles=lambda i: 6.5 * i.rows * i.cols + 40,
        flash=lambda _: 200,
    ),
)
"""Kernels of AddS8, the preferred one first."""
