"""Print what the MLPerf Tiny networks cost, beside what others measured and published.

    python benchmarks/mlperf_tiny.py [--networks kws,vww] [--only M4,arena] [--models DIR]
                                     [--functions] [--write]

int8: TensorFlow Lite Micro (August 2026) with CMSIS-NN (July 2026), and on the Cortex-M4 the best
closed result of MLPerf Tiny 1.0 to 1.3. Float on the Cortex-M4F: the best of TensorFlow Lite Micro,
onnx2c and emx-onnx-cgen. TensorFlow Lite Micro's and the float figures were measured with the same
counting tool, compiler (arm-none-eabi-gcc 12.2, -O3) and emulator; MLPerf's are clock by
inferences per second, flash wait states included. They are cited here, not measured again. The
models are those of MLCommons Tiny converted to ONNX (NAME_int8.onnx, NAME_float.onnx). Inputs are
random; outputs are checked against the host's.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from measure import ROOT, Cost, cost

from glowmcu.driver import Compilation, compile_network
from glowmcu.options import Optimize, Options
from glowmcu.show import markdown_table
from glowmcu.verify.host import HostLibrary

OUTPUT = ROOT / "docs" / "generated" / "speed.md"
NETWORKS = ("kws", "vww", "ic", "ad", "ww")
BOARDS = {
    "M4": ("cortex-m4", "mps2-an386", "cycles"),
    "M55": ("cortex-m55", "mps3-an547", "instructions"),
    "M3": ("cortex-m3", "mps2-an385", "instructions"),
    "M0": ("cortex-m0", "mps2-an385", "instructions"),
}
TFLM = {
    "M4": (9_336_000, 29_760_000, 36_320_000, 739_000, 2_694_000),
    "M55": (1_784_614, 6_433_139, 4_812_985, 149_916, 410_967),
    "M3": (10_540_000, 32_100_000, 41_800_000, 955_844, 4_270_000),
    "M0": (29_000_000, 86_900_000, 97_600_000, 1_760_000, 9_320_000),
    "arena": (22_820, 100_708, 54_996, 2_580, 16_596),
    "flash": (106_716, 386_068, 149_080, 304_204, 124_764),
}
RECORDS = {"M4": (5_180_000, 10_670_000, 19_800_000, 486_000)}
FLOAT = {"M4": (15_400_000, 48_600_000, 88_100_000, 1_610_000)}
"""Instructions."""
MODES: tuple[Optimize, ...] = ("size", "balanced", "speed")
HEADINGS = ("network", "", *MODES, "rival", "ratio", "record", "ratio")


@dataclass(frozen=True)
class Row:
    """One figure of a network by --optimize, what the rival needs, and the published record."""

    network: str
    what: str
    ours: dict[Optimize, int]
    rival: int
    record: int | None = None

    def cells(self) -> tuple[str, ...]:
        """Return the row as text; ratios are those of balanced."""
        ours = [
            f"{self.ours[o]:,}" if o in self.ours else "" for o in ("size", "balanced", "speed")
        ]
        mine = self.ours["balanced"]
        record = ("", "")
        if self.record:
            record = f"{self.record:,}", f"{self.record / mine:.2f}"
        rival = f"{self.rival:,}", f"{self.rival / mine:.2f}"
        return (self.network, self.what, *ours, *rival, *record)


def compiled(models: Path, name: str, kind: str, target: str, optimize: Optimize) -> Compilation:
    """Compile one network for a target."""
    options = Options(name=name, target=target, optimize=optimize)
    return compile_network(models / f"{name}_{kind}.onnx", options)


def sample_of(compilation: Compilation) -> dict[str, np.ndarray]:
    """Random inputs, the same at every call."""
    rng = np.random.default_rng(1)
    return {
        s.name: rng.integers(-128, 128, s.type.shape).astype(s.type.dtype.numpy)
        for s in compilation.unit.inputs
    }


def measured(compilation: Compilation, board: str) -> Cost:
    """Run a network on a board."""
    sample = sample_of(compilation)
    expected = HostLibrary(compilation.for_host().unit).run(sample)
    return cost(compilation.unit, board, sample, expected)


def rows_of(models: Path, name: str, only: list[str], functions: bool) -> Iterator[Row]:
    """Yield what one int8 network costs."""
    column = NETWORKS.index(name)
    for processor in (p for p in BOARDS if p in only):
        target, board, unit = BOARDS[processor]
        modes = MODES if processor == "M4" else MODES[1:2]
        compilations = {o: compiled(models, name, "int8", target, o) for o in modes}
        costs = {o: measured(c, board) for o, c in compilations.items()}
        ours = {o: getattr(c, unit) for o, c in costs.items()}
        records = RECORDS.get(processor, ())
        record = records[column] if column < len(records) else None
        yield Row(name, f"{processor} {unit}", ours, TFLM[processor][column], record)
        if processor == "M4":
            arenas = {o: c.plan.size for o, c in compilations.items()}
            yield Row(name, "M4 arena", arenas, TFLM["arena"][column])
            images = {o: c.flash for o, c in costs.items()}
            yield Row(name, "M4 flash", images, TFLM["flash"][column])
            if functions:
                for function, instructions, cycles in costs["balanced"].functions[:12]:
                    print(f"    {function:<44}{instructions:>12,}{cycles:>12,}")


def float_row(models: Path, name: str) -> Row:
    """Return what a float network costs."""
    found = measured(compiled(models, name, "float", "cortex-m4", "balanced"), BOARDS["M4"][1])
    rival = FLOAT["M4"][NETWORKS.index(name)]
    return Row(name, "M4F float instructions", {"balanced": found.instructions}, rival)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", default=",".join(NETWORKS))
    parser.add_argument("--only", default="M4,M55,M3,M0,float", help="processors; float")
    parser.add_argument("--models", type=Path, default=ROOT.parent / "shared/mlperf_tiny/models")
    parser.add_argument("--functions", action="store_true", help="print the costliest functions")
    parser.add_argument("--write", action="store_true", help=f"write {OUTPUT.relative_to(ROOT)}")
    given = parser.parse_args()
    only = given.only.split(",")
    rows: list[Row] = []
    for name in given.networks.split(","):
        for row in rows_of(given.models, name, only, given.functions):
            rows.append(row)
            print(*row.cells(), sep="  ", flush=True)
        if "float" in only and (given.models / f"{name}_float.onnx").is_file():
            rows.append(float_row(given.models, name))
            print(*rows[-1].cells(), sep="  ", flush=True)
    text = markdown_table((HEADINGS, [r.cells() for r in rows]))
    print(text)
    if given.write:
        about = "\n\n".join(__doc__.split("\n\n")[2:])
        head = "# What the MLPerf Tiny networks cost\n\n"
        head += "Written by `python benchmarks/mlperf_tiny.py --write`; do not edit.\n\n"
        notes = "Flash is the whole image with its test data. Ratios are those of `balanced`.\n\n"
        OUTPUT.write_text(f"{head}{about}\n{notes}{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
