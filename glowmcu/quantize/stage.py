"""The stage between float and integer graph passes: what the driver calls."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from glowmcu.errors import OptionError
from glowmcu.graph.graph import Graph
from glowmcu.options import Options
from glowmcu.quantize.calibrate import Sample, check_samples
from glowmcu.quantize.explain import LayerError, layer_errors
from glowmcu.quantize.profile import Profile, load_profile, measure
from glowmcu.quantize.quantize import quantize
from glowmcu.quantize.settings import Settings

_EXPLAINED = 8
_BAR = 24


@dataclass(frozen=True)
class Quantized:
    """A quantized network and what became known on the way.

    profile  what calibration saw
    qdq      the network with Quantize/Dequantize pairs
    graph    the same after the graph passes, in integers
    errors   how far every layer is from float; empty without samples
    """

    settings: Settings
    profile: Profile
    qdq: Graph
    graph: Graph
    errors: tuple[LayerError, ...]

    def record(self) -> dict[str, Any]:
        """Return what report.json says about it."""
        return {
            "observer": self.settings.observer,
            "schema": self.settings.schema,
            "tools": list(self.settings.tools),
            "calibration_samples": self.profile.samples,
            "layers": [
                {"name": e.name, "op": e.op, "sqnr_db": round(e.sqnr, 2)}
                for e in self.errors
                if math.isfinite(e.sqnr)
            ],
        }


def quantize_stage(
    graph: Graph,
    samples: Sequence[Sample] | None,
    options: Options,
    run_passes: Callable[[Graph], Graph],
    progress: Callable[[str], None],
) -> Quantized:
    """Quantize a float network with samples, or from the profile that the options name."""
    settings = Settings.of(options)
    if options.profile is None and samples is None:
        raise OptionError(
            "quantizing to int8 needs calibration data",
            why="the ranges of the activations are measured on real inputs",
            hint="give --calibration FILE.npz with a few dozen typical inputs",
        )
    samples = samples or ()
    if options.profile is not None:
        profile = load_profile(Path(options.profile), graph)
        if samples:
            check_samples(graph, samples)
    else:
        profile = measure(graph, samples, settings, lambda *at: progress(_calibrating(*at)))
    progress("quantizing")
    qdq = quantize(graph, samples, settings, profile=profile)
    integer = run_passes(qdq)
    errors = layer_errors(profile.equalized(graph), integer, samples[:_EXPLAINED])
    return Quantized(settings, profile, qdq, integer, tuple(errors))


def _calibrating(done: int, total: int) -> str:
    filled = done * _BAR // total
    return f"calibrating {'█' * filled}{'░' * (_BAR - filled)} {done}/{total}"
