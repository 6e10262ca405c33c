"""Run the MLPerf Tiny int8 networks on every emulated board; write docs/generated/mlperf_tiny.md.

    python benchmarks/board_table.py [--models DIR]

Every network is compiled for the processor of the board and runs on one random sample; its outputs
must be those of this machine, bit for bit.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from glowmcu.driver import compile_network
from glowmcu.errors import DoesNotFitError
from glowmcu.options import Options
from glowmcu.show import markdown_table
from glowmcu.targets.board import Board, emulated_boards
from glowmcu.verify.board import run_on_board
from glowmcu.verify.host import HostLibrary
from glowmcu.verify.typical import typical_sample

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "docs" / "generated" / "mlperf_tiny.md"
NETWORKS = ("kws", "vww", "ic", "ad", "ww")
HEADINGS = ("network", "board", "processor", "flash", "arena", "stack", "instructions", "bits")
_TEXT = """\
# The MLPerf Tiny networks on the emulated boards

Written by `python benchmarks/board_table.py`; do not edit. int8 networks, one inference each, built
with -O2 and run in QEMU. Flash is the whole image: weights, code, the C library, and a main that
reads samples and counts instructions. Arena and stack are bytes of RAM; stack is measured.
"bits" tells whether the outputs are those of the host.

{table}
"""


def row(models: Path, network: str, board: Board) -> tuple[str, ...]:
    """Return the figures of one network on one board."""
    options = Options(name=network, target=board.target)
    compilation = compile_network(models / f"{network}_int8.onnx", options)
    unit = compilation.unit
    sample = typical_sample(unit.inputs)
    expected = HostLibrary(compilation.for_host().unit).run(sample)
    start = (network, board.name, board.target)
    try:
        result = run_on_board(unit, board, [sample], profile=True, timeout=300)
    except DoesNotFitError as error:
        missing = error.problems[0].why.split(";")[0]
        return (*start, "-", f"{unit.arena_size:,}", "-", "-", f"does not fit: {missing}")
    same = all(np.array_equal(result.outputs[0][n], a) for n, a in expected.items())
    return (
        *start,
        f"{result.footprint.flash:,}",
        f"{unit.arena_size:,}",
        f"{result.stack:,}",
        f"{sum(result.instructions[0]):,}",
        "equal" if same else "DIFFERENT",
    )


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    models = ROOT.parent / "shared" / "mlperf_tiny" / "models"
    parser.add_argument("--models", type=Path, default=models, help="folder of NAME_int8.onnx")
    arguments = parser.parse_args()
    rows = []
    for network in NETWORKS:
        for board in emulated_boards():
            rows.append(row(arguments.models, network, board))
            print(*rows[-1], sep="  ", flush=True)
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    text = _TEXT.format(table=markdown_table((HEADINGS, rows)))
    OUTPUT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
