"""The stage between float and integer graph passes: what the driver calls."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from glowmcu.core.types import Array
from glowmcu.errors import OptionError
from glowmcu.graph.graph import Graph
from glowmcu.options import Options
from glowmcu.quantize.calibrate import Sample, check_samples
from glowmcu.quantize.explain import LayerError, layer_errors
from glowmcu.quantize.goal import DEFAULT_DROP, Goal, Judge
from glowmcu.quantize.narrow import single_precision
from glowmcu.quantize.precision import named_plan
from glowmcu.quantize.profile import Profile, load_profile, measure
from glowmcu.quantize.quantize import Quantizer
from glowmcu.quantize.search import Search, outputs_of
from glowmcu.quantize.settings import Settings
from glowmcu.quantize.tradeoff import Appraise, Mixed

_EXPLAINED = 8
_BAR = 24


@dataclass(frozen=True)
class Quantized:
    """A quantized network and what became known on the way.

    profile  what calibration saw
    qdq      the network with Quantize/Dequantize pairs
    graph    the same after the graph passes, in integers
    errors   how far every layer is from float; empty without samples
    mixed    how the precision of the layers was chosen, where it was
    """

    settings: Settings
    profile: Profile
    qdq: Graph
    graph: Graph
    errors: tuple[LayerError, ...]
    mixed: Mixed | None = None

    def record(self) -> dict[str, Any]:
        """Return what report.json says about it."""
        return {
            "observer": self.settings.observer,
            "schema": self.settings.schema,
            "tools": list(self.settings.tools),
            "calibration_samples": self.profile.samples,
            "mixed": None if self.mixed is None else self.mixed.record(),
            "layers": [
                {"name": e.name, "op": e.op, "stored": e.stored, "sqnr_db": round(e.sqnr, 2)}
                for e in self.errors
                if math.isfinite(e.sqnr)
            ],
        }

    def notes(self) -> tuple[str, ...]:
        """Return sentences that whoever compiles should see."""
        return () if self.mixed is None else (f"Mixed precision: {self.mixed.sentence()}",)


@dataclass(frozen=True)
class Stage:
    """What quantization needs of the compiler around it.

    run_passes  the graph passes, which make integers of Quantize/Dequantize pairs
    try_passes  the same for a graph that may be thrown away: nobody is told of them
    appraise    what a network costs once it is compiled
    progress    told what is being done
    """

    options: Options
    run_passes: Callable[[Graph], Graph]
    try_passes: Callable[[Graph], Graph]
    appraise: Appraise
    progress: Callable[[str], None]

    def run(
        self, graph: Graph, samples: Sequence[Sample] | None, labels: Array | None = None
    ) -> Quantized:
        """Quantize a float network with samples, or from the profile that the options name."""
        self._check(samples)
        narrow = single_precision(graph)
        graph = graph if narrow is graph else self.run_passes(narrow)
        settings = Settings.of(self.options)
        profile = self._profile(graph, samples or (), settings)
        quantizer = Quantizer.of(graph, samples or (), settings, profile)
        self.progress("quantizing")
        mixed = None
        if self.options.quantize == "mixed":
            qdq, mixed = self._search(graph, quantizer, labels)
        else:
            qdq = quantizer.quantize(named_plan(quantizer.real, settings))
        integer = self.run_passes(qdq)
        errors = layer_errors(quantizer.real, integer, quantizer.samples[:_EXPLAINED])
        return Quantized(settings, profile, qdq, integer, tuple(errors), mixed)

    def _check(self, samples: Sequence[Sample] | None) -> None:
        """Refuse what cannot be done without data, and options that would go unheeded."""
        options = self.options
        if options.profile is None and samples is None:
            raise OptionError(
                f"quantizing to {options.quantize} needs calibration data",
                why="the ranges of the activations are measured on real inputs",
                hint="give --calibration FILE.npz with a few dozen typical inputs",
            )
        if options.quantize == "mixed" and not samples:
            raise OptionError(
                "mixed precision needs calibration data, a profile is not enough",
                why="what each assignment loses is measured on samples",
                hint="give --calibration FILE.npz beside --profile",
            )

    def _profile(self, graph: Graph, samples: Sequence[Sample], settings: Settings) -> Profile:
        if self.options.profile is None:
            return measure(graph, samples, settings, lambda *at: self.progress(_calibrating(*at)))
        profile = load_profile(Path(self.options.profile), graph)
        if samples:
            check_samples(graph, samples)
        return profile

    def _search(
        self, graph: Graph, quantizer: Quantizer, labels: Array | None
    ) -> tuple[Graph, Mixed]:
        """Choose the precision of every layer."""
        goal = Goal.parse(self.options.max_drop or DEFAULT_DROP)
        real = outputs_of(graph, quantizer.samples)
        judge = Judge.of(goal, graph, real, labels)
        found = Search(quantizer, judge, self.try_passes, self.progress).run()
        self.progress("comparing costs")
        mixed = Mixed.of(goal, found, self.appraise)
        return found.chosen.qdq, mixed


def check_options(options: Options) -> None:
    """Refuse options that would go unheeded; what mixed precision may lose must be readable."""
    given = {"--max-drop": options.max_drop, "--labels": options.labels}
    for name, value in given.items():
        if value is not None and options.quantize != "mixed":
            raise OptionError(
                f"{name} goes with --quantize mixed, not with --quantize {options.quantize}",
                hint="give --quantize mixed, or leave it out",
            )
    if options.max_drop is not None:
        Goal.parse(options.max_drop)


def _calibrating(done: int, total: int) -> str:
    filled = done * _BAR // total
    return f"calibrating {'█' * filled}{'░' * (_BAR - filled)} {done}/{total}"
