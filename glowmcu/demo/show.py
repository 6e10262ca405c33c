"""`glowmcu demo`: quantize, compile, run and draw the demo network."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.columns import Columns
from rich.console import Console
from rich.panel import Panel

from glowmcu import demo
from glowmcu.core.types import Array
from glowmcu.driver import compile_network
from glowmcu.errors import ToolMissingError, VerificationError
from glowmcu.options import Options
from glowmcu.targets.board import board as find_board
from glowmcu.verify.execute import run_unit

_ON_BOARD = 40
_DRAWN = 4


def run_demo(
    console: Console, board: str, folder: Path | None, progress: Callable[[str], None]
) -> None:
    """Run the whole way on handwritten digits and print what comes out.

    Raises VerificationError when the board's outputs are not the host's, bit for bit.
    """
    machine = find_board(board)
    options = Options(name="digits", target=machine.target, quantize="int8")
    compilation = compile_network(
        demo.model_path(), options, demo.calibration_path(), progress=progress
    )
    images, labels = demo.held_out()
    progress(f"running {len(images)} held-out digits on the host")
    on_host = _scores(run_unit(compilation.for_host().unit, images))
    progress(f"running {_ON_BOARD} of them on {board} in QEMU")
    same = _on_board(compilation.unit, images[:_ON_BOARD], on_host[:_ON_BOARD], board, console)

    console.print(_drawn(images, labels, on_host))
    report = compilation.unit.report
    correct = float((on_host.argmax(axis=1) == labels).mean())
    console.print(f"accuracy   {correct:.1%} of {len(labels)} held-out digits, int8")
    console.print(f"flash      {report['weights_bytes']:,} bytes of weights and constants")
    console.print(f"arena      {report['arena_bytes']:,} bytes of RAM, all there is")
    console.print(f"MACs       {report['macs']:,} per digit")
    if same:
        console.print(f"{board}: the bits of the host on all {_ON_BOARD} digits tried")
    if folder is not None:
        compilation.unit.write(folder)
        console.print(f"the C is in {folder}: start with digits.h", markup=False)


def _scores(outputs: dict[str, Array]) -> Array:
    (scores,) = outputs.values()
    return scores


def _on_board(unit: object, images: Array, expected: Array, board: str, console: Console) -> bool:
    try:
        got = _scores(run_unit(unit, images, board=board))  # type: ignore[arg-type]
    except ToolMissingError as error:
        console.print(f"not run on {board}: {error}", markup=False)
        return False
    if not np.array_equal(got, expected):
        raise VerificationError(f"{board} and the host give different bits")
    return True


def _drawn(images: Array, labels: Array, scores: Array) -> Columns:
    """Return the first digits side by side, each with its prediction."""
    panels = []
    for image, label, score in zip(images[:_DRAWN], labels, scores, strict=False):
        guess = int(score.argmax())
        mark = "" if guess == label else f", is {label}"
        panels.append(Panel(demo.draw_digit(image), title=f"a {guess}{mark}", expand=False))
    return Columns(panels)
