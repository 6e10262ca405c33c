"""The raw-weight product of Arm's DSP extension: its conditions, its stream of weights, its loops.

An int16 lane holds the weights of two channels, 256 * a + b. A multiply-accumulate with the lane
sums 256 A + B, one with the lane's low byte sums B, and the difference is 256 A modulo 2^32: exact
where |A| < 2^23. See runtime_c/src/arm_dsp/gm_raw_product.h.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from glowmcu.core.types import Array
from glowmcu.instr.buffer import Buffer
from glowmcu.ops._linear import data_of

UNROLL = 32
"""Most steps of the product that stand one after the other."""
_LAST_OFFSET = 4095
"""The largest immediate offset of a load."""


class RawLayer(Protocol):
    """What a layer must have: constants per output channel, and the range of its output."""

    @property
    def w(self) -> Buffer: ...
    @property
    def bias(self) -> Buffer: ...
    @property
    def multiplier(self) -> Buffer: ...
    @property
    def shift(self) -> int: ...
    @property
    def low(self) -> int: ...
    @property
    def high(self) -> int: ...


@dataclass(frozen=True)
class RawProduct:
    """Loops of the product, as templates/instr/raw_product.j2 renders them.

    segments, steps   runs of contiguous values of a window, words of two values in each
    distance, advance bytes from a pixel's window to the next one's, to that of the next pair
    tail              channels of the last group of four, 0 for all four
    swapped           1: the first channel of each two is the one in a, with the bound
    stationary        the weights of a group stay in FPU registers
    bytes             activations are taken as int8, one pixel at a time
    """

    segments: int
    steps: int
    distance: int
    advance: int
    tail: int
    swapped: int
    shift: int
    clamped: bool
    stationary: bool = False
    bytes: bool = False

    @property
    def group_words(self) -> int:
        """Words of a group of four channels in the stream of weights."""
        return 8 + 2 * self.segments * self.steps

    @property
    def straight(self) -> bool:
        """True where a group has no loop."""
        return self.segments * self.steps <= UNROLL

    @property
    def rounds(self) -> int:
        """Rounds of the loop over a segment's steps."""
        return -(-self.steps // UNROLL)

    @property
    def unroll(self) -> int:
        """Steps in a round, an even number where there are several."""
        return self.steps if self.rounds == 1 else self.steps // self.rounds // 2 * 2

    @property
    def rest(self) -> int:
        """Steps after the last round."""
        return self.steps - self.rounds * self.unroll

    @property
    def step_bytes(self) -> int:
        """Bytes of activations that a step takes."""
        return 2 if self.bytes else 4

    def group_cycles(self) -> float:
        """Cycles of four channels of two pixels, requantization included."""
        if self.stationary:
            return 54 + 14.5 * self.steps
        if self.straight:
            return 51 + 15 * self.segments * self.steps + self.segments
        around = self.segments * (8 * self.rounds + (6 if self.segments > 1 else 0))
        return 58 + 15 * self.segments * self.steps + around

    def single_cycles(self) -> float:
        """Cycles of four channels of one pixel."""
        step = 10 if self.bytes else 9.5
        return 42 + (step * self.steps + 2 + 5 * (self.rounds - self.straight)) * self.segments

    def code_bytes(self, *, paired: bool, single: bool) -> int:
        """Bytes of the code around and in the loops."""
        lines = self.segments * self.steps if self.straight else self.unroll + self.rest
        return paired * (420 + 56 * lines) + single * (320 + 36 * lines)


def lane_order(count: int) -> list[int]:
    """Return which value lies in which int16 lane: 0, 2, 1, 3 of each four, then as they come.

    -1 stands for a lane that is not used.
    """
    whole = count // 4 * 4
    order = [k + j for k in range(0, whole, 4) for j in (0, 2, 1, 3)]
    order += range(whole, count)
    return order + [-1] * (len(order) % 2)


def natural_order(count: int) -> list[int]:
    """Return the values in their order, -1 for a lane that is not used."""
    return [*range(count), *[-1] * (count % 2)]


def why_not(layer: RawLayer) -> str:
    """Return why the product is not exact for these weights, "" where it is."""
    return "" if swapped(layer) is not None else _reason(layer)


def swapped(layer: RawLayer) -> int | None:
    """Return 0 where all odd channels may stand in a, 1 where all even ones may, else None."""
    good = _fit_a(layer)
    if good is None:
        return None
    if good[1::2].all():
        return 0
    return 1 if good[0::2].all() else None


def _fit_a(layer: RawLayer) -> Array | None:
    """Return which channels may stand in a: |w| < 128 and |A| < 2^23, the bias included."""
    weights, bias = data_of(layer.w), data_of(layer.bias)
    if weights is None or bias is None or data_of(layer.multiplier) is None:
        return None
    w = weights.reshape(weights.shape[0], -1).astype(np.int64)
    up, down = np.maximum(w, 0).sum(axis=1), -np.minimum(w, 0).sum(axis=1)
    most = np.maximum(bias + 127 * up + 128 * down, -(bias - 128 * up - 127 * down))
    fits: Array = (w.min(axis=1, initial=0) > -128) & (most << layer.shift < 1 << 23)
    return fits


def _reason(layer: RawLayer) -> str:
    good = _fit_a(layer)
    if good is None:
        return "weights or bias are computed at run time"
    return (
        f"channels {_some(np.flatnonzero(~good))} have a weight of -128 or a sum that could pass "
        "2^23, and so could their neighbours in a pair"
    )


def _some(channels: Array) -> str:
    shown = ", ".join(str(c) for c in channels[:4])
    return f"{shown}, …" if len(channels) > 4 else shown


def raw_product(
    layer: RawLayer, channels: int, segments: int, steps: int, distance: int, advance: int
) -> RawProduct:
    """Return the loops for a layer with so many output channels."""
    return RawProduct(
        segments,
        steps,
        distance,
        advance,
        channels % 4,
        swapped(layer) or 0,
        layer.shift,
        (layer.low, layer.high) != (-128, 127),
    )


def too_far(product: RawProduct) -> str:
    """Return a reason where the second pixel lies beyond a load's immediate offset."""
    steps = product.steps if product.straight else product.unroll
    reach = product.distance + 4 * (steps - 1)
    if reach > _LAST_OFFSET:
        return f"two pixels lie {product.distance} bytes apart, a load reaches {_LAST_OFFSET}"
    return ""


def stream(layer: RawLayer, weights: Array, order: list[int], head: list[int]) -> Array:
    """Return the words of a layer: `head`, then biases, weights and multipliers by four channels.

    weights: [channels, segments, values], taken in `order` in each segment.
    """
    outputs = weights.shape[0]
    padded = -(-outputs // 4) * 4
    flip = swapped(layer) or 0
    slot = np.arange(padded) ^ flip
    taken = np.zeros((padded, weights.shape[1], len(order)), np.int64)
    used = [n for n, k in enumerate(order) if k >= 0]
    taken[:outputs][:, :, used] = weights[:, :, [order[n] for n in used]]
    lanes = taken[slot].reshape(padded // 2, 2, -1, 2)
    lanes = (lanes[:, 1] * 256 + lanes[:, 0]) & 0xFFFF
    words = lanes[..., 0] | lanes[..., 1] << 16
    words = words.reshape(padded // 4, 2, -1).transpose(0, 2, 1).reshape(padded // 4, -1)
    bias = _by_slot(data_of(layer.bias), padded, slot).reshape(-1, 2)
    bias[:, 1] = bias[:, 1] * 256 + bias[:, 0]
    multiplier = _by_slot(data_of(layer.multiplier), padded, slot)
    parts = (bias.reshape(-1, 4) & 0xFFFFFFFF, words, multiplier.reshape(-1, 4))
    groups = np.concatenate(parts, axis=1).reshape(-1)
    everything = np.concatenate([np.asarray(head, np.int64) & 0xFFFFFFFF, groups])
    return everything.astype(np.uint32).view(np.int32)


def _by_slot(values: Array | None, padded: int, slot: Array) -> Array:
    assert values is not None
    whole = np.zeros(padded, np.int64)
    whole[: values.size] = values
    return whole[slot]


def four_times(value: int) -> int:
    """Return the byte of an int8 in all four bytes of a word."""
    return (value & 0xFF) * 0x01010101
