"""Mixed precision: the cheapest assignment that loses no more than asked, found by measuring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from glowmcu.core.types import Array, dequantize
from glowmcu.graph.evaluate import evaluate
from glowmcu.graph.graph import Graph, Node
from glowmcu.options import Precision
from glowmcu.passes.linear import operations
from glowmcu.quantize.calibrate import Sample
from glowmcu.quantize.explain import stored_sample
from glowmcu.quantize.goal import Judge, Quality
from glowmcu.quantize.ladder import PRICE, ladder, price
from glowmcu.quantize.precision import Plan, named_plan
from glowmcu.quantize.quantize import Quantizer
from glowmcu.quantize.sensitivity import measure_sensitivity
from glowmcu.quantize.storage import store

_FOR_SENSITIVITY = 8
_REFINEMENTS = 8


@dataclass(frozen=True)
class Trial:
    """A plan that was carried out and measured.

    price  multiplications, each counted with the bytes of its activation
    """

    plan: Plan
    qdq: Graph
    graph: Graph
    quality: Quality
    price: float


@dataclass(frozen=True)
class Found:
    """What the search found: the cheapest plan, and all of int8, int16 and float beside it.

    layers  the nodes that may have a precision
    met     whether the goal is met
    trials  how many plans were measured
    """

    chosen: Trial
    uniform: dict[Precision, Trial]
    layers: tuple[Node, ...]
    met: bool
    trials: int


@dataclass
class Search:
    """Tries plans for one network; every plan is measured at most once."""

    quantizer: Quantizer
    judge: Judge
    run_passes: Callable[[Graph], Graph]
    progress: Callable[[str], None]
    layers: tuple[Node, ...] = ()
    done: dict[tuple[Precision, ...], Trial] = field(default_factory=dict)

    def run(self) -> Found:
        """Climb the ladder as far as needed, then take back what turns out to be needless."""
        quantizer = self.quantizer
        base = named_plan(quantizer.real, quantizer.settings)
        storage = store(quantizer.real, quantizer.formats, quantizer.settings, base)
        kept = {n for n, precision in base.items() if precision != quantizer.settings.precision}
        self.layers = tuple(n for n in quantizer.real.nodes() if n in storage.computed)
        free = tuple(n for n in self.layers if n not in kept)
        some = quantizer.samples[:: max(1, len(quantizer.samples) // _FOR_SENSITIVITY)]
        found = measure_sensitivity(
            quantizer.real,
            storage,
            some[:_FOR_SENSITIVITY],
            lambda at, of: self.progress(f"measuring sensitivity, sample {at} of {of}"),
        )
        plans = ladder(base, free, storage, found)
        chosen = self._refine(self._climb(plans), base, free)
        uniform = {p: self.try_out({**base, **dict.fromkeys(free, p)}) for p in PRICE}
        met = self.judge.is_met(chosen.quality)
        return Found(chosen, uniform, self.layers, met, len(self.done))

    def try_out(self, plan: Plan) -> Trial:
        """Quantize the network by a plan and measure it on all samples."""
        key = tuple(plan[n] for n in self.layers)
        if key not in self.done:
            self.progress(f"trying assignment {len(self.done) + 1}")
            qdq = self.quantizer.quantize(plan)
            graph = self.run_passes(qdq)
            quality = self.judge.quality(outputs_of(graph, self.quantizer.samples))
            self.done[key] = Trial(plan, qdq, graph, quality, price(plan, self.layers))
        return self.done[key]

    def _climb(self, plans: Sequence[Plan]) -> Trial:
        """Return the lowest rung that meets the goal, by bisection; the last one if none does."""
        low, high = 0, len(plans) - 1
        if self.judge.is_met(self.try_out(plans[0]).quality):
            return self.try_out(plans[0])
        while low + 1 < high:
            middle = (low + high) // 2
            if self.judge.is_met(self.try_out(plans[middle]).quality):
                high = middle
            else:
                low = middle
        return self.try_out(plans[high])

    def _refine(self, trial: Trial, base: Plan, free: Sequence[Node]) -> Trial:
        """Take layers back to what they were, the costliest first, while the goal is met."""
        raised = [n for n in free if trial.plan[n] != base[n]]
        raised.sort(key=lambda n: -operations(n) * PRICE[trial.plan[n]])
        for node in raised[:_REFINEMENTS]:
            lower = self.try_out({**trial.plan, node: base[node]})
            if self.judge.is_met(lower.quality):
                trial = lower
        return trial


def outputs_of(graph: Graph, samples: Sequence[Sample]) -> list[Array]:
    """Return the real numbers of the outputs on every sample, all outputs of one joined."""
    found = []
    for sample in samples:
        arrays = evaluate(graph, stored_sample(graph, sample)).values()
        reals = [
            dequantize(a, v.type.quant) if v.type.quant else a
            for a, v in zip(arrays, graph.outputs, strict=True)
        ]
        found.append(reals[0] if len(reals) == 1 else _joined(reals))
    return found


def _joined(arrays: Sequence[Array]) -> Array:
    return np.concatenate([a.reshape(-1).astype(np.float64) for a in arrays])
