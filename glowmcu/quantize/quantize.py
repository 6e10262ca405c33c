"""Quantization of a whole graph: calibrate, assign, realize."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from glowmcu.core.types import Array
from glowmcu.graph.graph import Graph
from glowmcu.quantize.assign import assign
from glowmcu.quantize.calibrate import Progress, calibrate
from glowmcu.quantize.observers import OBSERVERS
from glowmcu.quantize.realize import realize


def quantize(
    graph: Graph,
    samples: Sequence[Mapping[str, Array]],
    *,
    io: Literal["int8", "float"] = "int8",
    observer: Literal["minmax", "percentile"] = "minmax",
    progress: Progress | None = None,
) -> Graph:
    """Return the graph with Quantize/Dequantize pairs, which the graph passes then fuse.

    graph     the float network after the graph passes
    samples   typical inputs, a dict of arrays each
    io        int8: real inputs and outputs become int8 too; float: they stay as they are
    observer  how the range of a value is found: its extremes, or without its outliers
    """
    ranges = calibrate(graph, samples, OBSERVERS[observer], progress)
    return realize(graph, assign(graph, ranges), io)
