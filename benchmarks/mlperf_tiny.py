"""Print what the MLPerf Tiny int8 networks cost, beside TensorFlow Lite Micro with CMSIS-NN.

    python benchmarks/mlperf_tiny.py [--networks kws,vww] [--optimize balanced] [--targets M4]
                                     [--models DIR] [--functions]

The models are those of MLCommons Tiny converted to ONNX (NAME_int8.onnx). TensorFlow Lite Micro's
figures were measured with the same counting tool, compiler (arm-none-eabi-gcc 12.2, -O3) and
emulator; they are cited here, not measured again. Inputs are random; outputs are checked against
the host's bits.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import get_args

import numpy as np
from measure import ROOT, cost

from glowmcu.driver import Compilation, compile_network
from glowmcu.options import Optimize, Options
from glowmcu.verify.host import HostLibrary

NETWORKS = ("kws", "vww", "ic", "ad", "ww")
BOARDS = {
    "M4 cycles": ("cortex-m4", "mps2-an386"),
    "M55 instructions": ("cortex-m55", "mps3-an547"),
    "M0 instructions": ("cortex-m0", "mps2-an385"),
}
TFLM = {
    "M4 cycles": (9_336_000, 29_760_000, 36_320_000, 739_000, 2_694_000),
    "M55 instructions": (1_784_614, 6_433_139, 4_812_985, 149_916, 410_967),
    "M0 instructions": (29_000_000, 86_900_000, 97_600_000, 1_760_000, 9_320_000),
    "arena": (22_820, 100_708, 54_996, 2_580, 16_596),
    "flash": (
        52_780 + 53_936,
        52_780 + 333_288,
        50_584 + 98_496,
        27_228 + 276_976,
        50_244 + 74_520,
    ),
}


def compiled(models: Path, name: str, target: str, optimize: Optimize) -> Compilation:
    """Compile one network for a target."""
    options = Options(name=name, target=target, optimize=optimize)
    return compile_network(models / f"{name}_int8.onnx", options)


def sample_of(compilation: Compilation) -> dict[str, np.ndarray]:
    """Random stored inputs, the same at every call."""
    rng = np.random.default_rng(1)
    return {
        s.name: rng.integers(-128, 128, s.type.shape).astype(np.int8)
        for s in compilation.unit.inputs
    }


def rows_of(
    models: Path, name: str, optimize: Optimize, boards: list[str], functions: bool
) -> list[tuple[str, int, int]]:
    """Measure one network: (what, glowmcu, TensorFlow Lite Micro)."""
    column = NETWORKS.index(name)
    rows = []
    portable = compiled(models, name, "host", optimize)
    for what in boards:
        target, board = BOARDS[what]
        compilation = compiled(models, name, target, optimize)
        sample = sample_of(compilation)
        expected = HostLibrary(portable.unit).run(sample)
        found = cost(compilation.unit, board, sample, expected)
        value = found.cycles if "cycles" in what else found.instructions
        rows.append((what, value, TFLM[what][column]))
        if target == "cortex-m4":
            rows.append(("arena", compilation.plan.size, TFLM["arena"][column]))
            rows.append(("flash", found.flash, TFLM["flash"][column]))
            if functions:
                for function, instructions, cycles in found.functions[:12]:
                    print(f"    {function:<44}{instructions:>12,}{cycles:>12,}")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", default=",".join(NETWORKS))
    parser.add_argument("--optimize", choices=get_args(Optimize), default="balanced")
    parser.add_argument("--targets", default="M4,M55,M0", help="processors to measure on")
    parser.add_argument("--models", type=Path, default=ROOT.parent / "shared/mlperf_tiny/models")
    parser.add_argument("--functions", action="store_true", help="print the costliest functions")
    arguments = parser.parse_args()
    print(f"{'':<8}{'':<20}{'glowmcu':>14}{'TFLM+CMSIS-NN':>16}{'ratio':>8}")
    chosen = arguments.targets.split(",")
    boards = [what for what in BOARDS if what.split()[0] in chosen]
    for name in arguments.networks.split(","):
        found = rows_of(arguments.models, name, arguments.optimize, boards, arguments.functions)
        for what, ours, theirs in found:
            print(f"{name:<8}{what:<20}{ours:>14,}{theirs:>16,}{theirs / ours:>8.2f}")


if __name__ == "__main__":
    main()
