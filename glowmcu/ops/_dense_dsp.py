"""Dense kernels for Arm's DSP extension: one row times four channels of raw weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

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


def _product(i: DenseS8) -> RawProduct:
    return raw_product(i, i.cols, 1, len(_order(i)) // 2, 0, 0)


def _pack(i: DenseS8) -> tuple[Packed, ...]:
    weights = data_of(i.w)
    assert weights is not None
    head = [i.zero_point, four_times(i.low), four_times(i.high), i.rows, i.cols]
    words = stream(i, weights.reshape(i.cols, 1, i.inner), _order(i), head)
    return (Packed("w", words, f"{i.w.name} [{i.cols}][{i.inner}], pairs of raw weights"),)


def _view(i: DenseS8) -> Mapping[str, Any]:
    return {"p": _product(i), "inner": i.inner}


def _cycles(i: DenseS8) -> float:
    product = _product(i)
    groups = -(-i.cols // 4)
    return i.rows * (groups * product.single_cycles() + 1.8 * i.inner + 60)


def _flash(i: DenseS8) -> int:
    code = _product(i).code_bytes(paired=False, single=True)
    return _pack(i)[0].data.nbytes + code + 100


DENSE_DSP = (
    Kernel(
        "gm_dense_s8_raw",
        requires=DSP,
        folder="arm_dsp",
        accepts=why_not,
        scratch=lambda i: 4 * _product(i).steps,
        pack=_pack,
        template="raw_dense.c.j2",
        view=_view,
        modes=LONG_CODE,
        cycles=_cycles,
        flash=_flash,
    ),
)
"""Kernels of DenseS8, the preferred one first."""
