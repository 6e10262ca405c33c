"""Products of int16 activations with int8 weights for Arm's DSP extension: the stream of weights.

See runtime_c/src/arm_dsp/gm_pair_product.h.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glowmcu.core.types import Array
from glowmcu.ops._twins import constants_of, known
from glowmcu.targets.kernel import Packed


def steps(inner: int) -> int:
    """Return the steps of a sum of `inner` products, two of them each, an even number."""
    return (inner + 3) // 4 * 2


def sums_fit(i: Any) -> str:
    """Accept a layer whose constants are known at compile time and whose sums fit 32 bits."""
    return known(i) or ("sums could pass 2^31" if i.bias.type.dtype.bits == 64 else "")


def pack(i: Any, groups: int, outputs: int) -> tuple[Packed, ...]:
    """Return the stream of a layer of `groups` times `outputs` channels."""
    w, bias, multiplier = constants_of(i)
    weights = w.reshape(groups, outputs, -1)
    parts = zip(
        weights, bias.reshape(groups, outputs), multiplier.reshape(groups, outputs), strict=True
    )
    words = np.concatenate([_group(*part) for part in parts])
    return (Packed("w", words, f"{i.w.name} {list(i.w.type.shape)}, pairs of weights"),)


def _group(weights: Array, bias: Array, multiplier: Array) -> Array:
    outputs, inner = weights.shape
    fours, count = -(-outputs // 4), steps(inner)
    padded = np.zeros((fours * 4, 2 * count), np.int8)
    padded[:outputs, :inner] = weights
    # a word has values k and l of channels c and d: ck, dk, cl, dl
    lanes = padded.reshape(fours, 2, 2, count, 2).transpose(0, 3, 1, 4, 2)
    words = np.ascontiguousarray(lanes).reshape(fours, -1).view(np.int32)
    rows = [_by_four(bias, fours), words, _by_four(multiplier, fours)]
    return np.concatenate(rows, axis=1).reshape(-1).astype(np.int32)


def _by_four(values: Array, fours: int) -> Array:
    whole = np.zeros(fours * 4, np.int32)
    whole[: values.size] = values
    return whole.reshape(fours, 4)
