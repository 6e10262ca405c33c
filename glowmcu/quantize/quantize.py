"""Quantization of a whole graph: measure, assign, realize."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from glowmcu.core.types import Array
from glowmcu.graph.graph import Graph
from glowmcu.quantize.assign import assign
from glowmcu.quantize.calibrate import Progress
from glowmcu.quantize.fit import Fitter
from glowmcu.quantize.profile import Profile, measure
from glowmcu.quantize.ranges import CHOOSERS
from glowmcu.quantize.realize import realize
from glowmcu.quantize.settings import Settings


def quantize(
    graph: Graph,
    samples: Sequence[Mapping[str, Array]],
    settings: Settings | None = None,
    *,
    profile: Profile | None = None,
    progress: Progress | None = None,
) -> Graph:
    """Return the graph with Quantize/Dequantize pairs, which the graph passes then fuse.

    graph    the float network after the graph passes
    samples  typical inputs, a dict of arrays each; may be empty where there is a profile, but
             then weights are rounded to the nearest and biases stay as they are
    profile  what was measured before; without it the network is measured on the samples
    """
    settings = settings or Settings()
    profile = profile or measure(graph, samples, settings, progress)
    real = profile.equalized(graph)
    observed = profile.of(real)
    choose = CHOOSERS[settings.observer]
    ranges = {v: choose(o.histogram) for v, o in observed.items()}
    quants = assign(real, ranges, settings.schema)
    fitter = Fitter(real, samples, settings) if samples else None
    return realize(real, quants, settings, fitter)
