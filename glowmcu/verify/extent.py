"""Outputs whose shape depends on the data, cut to the shape that the network says they have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from glowmcu.core.types import Array


def cropped(outputs: Mapping[str, Array], extents: Mapping[str, str]) -> dict[str, Array]:
    """Return outputs as large as they are meant.

    extents  output -> the output that says its actual shape
    """
    found = dict(outputs)
    for name, companion in extents.items():
        if name in outputs and companion in outputs:
            found[name] = outputs[name][tuple(slice(int(n)) for n in outputs[companion])]
    return found


def filled(arrays: Sequence[Array]) -> list[Array]:
    """Return arrays as large as the largest in each dimension, zeros behind what they have."""
    shape = np.max([a.shape for a in arrays], axis=0, initial=0)
    return [
        np.pad(a, [(0, int(n) - have) for n, have in zip(shape, a.shape, strict=True)])
        for a in arrays
    ]
