"""Weights as MVE kernels stream them: sixteen values of four channels, or taps of eight."""

from __future__ import annotations

import numpy as np

from glowmcu.core.types import Array

LANES = 16
"""Bytes of a vector."""
MVE = frozenset({"arm-mve"})


def product_stream(weights: Array, bias: Array, multiplier: Array) -> Array:
    """Return the bytes of [N, K] weights for gm_mve_pair: blocks of four channels.

    A block has 16 values of each channel, at first as many as leave a multiple of 16, and zeros;
    then four biases and four multipliers. Missing channels are zeros.
    """
    channels, inner = weights.shape
    head = (inner - 1) % LANES + 1
    padded = np.zeros((-(-channels // 4) * 4, LANES - head + inner), np.int8)
    padded[:channels, :head] = weights[:, :head]
    padded[:channels, LANES:] = weights[:, head:]
    groups = padded.reshape(-1, 4, padded.shape[1] // LANES, LANES).transpose(0, 2, 1, 3)
    words = np.zeros((2, padded.shape[0]), np.int32)
    words[0, :channels] = bias
    words[1, :channels] = multiplier
    tails = words.reshape(2, -1, 4).transpose(1, 0, 2)
    count = groups.shape[0]
    parts = [
        groups.reshape(count, -1),
        np.ascontiguousarray(tails).view(np.int8).reshape(count, -1),
    ]
    return np.concatenate(parts, axis=1).reshape(-1).view(np.int32)


_SIXTEEN = [0, 4, 8, 12, 2, 6, 10, 14, 1, 5, 9, 13, 3, 7, 11, 15]
_EIGHT = [0, 2, 4, 6, 1, 3, 5, 7]


def tap_stream(weights: Array, bias: Array, multiplier: Array) -> Array:
    """Return the bytes of [T, C] weights of taps by sixteen channels, and by eight of the rest.

    Each block has biases, weights of an even number of taps, multipliers; biases and multipliers
    in the order of the sums in vectors.
    """
    taps, channels = weights.shape
    whole = channels // 16 * 16
    blocks = [(c, _SIXTEEN) for c in range(0, whole, 16)]
    blocks += [(c, _EIGHT) for c in range(whole, channels, 8)]
    parts = []
    for start, order in blocks:
        stop = min(start + len(order), channels)
        taken = np.zeros((taps + taps % 2, len(order)), np.int8)
        taken[:taps, : stop - start] = weights[:, start:stop]
        words = np.zeros((2, len(order)), np.int32)
        words[0, : stop - start] = bias[start:stop]
        words[1, : stop - start] = multiplier[start:stop]
        parts += [words[0, order], taken.reshape(-1).view(np.int32), words[1, order]]
    return np.concatenate(parts)
