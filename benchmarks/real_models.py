"""Compiles networks that people deploy and writes docs/generated/real_models.md.

python benchmarks/real_models.py FOLDER    of .onnx files, each with its samples as .npz
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx

from glowmcu.driver import Compilation, compile_network
from glowmcu.onnx_backend import OPTIONS, Feeds, compile_for, inputs_of

PAGE = Path(__file__).parents[1] / "docs" / "generated" / "real_models.md"
_HEAD = """\
# Memory of networks that people deploy

Written by `python benchmarks/real_models.py FOLDER`, and compared by a test; do not edit.

The arena is all the RAM that a network needs but for the stack, inputs and outputs included. Below
it is what no plan that keeps whole tensors can go below: the most bytes that are live at one time,
results that are computed in place counted once. Chains of layers that run row by row may need less.

| network | weights, bytes | arena, bytes | live tensors, bytes | arena by live tensors |
|---|---|---|---|---|
"""


def data_of(path: Path, kind: str) -> list[np.ndarray]:
    """Return the recorded inputs ("in") or outputs ("out") of a network, in their order."""
    data = np.load(path.with_suffix(".npz"))
    return [data[f"{kind}_{i}"] for i in range(sum(n.startswith(kind) for n in data.files))]


def compiled(path: Path) -> tuple[Compilation, Feeds]:
    """Compile a network for its recorded inputs; return the inputs that remain."""
    model = onnx.load(str(path))
    feeds = dict(zip(inputs_of(model), data_of(path, "in"), strict=True))
    options = replace(OPTIONS, stripe=True, name=f"m_{path.stem.replace('.', '_')}")
    return compile_for(model, feeds, options)


def row(name: str, compilation: Compilation) -> str:
    """Return the line of the table for a network."""
    whole = compile_network(compilation.source, replace(compilation.options, stripe=False))
    arena, bound = compilation.plan.size, whole.plan.lower_bound
    weights = compilation.unit.report["weights_bytes"]
    return f"| {name} | {weights:,} | {arena:,} | {bound:,} | {arena / bound:.2f} |"


def page(rows: Sequence[str]) -> str:
    """Return the text of the page."""
    return _HEAD + "\n".join(rows) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    paths = sorted(folder.glob("*.onnx"), key=lambda p: p.name.lower())
    PAGE.write_text(page([row(p.stem, compiled(p)[0]) for p in paths]), encoding="utf-8")


if __name__ == "__main__":
    main()
