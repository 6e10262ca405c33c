"""Calibration: run the float network on samples and count the numbers that every value takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.types import Array
from glowmcu.errors import InvalidModelError, OptionError
from glowmcu.graph.evaluate import evaluate_all
from glowmcu.graph.graph import Graph, Value
from glowmcu.quantize.histogram import Histogram

Progress = Callable[[int, int], None]
Sample = Mapping[str, Array]


@dataclass
class Observed:
    """What is known of one value: a histogram, and the largest magnitude of each channel."""

    histogram: Histogram = field(default_factory=Histogram)
    channels: Array | None = None

    def observe(self, array: Array) -> None:
        """Take note of one array; only its finite elements count."""
        finite = np.isfinite(array)
        known = array if finite.all() else array[finite]
        if not known.size:
            return
        self.histogram.observe(known)
        if array.ndim > 1:
            largest = np.abs(np.where(finite, array, 0)).reshape(-1, array.shape[-1]).max(axis=0)
            old = self.channels
            self.channels = largest if old is None else np.maximum(old, largest)


def calibrate(
    graph: Graph, samples: Sequence[Sample], progress: Progress | None = None
) -> dict[Value, Observed]:
    """Return what every float value takes over all samples.

    A value that is never finite is left out (and stays float). Raises OptionError without
    samples, InvalidModelError when the samples are of no use or an output is never finite.
    """
    check_samples(graph, samples)
    watched = {v: Observed() for v in graph.values() if is_activation(v)}
    for number, sample in enumerate(samples):
        for value, array in evaluate_all(graph, sample).items():
            if value in watched:
                watched[value].observe(array)
        if progress is not None:
            progress(number + 1, len(samples))
    seen = {v: w for v, w in watched.items() if len(w.histogram.counts)}
    for value in graph.outputs:
        if value in watched and value not in seen:
            raise InvalidModelError(
                f"the output '{value.name}' is not a finite number on any calibration sample",
                hint="check that the calibration data are what the network expects",
            )
    return seen


def check_samples(graph: Graph, samples: Sequence[Sample]) -> None:
    """Refuse calibration data that say nothing about the network."""
    if not samples:
        raise OptionError(
            "there is no calibration data",
            why="the range of every layer is measured on samples",
            hint="give some tens of typical inputs with --calibration",
        )
    for value in graph.inputs:
        if not is_activation(value):
            continue
        arrays = [np.asarray(sample[value.name]) for sample in samples]
        for number, array in enumerate(arrays):
            if not np.isfinite(array).all():
                raise InvalidModelError(
                    f"calibration sample {number} of input '{value.name}' has NaN or infinity",
                    hint="remove the sample or mend the data",
                )
        first = arrays[0].reshape(-1)[0]
        if value.type.numel > 1 and all((array == first).all() for array in arrays):
            raise InvalidModelError(
                f"the calibration data of input '{value.name}' are {first:g} everywhere",
                why="a constant says nothing about the ranges of the layers",
                hint="give typical inputs",
            )


def is_real(value: Value) -> bool:
    """Tell whether a value holds plain float32 numbers."""
    return value.type.dtype == dtypes.F32 and value.type.quant is None


def is_activation(value: Value) -> bool:
    """Tell whether a value holds float32 numbers that depend on the input."""
    return is_real(value) and not value.is_constant and value.type.numel > 0
