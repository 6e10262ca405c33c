"""What a quantized network may lose, and how much one has lost: classes, or signal to error."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glowmcu.core.types import Array
from glowmcu.errors import InvalidModelError, OptionError
from glowmcu.graph.graph import Graph

DEFAULT_DROP = "0.5%"


@dataclass(frozen=True)
class Goal:
    """The most that may be lost: a share of the samples, or else the least ratio in decibels."""

    share: float | None = None
    decibels: float | None = None

    @staticmethod
    def parse(text: str) -> Goal:
        """Read "0.5%" or "40dB"."""
        found = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*(%|dB)\s*", text, re.IGNORECASE)
        if found is None:
            raise OptionError(
                f"--max-drop '{text}' is neither a percentage nor decibels",
                hint="write 0.5% (of the samples) or 40dB (least signal/error at the outputs)",
            )
        number = float(found[1])
        return Goal(share=number / 100) if found[2] == "%" else Goal(decibels=number)

    def __str__(self) -> str:
        return f"{self.decibels:g}dB" if self.share is None else f"{self.share * 100:g}%"


@dataclass(frozen=True)
class Quality:
    """How good a network's outputs are.

    accuracy   share of the samples in their class; None without labels
    agreement  share in the class that the float network gives; None where there are no classes
    sqnr       power of the float outputs over that of the error, in decibels
    """

    accuracy: float | None
    agreement: float | None
    sqnr: float


@dataclass(frozen=True)
class Judge:
    """Compares outputs with those of the float network, and with labels where there are any.

    real    the float network's outputs, an array a sample each
    labels  the class of every sample
    tells   the only output tells a class, by its largest element along `axis`
    """

    goal: Goal
    real: tuple[Array, ...]
    labels: Array | None
    tells: bool
    axis: int = -1

    @staticmethod
    def of(goal: Goal, graph: Graph, real: Sequence[Array], labels: Array | None) -> Judge:
        """Check that classes can be told where the goal needs them."""
        shape = graph.outputs[0].shape if len(graph.outputs) == 1 else ()
        axis = 1 if len(shape) > 3 else -1
        tells = bool(shape) and shape[axis] > 1
        if not tells and (goal.share is not None or labels is not None):
            kinds = ", ".join(f"'{n}'" for n in graph.output_names)
            raise OptionError(
                f"the network's outputs ({kinds}) do not tell a class",
                why="a class is the largest element of the only output, along its last axis"
                " (of images along the second)",
                hint="give the least signal/error instead, --max-drop 40dB, and no labels",
            )
        if labels is not None:
            labels = _checked(labels, shape, axis, len(real))
        return Judge(goal, tuple(real), labels, tells, axis)

    def quality(self, outputs: Sequence[Array]) -> Quality:
        """Return how good these outputs are, an array a sample each."""
        signal = noise = 0.0
        for a, b in zip(self.real, outputs, strict=True):
            known = np.isfinite(a)
            signal += float(np.square(a[known], dtype=np.float64).sum())
            noise += float(np.square(a[known].astype(np.float64) - b[known]).sum())
        ratio = math.inf if noise == 0 else 10 * math.log10(max(signal, 1e-300) / noise)
        if not self.tells:
            return Quality(None, None, ratio)
        got, wanted = self._classes(outputs), self._classes(self.real)
        right = None if self.labels is None else float((got == self.labels).mean())
        return Quality(right, float((got == wanted).mean()), ratio)

    def is_met(self, quality: Quality) -> bool:
        """Tell whether the goal is met."""
        if self.goal.decibels is not None:
            return quality.sqnr >= self.goal.decibels
        assert self.goal.share is not None
        assert quality.agreement is not None
        lost = 1.0 - quality.agreement
        if self.labels is not None and quality.accuracy is not None:
            right = float((self._classes(self.real) == self.labels).mean())
            lost = right - quality.accuracy
        return lost <= self.goal.share + 1e-9

    def _classes(self, outputs: Sequence[Array]) -> Array:
        return np.stack([a.argmax(axis=self.axis).reshape(-1) for a in outputs])


def _checked(labels: Array, shape: tuple[int, ...], axis: int, samples: int) -> Array:
    """Return labels as an array [samples, places]; refuse those that do not go with the samples."""
    places = math.prod(shape) // shape[axis]
    if labels.size != samples * places or labels.shape[:1] != (samples,):
        raise InvalidModelError(
            f"labels of shape {labels.shape} do not go with {samples} calibration samples",
            why=f"the output {shape} tells a class for {places} places of each",
            hint="give the number of a class for each, in the order of the samples",
        )
    if labels.dtype.kind not in "iu":
        raise InvalidModelError(
            f"the labels are {labels.dtype}, not integers", hint="a label is a class's number"
        )
    if labels.min() < 0 or labels.max() >= shape[axis]:
        worst = int(labels.min() if labels.min() < 0 else labels.max())
        raise InvalidModelError(
            f"label {worst} is none of the network's {shape[axis]} classes",
            why="a label is the index of the output's largest element, from 0",
        )
    return labels.reshape(samples, places)
