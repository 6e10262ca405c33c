"""Int8 pools for Arm's DSP extension, four channels at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from glowmcu.core import dtypes
from glowmcu.ops._conv_dsp import DSP, LONG_CODE
from glowmcu.targets.kernel import Kernel

if TYPE_CHECKING:
    from glowmcu.ops.pool2d import AveragePool, MaxPool

_LANE_TAPS = 255
"""Most int8 values whose sum surely fits an int16 lane."""


def _accepts_average(i: AveragePool) -> str:
    if i.window.padded or i.multipliers != 1:
        return "is for windows that lie inside the image"
    return "" if i.channels >= 4 else "is for 4 or more channels"


def accepts_bytes(i: MaxPool) -> str:
    """Accept int8."""
    return "" if i.x.type.dtype is dtypes.I8 else "is for int8"


def _accepts_maximum(i: MaxPool) -> str:
    if accepts_bytes(i):
        return accepts_bytes(i)
    return "" if i.channels >= 4 else "is for 4 or more channels"


def _taps(i: AveragePool | MaxPool) -> int:
    return i.pixels * i.channels * i.kernel_height * i.kernel_width


AVERAGE_DSP = (
    Kernel(
        "gm_average_pool_s8_four",
        requires=DSP,
        folder="arm_dsp",
        modes=LONG_CODE,
        accepts=_accepts_average,
        template="pool_bytes.c.j2",
        view=lambda i: {
            "i": i,
            "average": True,
            "long": i.kernel_height * i.kernel_width > _LANE_TAPS,
        },
        cycles=lambda i: 1.3 * _taps(i) + 20.0 * i.pixels * i.channels,
        flash=lambda _: 500,
    ),
)
"""Kernels of AveragePool, the preferred one first."""
MAXIMUM_DSP = (
    Kernel(
        "gm_max_pool_s8_four",
        requires=DSP,
        folder="arm_dsp",
        modes=LONG_CODE,
        accepts=_accepts_maximum,
        template="pool_bytes.c.j2",
        view=lambda i: {"i": i, "average": False, "padded": i.window.padded},
        cycles=lambda i: 2.5 * _taps(i) + 4.0 * i.pixels * i.channels,
        flash=lambda _: 250,
    ),
)
"""Kernels of MaxPool, the preferred one first."""
