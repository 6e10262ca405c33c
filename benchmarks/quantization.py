"""Measure what quantization loses on the MLPerf Tiny networks; write the table of the docs.

    python benchmarks/quantization.py [--networks kws,ad] [--rows int8,int16] [--write]

The networks' C for this machine runs on all samples: accuracy (ad: area under the ROC curve), how
often the class is the float network's, the ratio of signal to error of the outputs. Networks are
calibrated on the first 100 samples (ad: windows of the first 20 recordings), or on others: the
last 100, of ic 50, of ad 20. Models and data are those of ../shared/mlperf_tiny beside the
checkout. --write puts what was measured into the table between the marks in docs/quantization.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from glowmcu.core.types import Array, dequantize, quantize
from glowmcu.driver import Compilation, compile_network
from glowmcu.options import Options
from glowmcu.verify.host import HostLibrary

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "models"))
import networks  # noqa: E402

SHARED = ROOT.parent / "shared"
DOCUMENT = ROOT / "docs" / "quantization.md"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
INT8 = Options(quantize="int8")
TOOLS = INT8.tools


@dataclass(frozen=True)
class Row:
    """A way to quantize: its name in the table, options, and which samples calibrate."""

    title: str
    options: Options
    part: str = "first"


def without(tool: str) -> Options:
    """Return the defaults without one tool."""
    return replace(INT8, tools=tuple(t for t in TOOLS if t != tool))


GOALS = {"kws": "40dB", "ic": "36dB", "vww": "38dB", "ad": "47dB"}
"""What mixed precision is asked for: about half way, in decibels, from int8 to int16."""

ROWS: dict[str, Row] = {
    "float": Row("float", Options()),
    "int8": Row("int8", INT8),
    "int8-other": Row("int8, other samples", INT8, "other"),
    "int16": Row("int16", Options(quantize="int16")),
    "int16-other": Row("int16, other samples", Options(quantize="int16"), "other"),
    "mixed": Row("mixed", Options(quantize="mixed")),
    "mixed-other": Row("mixed, other samples", Options(quantize="mixed"), "other"),
    "none": Row("`--tools none`", replace(INT8, tools=())),
    "no-equalization": Row("without equalization", without("equalization")),
    "no-rounding": Row("without weight rounding", without("weight-rounding")),
    "no-bias": Row("without bias correction", without("bias-correction")),
    "clipping": Row("with weight clipping too", replace(INT8, tools=(*TOOLS, "weight-clipping"))),
    "percentile": Row("`--observer percentile`", replace(INT8, observer="percentile")),
    "entropy": Row("`--observer entropy`", replace(INT8, observer="entropy")),
    "mse": Row("`--observer mse`", replace(INT8, observer="mse")),
    "symmetric": Row("`--schema symmetric`", replace(INT8, schema="symmetric")),
    "uint8": Row("`--schema symmetric-uint8`", replace(INT8, schema="symmetric-uint8")),
    "power": Row("`--schema power-of-two`", replace(INT8, schema="power-of-two")),
    "per-tensor": Row("`--per-tensor`", replace(INT8, per_tensor=True)),
}


def calibration(name: str, x: Array, part: str) -> Array:
    """Return the samples to calibrate with."""
    count = {"ad": 20 * 196, "ic": 50 if part == "other" else 100}.get(name, 100)
    found = x[:count] if part == "first" else x[-count:]
    return found[::8] if name == "ad" else found


def outputs(found: Compilation, x: Array) -> Array:
    """Return the real outputs of the C, one row a sample."""
    library, slot = HostLibrary(found.unit), found.unit.inputs[0]
    result = found.unit.outputs[0]
    rows = []
    for sample in x:
        shaped = sample.reshape(slot.type.shape)
        if slot.type.quant is not None:
            shaped = quantize(shaped, slot.type.quant, slot.type.dtype)
        rows.append(library.run({slot.name: shaped})[result.name].reshape(-1))
    stacked = np.stack(rows)
    return dequantize(stacked, result.type.quant) if result.type.quant else stacked


def cell(name: str, x: Array, real: Array, found: Compilation, y: Array) -> str:
    """Return what the table says about one network."""
    truth = networks.labels(SHARED, name)
    if name == "ad":
        scores = np.square(y - x).mean(axis=1).reshape(-1, 196).mean(axis=1)
        text = f"{networks.auc(scores.astype(np.float64), truth):.3f}"
    else:
        text = f"{(y.argmax(1) == truth).mean():.4f}"
        if y is not real:
            text += f" ({(y.argmax(1) == real.argmax(1)).mean():.1%})"
    if y is not real:
        lost = np.square(y.astype(np.float64) - real).sum()
        text += f", {10 * np.log10(np.square(real, dtype=np.float64).sum() / lost):.0f} dB"
    return text + f", {found.plan.size / 1024:.1f} KiB"


def measure(name: str, rows: list[str]) -> Iterator[tuple[str, str]]:
    """Measure one network; give the title of each row and the cell."""
    x = networks.inputs(SHARED, name, "float")
    path = networks.model(SHARED, name, "float")
    plain = compile_network(path, Options())
    real = outputs(plain, x)
    for key in rows:
        row = ROWS[key]
        if key == "float":
            found, y = plain, real
        else:
            options = row.options
            if options.quantize == "mixed":
                options = replace(options, max_drop=GOALS[name])
            data = {plain.graph.inputs[0].name: calibration(name, x, row.part)}
            found = compile_network(path, options, data)
            y = outputs(found, x)
        yield row.title, cell(name, x, real, found, y)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", default=",".join(networks.FLOAT))
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--write", action="store_true", help="put it into the docs")
    arguments = parser.parse_args()
    names, rows = arguments.networks.split(","), arguments.rows.split(",")
    for name in names:
        for title, text in measure(name, rows):
            print(f"{name:<5}{title:<28}{text}", flush=True)
            if arguments.write:
                write(title, name, text)


def write(title: str, name: str, text: str) -> None:
    """Put a cell into the table of the docs; others stay as they are."""
    before, rest = DOCUMENT.read_text(encoding="utf-8").split(BEGIN)
    old, after = rest.split(END)
    table: dict[tuple[str, str], str] = {}
    heads, *body = [line.strip("| ").split(" | ") for line in old.strip().splitlines()] or [[]]
    for first, *texts in body[1:]:
        table.update(((first, head), t) for head, t in zip(heads, texts, strict=True))
    table[title, name] = text
    lines = ["| | " + " | ".join(networks.FLOAT) + " |", "| --- " * (len(networks.FLOAT) + 1) + "|"]
    for row in ROWS.values():
        texts = [table.get((row.title, n), "\u2013") for n in networks.FLOAT]
        if any((row.title, n) in table for n in networks.FLOAT):
            lines.append("| " + " | ".join((row.title, *texts)) + " |")
    joined = "\n".join(lines)
    DOCUMENT.write_text(f"{before}{BEGIN}\n{joined}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
