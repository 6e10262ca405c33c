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
    from glowmcu.ops.conv2d import ConvF32, ConvS8
    from glowmcu.ops.dense import DenseS8
    from glowmcu.ops.depthwise import DepthwiseF32, DepthwiseS8

AVX2 = frozenset({"x86-avx2"})
LANES = 8
"""32-bit sums of a vector."""
MAX_TAPS = 64
"""GM_DEPTHWISE_AVX2_TAPS."""
_FLOAT = 4
"""Bytes of a float."""
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


def _conv_in_place(i: ConvF32 | ConvS8) -> tuple[tuple[str, str], ...]:
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


# Float: vectors of the compiler, sums in the order of the C kernels.


def _known_f32(i: ConvF32 | DepthwiseF32) -> str:
    if i.kernel_height > MAX_ROWS:
        return f"the window is taller than {MAX_ROWS} rows"
    known = data_of(i.w) is not None and (i.bias is None or data_of(i.bias) is not None)
    return "" if known else "weights or bias are computed at run time"


def _bias_f32(i: ConvF32 | DepthwiseF32, channels: int) -> Packed:
    bias = np.zeros(channels, np.float32) if i.bias is None else data_of(i.bias)
    assert bias is not None
    return Packed("bias", np.pad(bias, (0, -channels % LANES)), "bias")


def _eights(weights: Array) -> Array:
    """Return [N, K] as [ceil(N / 8)][K][8]."""
    padded = np.pad(weights, ((0, -weights.shape[0] % LANES), (0, 0)))
    return np.ascontiguousarray(padded.reshape(-1, LANES, weights.shape[1]).transpose(0, 2, 1))


def _pack_f32(i: ConvF32 | DepthwiseF32) -> tuple[Packed, ...]:
    data = data_of(i.w)
    assert data is not None
    channels = data.shape[0]
    label = f"{i.w.name} {list(data.shape)} by eight output channels"
    words = _eights(data.reshape(channels, -1)).reshape(-1)
    return Packed("w", words, label), _bias_f32(i, channels)


def _accepts_conv_f32(i: ConvF32) -> str:
    return "is for convolutions without groups" if i.groups != 1 else _known_f32(i)


def _conv_overlap_f32(i: ConvF32) -> tuple[Overlap, ...]:
    outer, inner = _FLOAT * i.out_channels, _FLOAT * i.channels
    if not is_pointwise(i):
        return (Overlap("y", "x", *ascending_rows(i, outer, inner, moved=False)),)
    pixels = i.batch * i.height * i.width
    return (Overlap("y", "x", *ascending_blocks(pixels, 4, outer, inner, moved=True)),)


def _depthwise_overlap_f32(i: DepthwiseF32) -> tuple[Overlap, ...]:
    pixel = _FLOAT * i.channels
    return (Overlap("y", "x", *ascending_rows(i, pixel, pixel, moved=False)),)


CONV_F32_AVX2 = (
    Kernel(
        "gm_conv2d_f32_avx2",
        requires=AVX2,
        folder="x86_avx2",
        accepts=_accepts_conv_f32,
        scratch=lambda i: 4 * _FLOAT * i.kernel_height * i.kernel_width * i.channels,
        pack=_pack_f32,
        core=True,
        in_place=_conv_in_place,
        overlap=_conv_overlap_f32,
    ),
)
"""Kernels of ConvF32."""

DEPTHWISE_F32_AVX2 = (
    Kernel(
        "gm_depthwise_f32_avx2",
        requires=AVX2,
        folder="x86_avx2",
        accepts=lambda i: (
            "is for a multiple of 8 channels" if i.channels % LANES else _known_f32(i)
        ),
        pack=_pack_f32,
        core=True,
        overlap=_depthwise_overlap_f32,
    ),
)
"""Kernels of DepthwiseF32."""
