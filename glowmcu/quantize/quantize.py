"""Quantization of a whole graph: measure, assign, realize."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from glowmcu.core.types import Array
from glowmcu.graph.graph import Graph
from glowmcu.quantize.assign import assign
from glowmcu.quantize.calibrate import Progress
from glowmcu.quantize.fit import Fitter
from glowmcu.quantize.precision import Plan, named_plan
from glowmcu.quantize.profile import Profile, measure
from glowmcu.quantize.ranges import CHOOSERS
from glowmcu.quantize.realize import realize
from glowmcu.quantize.settings import Settings
from glowmcu.quantize.storage import WIDTHS, Formats


@dataclass(frozen=True)
class Quantizer:
    """A float network with the scales of its values, to be quantized in one or several ways.

    real     the network, its channels equalized; plans are of its nodes
    samples  typical inputs; without them weights are rounded to the nearest
    """

    real: Graph
    formats: Formats
    settings: Settings
    samples: Sequence[Mapping[str, Array]]

    @staticmethod
    def of(
        graph: Graph,
        samples: Sequence[Mapping[str, Array]],
        settings: Settings,
        profile: Profile,
    ) -> Quantizer:
        """Find the scales of a float network's values from its profile."""
        real = profile.equalized(graph)
        observed = profile.of(real)
        choose = CHOOSERS[settings.observer]
        ranges = {v: choose(o.histogram) for v, o in observed.items()}
        formats = {d: assign(real, ranges, settings.schema, d) for d in WIDTHS.values()}
        return Quantizer(real, formats, settings, samples)

    def quantize(self, plan: Plan) -> Graph:
        """Return the network with Quantize/Dequantize pairs for the precision of every node."""
        fitter = Fitter(self.real, self.samples, self.settings) if self.samples else None
        return realize(self.real, self.formats, self.settings, plan, fitter)


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
    quantizer = Quantizer.of(graph, samples, settings, profile)
    return quantizer.quantize(named_plan(quantizer.real, settings))
