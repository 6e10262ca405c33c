"""Dense kernels for Arm's DSP extension: one row times four channels of raw weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from glowmcu.instr.buffer import Buffer
from glowmcu.ops._conv_dsp import DSP, LONG_CODE, POINTWISE
from glowmcu.ops._linear import data_of
from glowmcu.ops._raw_product import (
    RawProduct,
    four_times,
    lane_order,
    raw_product,
    stream,
    why_not,
)
from glowmcu.targets.kernel import Kernel, Packed, no_turning

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


@dataclass(frozen=True)
class _Pixels:
    """A dense layer of several rows as a 1x1 convolution of as many pixels."""

    w: Buffer
    bias: Buffer
    multiplier: Buffer
    shift: int
    zero_point: int
    low: int
    high: int
    width: int
    channels: int
    out_channels: int
    batch: int = 1
    height: int = 1
    groups: int = 1
    kernel_height: int = 1
    kernel_width: int = 1
    stride_height: int = 1
    stride_width: int = 1
    padded_width: int = 0
    descending: int = 0


def _pixels(i: DenseS8) -> Any:
    return _Pixels(
        *(i.w, i.bias, i.multiplier, i.shift, i.zero_point, i.low, i.high),
        width=i.rows,
        channels=i.inner,
        out_channels=i.cols,
    )


def _by_pixels(kernel: Kernel) -> Kernel:
    """Return a kernel of 1x1 convolutions for dense layers of several rows."""
    pack, view, cycles, flash = kernel.pack, kernel.view, kernel.cycles, kernel.flash
    assert pack and view and cycles and flash
    return replace(
        kernel,
        symbol="gm_dense_s8_rows",
        accepts=lambda i: kernel.accepts(_pixels(i)) if i.rows > 1 else "there is one row only",
        scratch=lambda i: kernel.scratch(_pixels(i)),
        pack=lambda i: pack(_pixels(i)),
        view=lambda i: view(_pixels(i)),
        in_place=lambda i: kernel.in_place(_pixels(i)),
        overlap=lambda i: kernel.overlap(_pixels(i)),
        turned=no_turning,
        cycles=lambda i: cycles(_pixels(i)),
        flash=lambda i: flash(_pixels(i)),
    )


DENSE_DSP = (
    _by_pixels(POINTWISE),
    replace(_kernel("gm_dense_s8_bytes", _as_bytes), accepts=_accepts_bytes),
    replace(_kernel("gm_dense_s8_raw", _expanded), scratch=lambda i: 4 * _expanded(i).steps),
)
"""Kernels of DenseS8, the preferred one first: 5 % more cycles are less than 2 K bytes of RAM."""
