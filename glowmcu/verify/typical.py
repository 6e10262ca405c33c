"""A sample for a network of which no data are at hand: the same at every call, and harmless."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from glowmcu.core.types import Array
from glowmcu.emit.unit import Slot


def typical_sample(inputs: Sequence[Slot]) -> dict[str, Array]:
    """Return one stored array by input name.

    Quantized integers take every value, real numbers are normally distributed; integers that mean
    themselves may be indices and are zero.
    """
    rng = np.random.default_rng(1)
    sample: dict[str, Array] = {}
    for slot in inputs:
        dtype, shape = slot.type.dtype, slot.type.shape
        if dtype.is_float:
            sample[slot.name] = rng.normal(size=shape).astype(dtype.numpy)
        elif slot.type.quant is not None:
            values = rng.integers(dtype.low, dtype.high, size=shape, endpoint=True)
            sample[slot.name] = values.astype(dtype.numpy)
        else:
            sample[slot.name] = np.zeros(shape, dtype.numpy)
    return sample
