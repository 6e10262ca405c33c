"""Dense kernels for Arm's DSP extension: one row times four channels of raw weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from glowmcu.ops._conv_dsp import DSP, LONG_CODE
from glowmcu.ops._linear import data_of
from glowmcu.ops._raw_product import (
    RawProduct,
    four_times,
    lane_order,
    raw_product,
    stream,
    why_not,
)
from glowmcu.targets.kernel import Kernel, Packed

if TYPE_CHECKING:
    from glowmcu.ops.dense import DenseS8


def _order(i: DenseS8) -> list[int]:
    """Return the lanes of a row, a multiple of four."""
    order = lane_order(i.inner)
    return order + [-1] * (-len(order) % 4)


def _expanded(i: DenseS8) -> RawProduct:
    return raw_product(i, i.cols, 1, len(_order(i)) // 2, 0, 0)


def _as_bytes(i: DenseS8) -> RawProduct:
    return replace(_expanded(i), bytes=True)


def _accepts_bytes(i: DenseS8) -> str:
    return f"{i.inner} is not a multiple of four values" if i.inner % 4 else why_not(i)


def _pack(i: DenseS8) -> tuple[Packed, ...]:
    weights = data_of(i.w)
    assert weights is not None
    head = [i.zero_point, four_times(i.low), four_times(i.high), i.rows, i.cols]
    words = stream(i, weights.reshape(i.cols, 1, i.inner), _order(i), head)
    return (Packed("w", words, f"{i.w.name} [{i.cols}][{i.inner}], pairs of raw weights"),)


def _cycles(i: DenseS8, product: RawProduct) -> float:
    expansion = 0 if product.bytes else 1.8 * i.inner
    return i.rows * (-(-i.cols // 4) * product.single_cycles() + expansion + 60)


def _flash(i: DenseS8, product: RawProduct) -> int:
    return _pack(i)[0].data.nbytes + product.code_bytes(paired=False, single=True) + 100


def _kernel(symbol: str, product: Callable[[DenseS8], RawProduct]) -> Kernel:
    return Kernel(
        symbol,
        requires=DSP,
        folder="arm_dsp",
        accepts=why_not,
        pack=_pack,
        template="raw_dense.c.j2",
        view=lambda i: {"p": product(i), "inner": i.inner},
        modes=LONG_CODE,
        cycles=lambda i: _cycles(i, product(i)),
        flash=lambda i: _flash(i, product(i)),
    )


DENSE_DSP = (
    replace(_kernel("gm_dense_s8_bytes", _as_bytes), accepts=_accepts_bytes),
    replace(_kernel("gm_dense_s8_raw", _expanded), scratch=lambda i: 4 * _expanded(i).steps),
)
"""Kernels of DenseS8, the preferred one first: 5 % more cycles are less than 2 K bytes of RAM."""
