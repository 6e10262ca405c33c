"""Kernels for AVX2, so that a network is quickly run over many samples on the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from glowmcu.core.types import Array
from glowmcu.ops._conv_dsp import is_pointwise
from glowmcu.ops._linear import data_of
from glowmcu.ops._overlap import ascending_blocks, ascending_rows, within_rows
from glowmcu.ops._window import MAX_ROWS
from glowmcu.targets.kernel import Kernel, Overlap, Packed, RowKernel

if TYPE_CHECKING:
    from glowmcu.ops.conv2d import ConvS8
    from glowmcu.ops.dense import DenseS8
    from glowmcu.ops.depthwise import DepthwiseS8

AVX2 = frozenset({"x86-avx2"})
LANES = 8
"""32-bit sums of a vector."""
MAX_TAPS = 64
"""GM_DEPTHWISE_AVX2_TAPS."""
_TAKEN = 16
"""Channels of a depthwise layer that are taken together."""
_IN_ORDER = [0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15]
"""Which channel of sixteen a sum belongs to."""


def _constants(i: Any) -> tuple[Array, Array, Array]:
    weights, bias, multiplier = (data_of(b) for b in (i.w, i.bias, i.multiplier))
    assert weights is not None
    assert bias is not None
    assert multiplier is not None
    return weights, bias, multiplier


def _known(i: Any) -> str:
    known = all(data_of(b) is not None for b in (i.w, i.bias, i.multiplier))
    return "" if known else "weights or bias are computed at run time"


def _pack_product(weights: Array, bias: Array, multiplier: Array) -> tuple[Packed, ...]:
    """Return [N, K] weights as [ceil(N / 8)][ceil(K / 2)][8][2] int16, and what goes with them."""
    channels, inner = weights.shape
    blocks, pairs = -(-channels // LANES), -(-inner // 2)
    padded = np.zeros((blocks * LANES, 2 * pairs), np.int16)
    padded[:channels, :inner] = weights
    words = padded.reshape(blocks, LANES, pairs, 2).transpose(0, 2, 1, 3)

    def eights(values: Array) -> Array:
        return np.pad(values, (0, -channels % LANES))

    return (
        Packed("w", np.ascontiguousarray(words).reshape(-1), "weights, pairs of eight channels"),
        Packed("bias", eights(bias), "bias, input zero point folded in"),
        Packed("multiplier", eights(multiplier), "requantization"),
    )


# Convolution: the windows of four pixels are copied to scratch.


def _accepts_conv(i: ConvS8) -> str:
    if i.groups != 1:
        return "is for convolutions without groups"
    if i.kernel_height > MAX_ROWS:
        return f"the window is taller than {MAX_ROWS} rows"
    return _known(i)


def _pack_conv(i: ConvS8) -> tuple[Packed, ...]:
    weights, bias, multiplier = _constants(i)
    return _pack_product(weights.reshape(i.out_channels, -1), bias, multiplier)


def _conv_scratch(i: ConvS8) -> int:
    return 4 * 4 * -(-(i.kernel_height * i.kernel_width * i.channels) // 2)


def _conv_overlap(i: ConvS8) -> tuple[Overlap, ...]:
    if not is_pointwise(i):
        return (Overlap("y", "x", *ascending_rows(i, i.out_channels, i.channels, moved=False)),)
    pixels = i.batch * i.height * i.width
    return (
        Overlap("y", "x", *ascending_blocks(pixels, 4, i.out_channels, i.channels, moved=True)),
    )


def _conv_row_overlap(i: ConvS8) -> tuple[Overlap, ...]:
    return (Overlap("y", "x", *within_rows(i, 4, i.out_channels, i.channels)),)


def _conv_in_place(i: ConvS8) -> tuple[tuple[str, str], ...]:
    return (("y", "x"),) if is_pointwise(i) and i.out_channels <= i.channels else ()


CONV_AVX2 = (
    Kernel(
        "gm_conv2d_s8_avx2",
        requires=AVX2,
        folder="x86_avx2",
        accepts=_accepts_conv,
        scratch=_conv_scratch,
        pack=_pack_conv,
        core=True,
        in_place=_conv_in_place,
        overlap=_conv_overlap,
        row=RowKernel("gm_conv2d_s8_avx2_rows", scratch=_conv_scratch, overlap=_conv_row_overlap),
    ),
)
"""Kernels of ConvS8."""


def _pack_dense(i: DenseS8) -> tuple[Packed, ...]:
    return _pack_product(*_constants(i))


DENSE_AVX2 = (
    Kernel(
        "gm_dense_s8_avx2",
        requires=AVX2,
        folder="x86_avx2",
        accepts=_known,
        scratch=lambda i: 4 * -(-i.inner // 2),
        pack=_pack_dense,
        core=True,
    ),
)
"""Kernels of DenseS8."""


# Depthwise: two taps of sixteen channels at a time.


def _accepts_depthwise(i: DepthwiseS8) -> str:
    if i.kernel_height > MAX_ROWS or i.kernel_height * i.kernel_width > MAX_TAPS:
        return f"the window has more than {MAX_TAPS} taps or {MAX_ROWS} rows"
    return _known(i)


def _pack_depthwise(i: DepthwiseS8) -> tuple[Packed, ...]:
    """Return blocks of sixteen channels: biases, weights of two taps in turn, multipliers."""
    weights, bias, multiplier = _constants(i)
    taps = weights.reshape(i.channels, -1)
    parts = []
    for start in range(0, i.channels, _TAKEN):
        stop = min(start + _TAKEN, i.channels)
        pairs = np.zeros((_TAKEN, taps.shape[1] + taps.shape[1] % 2), np.int16)
        pairs[: stop - start, : taps.shape[1]] = taps[start:stop]
        words = np.zeros((2, _TAKEN), np.int32)
        words[:, : stop - start] = bias[start:stop], multiplier[start:stop]
        by_pair = pairs[_IN_ORDER].reshape(_TAKEN, -1, 2).transpose(1, 0, 2)
        stored = np.ascontiguousarray(by_pair).reshape(-1).view(np.int32)
        parts += [words[0, _IN_ORDER], stored, words[1, _IN_ORDER]]
    label = f"{i.w.name} {list(i.w.type.shape)}, taps of sixteen channels"
    return (Packed("w", np.concatenate(parts), label),)


def _depthwise_overlap(i: DepthwiseS8) -> tuple[Overlap, ...]:
    return (Overlap("y", "x", *ascending_rows(i, i.channels, i.channels, moved=False)),)


def _depthwise_row_overlap(i: DepthwiseS8) -> tuple[Overlap, ...]:
    return (Overlap("y", "x", *within_rows(i, 1, i.channels, i.channels)),)


def _padding(i: DepthwiseS8) -> int:
    return -(-i.channels // 4) * 4


DEPTHWISE_AVX2 = (
    Kernel(
        "gm_depthwise_s8_avx2",
        requires=AVX2,
        folder="x86_avx2",
        accepts=_accepts_depthwise,
        scratch=_padding,
        pack=_pack_depthwise,
        core=True,
        overlap=_depthwise_overlap,
        row=RowKernel(
            "gm_depthwise_s8_avx2_rows", scratch=_padding, overlap=_depthwise_row_overlap
        ),
    ),
)
"""Kernels of DepthwiseS8."""
