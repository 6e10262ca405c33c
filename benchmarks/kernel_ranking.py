"""Print how well the estimates that choose kernels agree with what the kernels cost.

    python benchmarks/kernel_ranking.py [--networks kws,ic] [--models DIR]

Every convolution, depthwise and dense layer of the MLPerf Tiny int8 networks that several kernels
for the Cortex-M4 accept is measured alone with each of them (those estimated at five times the best
aside), outputs are checked, and estimates stand beside cycles of the Cortex-M4 model. `loss` is how
much slower the kernel is that --optimize speed takes than the fastest one.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from measure import ROOT, cost

from glowmcu.core import dtypes
from glowmcu.core.types import TensorType
from glowmcu.driver import compile_network
from glowmcu.emit.emitter import emit
from glowmcu.emit.unit import ModelInfo
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.cost import cycles
from glowmcu.instr.evaluate import evaluate
from glowmcu.instr.function import Function
from glowmcu.instr.instruction import Instruction
from glowmcu.memory.plan import plan
from glowmcu.options import Options
from glowmcu.targets.kernel import Kernel
from glowmcu.targets.select import select
from glowmcu.targets.target import target

NETWORKS = ("kws", "vww", "ic", "ad", "ww")
M4, BOARD = target("cortex-m4"), "mps2-an386"
OPTIONS = Options(name="layer", target=M4.name, optimize="speed", specialize="all")


@dataclass(frozen=True)
class Layer:
    """One layer: estimated and measured cycles of every kernel; `chosen` is what speed takes."""

    network: str
    instruction: Instruction
    chosen: str
    estimated: dict[str, float]
    measured: dict[str, int]

    @property
    def loss(self) -> float:
        """By what part the chosen kernel is slower than the fastest one."""
        return self.measured[self.chosen] / min(self.measured.values()) - 1

    @property
    def agreement(self) -> float:
        """The part of all pairs of kernels that estimates and cycles put in the same order.

        Pairs within 2 % of each other are in any order.
        """
        names = list(self.measured)
        pairs = [(a, b) for n, a in enumerate(names) for b in names[n + 1 :]]
        right = 0
        for a, b in pairs:
            near = abs(self.measured[a] / self.measured[b] - 1) < 0.02
            order = self.estimated[a] < self.estimated[b]
            right += near or order == (self.measured[a] < self.measured[b])
        return right / len(pairs) if pairs else 1.0


def layers_of(network: str, path: Path, far: float = 5.0) -> Iterator[Layer]:
    """Yield the measured layers of a network, those that are alike once.

    far  kernels estimated at so many times the best one's cycles are left out
    """
    lowered = compile_network(path, Options(name=network)).lowered
    seen = set()
    for instruction in lowered.instructions:
        kernels = _kernels(instruction, far)
        symbols = [k.symbol for k in kernels]
        facts = {k: v for k, v in instruction.attributes().items() if "zero" not in k}
        key = type(instruction).__name__, repr(facts), str(symbols)
        if not instruction.macs or len(kernels) < 2 or key in seen:
            continue
        seen.add(key)
        yield Layer(
            network,
            instruction,
            select(instruction, M4, "speed").symbol,
            {k.symbol: cycles(instruction, k) for k in kernels},
            {k.symbol: measured(instruction, k) for k in kernels},
        )


def _kernels(instruction: Instruction, far: float) -> list[Kernel]:
    able = [
        k
        for k in instruction.kernels
        if k.requires <= M4.capabilities and not k.accepts(instruction)
    ]
    best = min((cycles(instruction, k) for k in able), default=0.0)
    return [k for k in able if cycles(instruction, k) <= far * best]


def measured(instruction: Instruction, kernel: Kernel) -> int:
    """Return the cycles of one instruction with a kernel, on random inputs."""
    size = kernel.scratch(instruction)
    scratch = Buffer("scratch", TensorType(dtypes.U8, (size,)), "scratch") if size else None
    bound = replace(instruction, kernel=kernel, scratch=scratch)  # type: ignore[type-var]
    inputs = tuple(b for b in bound.inputs() if b.root.kind != "constant")
    outputs = bound.outputs()
    renamed = {b: Buffer(f"t{n}", b.type, b.kind) for n, b in enumerate((*inputs, *outputs))}
    bound = bound.with_buffers(renamed)
    inputs, outputs = (tuple(renamed[b] for b in group) for group in (inputs, outputs))
    names = tuple(b.name for b in outputs)
    function = Function("layer", inputs, outputs, names, (bound,))
    unit = emit(function, plan(function, M4.align), M4, OPTIONS, ModelInfo("layer"))
    rng = np.random.default_rng(3)
    sample = {
        b.name: rng.integers(-128, 128, b.type.shape).astype(b.type.dtype.numpy) for b in inputs
    }
    return cost(unit, BOARD, sample, evaluate(function, sample)).cycles


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", default=",".join(NETWORKS))
    parser.add_argument("--models", type=Path, default=ROOT.parent / "shared/mlperf_tiny/models")
    given = parser.parse_args()
    found: list[Layer] = []
    for network in given.networks.split(","):
        for layer in layers_of(network, given.models / f"{network}_int8.onnx"):
            found.append(layer)
            shapes = ", ".join(str(list(b.type.shape)) for b in layer.instruction.outputs())
            print(
                f"{network} {type(layer.instruction).__name__} {shapes}: "
                f"{layer.instruction.macs:,} MACs, loss {100 * layer.loss:.1f} %"
            )
            for symbol, taken in sorted(layer.measured.items(), key=lambda item: item[1]):
                mark = "*" if symbol == layer.chosen else " "
                guess = layer.estimated[symbol]
                each = taken / layer.instruction.macs
                print(
                    f"  {mark} {symbol:<28}{taken:>12,}{each:>7.2f}/MAC"
                    f"  estimated {guess:>12,.0f} ({100 * (guess / taken - 1):+.0f} %)"
                )
    agreement = sum(layer.agreement for layer in found) / len(found)
    worst = max(layer.loss for layer in found)
    print(
        f"{len(found)} layers: {100 * agreement:.0f} % of pairs in order, worst loss "
        f"{100 * worst:.1f} %"
    )


if __name__ == "__main__":
    main()
