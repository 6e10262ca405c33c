"""Kernels that layers are given, and why they cannot be."""

from __future__ import annotations

import pytest
from dsp_layers import conv, function_of

from glowmcu.errors import OptionError
from glowmcu.lowering.select import select_kernels
from glowmcu.targets.target import target

LAYER = function_of(conv((6, 6, 16), 8, 3, pads=(1, 1, 1, 1)), 1)


def kernel_for(wish: dict[str, str], processor: str = "cortex-m4") -> str:
    (instruction,) = select_kernels(LAYER, target(processor), "balanced", wish).instructions
    assert instruction.kernel is not None
    return instruction.kernel.symbol


@pytest.mark.parametrize("layer", ["y", "*", "[xy]"])
def test_a_layer_takes_the_kernel_it_is_given(layer: str) -> None:
    for symbol in ("gm_conv2d_s8_winograd", "gm_conv2d_s8", "gm_conv2d_s8_direct"):
        assert kernel_for({layer: symbol}) == symbol


@pytest.mark.parametrize(
    ("wish", "processor", "sentence"),
    [
        ({"z": "gm_conv2d_s8"}, "cortex-m4", "there is no layer 'z'"),
        ({"y": "gm_conv3d"}, "cortex-m4", "has no kernel 'gm_conv3d'"),
        ({"y": "gm_conv2d_s8_ring"}, "cortex-m3", "needs arm-dsp"),
        ({"y": "gm_conv2d_s8_pointwise"}, "cortex-m4", "is for 1x1 convolutions"),
        ({"*": "gm_conv2d_s8_mve"}, "cortex-m4", "--target cortex-m55"),
    ],
)
def test_a_kernel_that_cannot_be_is_a_sentence(
    wish: dict[str, str], processor: str, sentence: str
) -> None:
    with pytest.raises(OptionError, match=sentence):
        kernel_for(wish, processor)
