"""Run a code unit on data: on the host, or on an emulated board."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from glowmcu.core.types import Array
from glowmcu.frontend.samples import Samples, load_samples
from glowmcu.targets.board import board as find_board
from glowmcu.verify.board import run_on_board
from glowmcu.verify.extent import cropped, filled
from glowmcu.verify.host import HostLibrary

if TYPE_CHECKING:
    from glowmcu.emit.unit import CodeUnit, Slot


def run_unit(unit: CodeUnit, data: Samples, *, board: str | None = None) -> dict[str, Array]:
    """Return the outputs by name for one sample, or stacked along the first axis for several.

    Outputs whose shape depends on the data have the shape that they are found to have; of several
    samples, that of the largest, with zeros behind what the others have.

    data   see frontend.samples.load_samples
    board  name of a board to emulate; None: the host
    """
    samples = load_samples(data, unit.inputs)
    if board is not None:
        results = run_on_board(unit, find_board(board), samples).outputs
    else:
        library = HostLibrary(unit)
        results = [library.run(sample) for sample in samples]
    results = [cropped(r, unit.extents) for r in results]
    if len(results) == 1:
        return results[0]
    return {
        slot.name: _joined(unit, slot, [r[slot.name] for r in results]) for slot in unit.outputs
    }


def _joined(unit: CodeUnit, slot: Slot, arrays: list[Array]) -> Array:
    """Join samples along the batch axis where there is one, else along a new first axis."""
    if slot.name in unit.extents:
        arrays = filled(arrays)
    return np.concatenate(arrays) if slot.type.shape[:1] == (1,) else np.stack(arrays)
