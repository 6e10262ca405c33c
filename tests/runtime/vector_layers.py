"""Layers for the tests of kernels that take eight or sixteen values at once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dsp_layers import Layer, conv, dense

SAME = {"pads": (1, 1, 1, 1)}
TWO = {"strides": (2, 2)}


def depthwise(
    size: tuple[int, int, int], kernel: int | tuple[int, int] = 3, **options: Any
) -> Layer:
    """A depthwise convolution of [H, W, C]."""
    found = conv(size, size[2], kernel, groups=size[2], **options)
    return replace(found, w=(*found.w[:3], 1))


LAYERS = [
    # pointwise: odd pixels, channels of y and x around multiples of 4 and 16
    conv((5, 5, 64), 64),
    conv((3, 3, 8), 16),
    conv((4, 5, 32), 12),
    conv((1, 1, 1), 1),
    conv((1, 2, 4), 4),
    conv((1, 17, 13), 3),
    conv((2, 3, 2), 1),
    conv((2, 2, 66), 17),
    conv((3, 1, 256), 7, weights="extreme"),
    conv((2, 3, 28), 8, scale=24.0),
    conv((3, 5, 16), 8, clamp=(0.0, 2.0)),
    conv((3, 3, 20), 8, weights="both"),
    conv((3, 3, 4), 4, batch=3),
    # windows: padding on every side, strides, dilation, tall windows, run lengths
    conv((6, 6, 3), 8, 3, **SAME),
    conv((7, 7, 3), 9, 3, **TWO),
    conv((5, 7, 1), 4, (4, 3), pads=(2, 1, 1, 1)),
    conv((12, 5, 1), 16, (10, 4), strides=(2, 2), pads=(4, 1, 5, 1)),
    conv((5, 5, 16), 8, 3, **SAME, weights="extreme"),
    conv((5, 5, 5), 6, 3, strides=(3, 3), pads=(2, 1, 0, 2)),
    conv((6, 6, 2), 5, 2, strides=(1, 2), batch=2),
    conv((7, 6, 6), 4, 3, pads=(2, 2, 2, 2), dilations=(2, 2), zero_point=127),
    conv((2, 2, 3), 5, 5, pads=(4, 4, 4, 4), zero_point=-128),
    conv((1, 20, 40), 6, (1, 3), pads=(0, 1, 0, 1), scale=24.0),
    # dense
    dense(1, 64, 12),
    dense(1, 640, 10),
    dense(3, 9, 7),
    dense(1, 1, 1),
    dense(2, 130, 2, weights="extreme"),
    dense(1, 67, 5, scale=24.0, clamp=(-2.0, 2.0)),
    # depthwise: channels around multiples of 8 and 16, edges, strides
    *(depthwise((4, 5, c), **SAME) for c in (1, 7, 8, 9, 16, 17, 24, 31, 40, 64)),
    depthwise((5, 5, 16), 3, **SAME, weights="extreme"),
    depthwise((7, 7, 12), 3, **TWO),
    depthwise((6, 6, 20), 3, strides=(2, 2), pads=(0, 0, 1, 1)),
    depthwise((9, 8, 8), 5, pads=(2, 2, 2, 2), scale=24.0),
    depthwise((6, 7, 10), (2, 4), pads=(0, 1, 1, 2), clamp=(-1.0, 2.0), zero_point=127),
    depthwise((7, 9, 16), 3, dilations=(2, 3), pads=(2, 3, 2, 3)),
    depthwise((8, 8, 18), 8, pads=(3, 4, 4, 3), batch=2),
    depthwise((3, 3, 5), 1),
    depthwise((1, 1, 16), 3, **SAME),
]
