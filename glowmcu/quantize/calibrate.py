"""Calibration: run the float network on samples and note the range of every value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.types import Array
from glowmcu.errors import InvalidModelError, OptionError
from glowmcu.graph.evaluate import evaluate_all
from glowmcu.graph.graph import Graph, Value
from glowmcu.quantize.observers import Observer, Range

Progress = Callable[[int, int], None]


def calibrate(
    graph: Graph,
    samples: Sequence[Mapping[str, Array]],
    observer: Callable[[], Observer],
    progress: Progress | None = None,
) -> dict[Value, Range]:
    """Return the range of every float value over all samples, of its finite elements.

    A value that is never finite has no range (and stays float). Raises OptionError without
    samples, InvalidModelError when an output is never finite.
    """
    if not samples:
        raise OptionError(
            "there is no calibration data",
            why="the range of every layer is measured on samples",
            hint="give some tens of typical inputs with --calibration",
        )
    watched = {
        v: observer() for v in graph.values() if is_real(v) and not v.is_constant and v.type.numel
    }
    seen: set[Value] = set()
    for number, sample in enumerate(samples):
        for value, array in evaluate_all(graph, sample).items():
            if value not in watched:
                continue
            finite = array if np.isfinite(array).all() else array[np.isfinite(array)]
            if finite.size:
                watched[value].observe(finite)
                seen.add(value)
        if progress is not None:
            progress(number + 1, len(samples))
    for value in graph.outputs:
        if value in watched and value not in seen:
            raise InvalidModelError(
                f"the output '{value.name}' is not a finite number on any calibration sample",
                hint="check that the calibration data are what the network expects",
            )
    return {value: watcher.range() for value, watcher in watched.items() if value in seen}


def is_real(value: Value) -> bool:
    """Tell whether a value holds plain float32 numbers."""
    return value.type.dtype == dtypes.F32 and value.type.quant is None
