"""Depthwise convolution for Arm's DSP extension, on lines of int16 of one channel each."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from glowmcu.ops._conv_dsp import DSP, LONG_CODE
from glowmcu.ops._linear import data_of
from glowmcu.ops._planar import is_column, planar, planar_row
from glowmcu.ops._twins import known
from glowmcu.targets.kernel import Kernel, Packed, RowKernel

if TYPE_CHECKING:
    from glowmcu.ops.depthwise import DepthwiseS8


def _accepts(i: DepthwiseS8) -> str:
    if (i.dilation_height, i.dilation_width) != (1, 1):
        return "is for windows without dilation"
    return known(i) or planar(i).why_not()


def _accepts_image(i: DepthwiseS8) -> str:
    if is_column(i):
        return "is for images of several columns"
    return _accepts(i) or planar_row(i).why_not()


def _pack(i: DepthwiseS8) -> tuple[Packed, ...]:
    weights, bias, multiplier = (data_of(b) for b in (i.w, i.bias, i.multiplier))
    assert weights is not None
    assert bias is not None
    assert multiplier is not None
    head = np.asarray([i.zero_point, i.low, i.high, i.fill], np.int64) & 0xFFFFFFFF
    words = planar(i).stream(weights.reshape(i.channels, -1), bias, multiplier)
    data = np.concatenate([head, words]).astype(np.uint32).view(np.int32)
    return (Packed("w", data, f"{i.w.name} {list(i.w.type.shape)}, pairs of taps by channel"),)


def _in_place(i: DepthwiseS8) -> tuple[tuple[str, str], ...]:
    return (("y", "x"),) if planar(i).in_place() else ()


_COLUMN = Kernel(
    "gm_depthwise_s8_column",
    requires=DSP,
    folder="arm_dsp",
    accepts=lambda i: _accepts(i) if is_column(i) else "is for images of one column",
    scratch=lambda i: 8 * planar(i).plane,
    pack=_pack,
    template="planar_depthwise.c.j2",
    view=lambda i: {"p": planar(i), "rows": False},
    in_place=_in_place,
    modes=LONG_CODE,
    cycles=lambda i: planar(i).cycles(),
    flash=lambda i: _pack(i)[0].data.nbytes + planar(i).code_bytes(),
)
DEPTHWISE_DSP = (
    _COLUMN,
    replace(
        _COLUMN,
        symbol="gm_depthwise_s8_planar",
        accepts=_accepts_image,
        row=RowKernel(
            "gm_depthwise_s8_planar_rows",
            scratch=lambda i: 8 * planar_row(i).plane,
            cycles=lambda i: i.batch * i.out_height * (planar_row(i).cycles() + 60),
            template="planar_depthwise.c.j2",
            view=lambda i: {"p": planar_row(i), "rows": True},
        ),
    ),
)
"""Kernels of DepthwiseS8, the preferred one first."""
