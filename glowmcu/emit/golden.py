"""What the self-test of a network expects: inputs, outputs, and a checksum of every layer."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.packing import stored
from glowmcu.core.types import Array
from glowmcu.emit import literals
from glowmcu.emit.unit import Slot
from glowmcu.emit.view import Code

EXACT, MAGNITUDE = "EXACT", "MAGNITUDE"


@dataclass(frozen=True)
class Golden:
    """One sample, and what a sound network makes of it.

    inputs, outputs  stored arrays by name
    layers           for each layer the arrays that it writes, none where it is skipped or in a loop
    """

    inputs: Mapping[str, Array]
    outputs: Mapping[str, Array]
    layers: Sequence[Sequence[Array]]


@dataclass(frozen=True)
class Expected:
    """What is known of one result of one layer: a CRC, or the sum of magnitudes of reals."""

    layer: int
    kind: str
    memory: str
    offset: int
    nbytes: int
    value: int


def context(golden: Golden, code: Code, slots: Sequence[Slot]) -> dict[str, Any]:
    """Return the variables of the self-test's template."""
    arrays = {**golden.inputs, **golden.outputs}
    return {
        "results": _results(golden, code),
        "constants": [(array, _layer_of(array.name)) for array in code.arrays],
        "arrays": {s.name: _literals(stored(arrays[s.name], s.type)) for s in slots},
    }


def _literals(array: Array) -> str:
    return "\n".join(literals.array_lines(array))


def _results(golden: Golden, code: Code) -> list[Expected]:
    """Return the checks in order of layers.

    Mathematical functions of C libraries differ in the last bit, so of real numbers a sum is
    compared, and integers computed of them are left to the comparison of the outputs.
    """
    found: list[Expected] = []
    real = False
    for layer, arrays in zip(code.layers, golden.layers, strict=True):
        for slot, array in zip(layer.results, arrays, strict=bool(arrays)):
            data = stored(array, slot.type)
            place = (slot.memory, slot.offset, slot.type.nbytes)
            if slot.type.dtype.is_float:
                real = True
                total = _sum_in_order(data)
                if slot.type.dtype == dtypes.F32 and np.isfinite(total):
                    bits = int(total.view(np.uint32))
                    found.append(Expected(layer.index, MAGNITUDE, *place, bits))
            elif not real and data.size:
                found.append(Expected(layer.index, EXACT, *place, zlib.crc32(data.tobytes())))
    return found


def _sum_in_order(data: Array) -> np.float32:
    """Return the sum of magnitudes as a loop over floats gives it."""
    magnitudes = np.abs(data.astype(np.float32)).reshape(-1)
    return np.float32(np.cumsum(magnitudes, dtype=np.float32)[-1] if data.size else 0)


def _layer_of(name: str) -> int:
    """Return the layer whose constants an array holds: the first one of several."""
    match = re.search(r"_layer(\d+)_", name)
    return int(match[1]) if match else 0
