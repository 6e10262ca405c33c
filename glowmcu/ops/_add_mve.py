"""Addition of int8 tensors for MVE."""

from __future__ import annotations

from glowmcu.ops._mve import MVE
from glowmcu.targets.kernel import Kernel

ADD_MVE = (
    Kernel(
        "gm_add_s8_mve",
        requires=MVE,
        folder="arm_mve",
        core=True,
        cycles=lambda i: i.rows * (2.5 * i.cols + 20),
        flash=lambda _: 160,
    ),
)
"""Kernels of AddS8."""
