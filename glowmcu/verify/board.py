"""Run a network on a board under QEMU: samples in, the outputs of every sample out."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import numpy as np

from glowmcu.core.types import Array
from glowmcu.emit.unit import CodeUnit, Slot
from glowmcu.errors import VerificationError
from glowmcu.targets.board import Board, board, list_boards
from glowmcu.verify.firmware import board_templates
from glowmcu.verify.host import fitting
from glowmcu.verify.image import Footprint, build_image, function_at, measure
from glowmcu.verify.tools import find_tool

__all__ = ["Board", "BoardRun", "board", "list_boards", "run_on_board"]

Trace = tuple[tuple[Array, ...], ...]

_BEGIN = """\
#include <stdint.h>
void board_layer_begin(int32_t layer);
#define {name}_HOOK_BEGIN(layer) board_layer_begin(layer)
"""
_END = """\
#include <stdint.h>
void board_layer_end(int32_t layer);
#define {name}_HOOK_END(layer) board_layer_end(layer)
"""
# An instruction takes 2^6 ns of the time that the board's clock sees.
_COUNT = ("-icount", "shift=6,align=off,sleep=off")
_INSTRUCTIONS_PER_SECOND = 1e9 / 64


@dataclass(frozen=True)
class BoardRun:
    """What a run on a board gave.

    outputs       per sample: arrays by output name
    stack         bytes of stack that were used at most
    footprint     flash and RAM of the whole image
    trace         per sample and layer: the results of the layer as stored, where asked for
    instructions  per sample and layer: instructions that it took, where asked for
    """

    outputs: list[dict[str, Array]]
    stack: int
    footprint: Footprint
    trace: list[Trace]
    instructions: list[tuple[int, ...]]


def run_on_board(
    unit: CodeUnit,
    on: Board,
    feeds: Sequence[Mapping[str, Array]],
    *,
    timeout: float = 60.0,
    trace: bool = False,
    profile: bool = False,
    optimize: str = "-O2",
) -> BoardRun:
    """Build an image of `unit` for the board `on` and run it once, on all samples, in QEMU.

    trace    keep the results of each layer
    profile  count the instructions of each layer

    Raises DoesNotFitError, ToolMissingError, or VerificationError for a fault or a time-out.
    """
    emulator = find_tool(on.qemu[0])
    with tempfile.TemporaryDirectory(prefix="glowmcu-") as name:
        folder = Path(name)
        image = _build(unit, on, folder, trace, profile, optimize)
        (folder / "inputs.bin").write_bytes(_encode(unit, feeds))
        counting = _COUNT if profile else ()
        _emulate([emulator, *on.qemu[1:], *counting], on, image, timeout)
        outputs, stack = _decode(unit, (folder / "outputs.bin").read_bytes(), len(feeds))
        return BoardRun(
            outputs,
            stack,
            measure(image, on),
            _decode_trace(unit, folder / "trace.bin", len(feeds)) if trace else [],
            _decode_ticks(unit, on, folder / "ticks.bin") if profile else [],
        )


def _build(
    unit: CodeUnit, on: Board, folder: Path, trace: bool, profile: bool, optimize: str
) -> Path:
    prefix = unit.name.upper()
    hooks = (_BEGIN if profile else "") + (_END if trace or profile else "")
    sources = {"board_main.c": _main_source(unit, trace, profile)}
    if hooks:
        sources["board_hooks.h"] = hooks.format(name=prefix)
    flags = (f'-D{prefix}_HOOK_HEADER="board_hooks.h"',) if hooks else ()
    return build_image(unit, on, sources, folder, optimize=optimize, flags=flags)


def _emulate(qemu: list[str], on: Board, image: Path, timeout: float) -> None:
    command = [
        *(*qemu, "-display", "none", "-monitor", "none", "-serial", "none"),
        *("-semihosting-config", "enable=on,target=native", "-kernel", image.name),
    ]
    try:
        done = subprocess.run(
            command,
            cwd=image.parent,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise VerificationError(
            f"the network did not finish within {timeout:g} s on the board {on.name}",
            hint="allow more time or run fewer samples",
        ) from None
    if done.returncode != 0:
        raise VerificationError(
            f"the network failed on the board {on.name}",
            why=_failure(done.stdout + done.stderr, done.returncode, image),
        )


def _failure(text: str, status: int, image: Path) -> str:
    """Return what the program or the emulator said, with the function of the faulting address."""
    fault = re.search(r"^fault: (.*)$", text, re.MULTILINE)
    if fault is None:
        said = text.strip().splitlines()
        return f"the emulator ended with status {status}" + (f": {said[0]}" if said else "")
    at = re.search(r"pc 0x([0-9a-f]+)", fault[1])
    function = function_at(image, int(at[1], 16)) if at else ""
    return fault[1] + (f" in {function}()" if function else "")


def _main_source(unit: CodeUnit, trace: bool, profile: bool) -> str:
    return (
        board_templates()
        .get_template("main.c.j2")
        .render(
            name=unit.name,
            inputs=unit.inputs,
            outputs=unit.outputs,
            layers=unit.layers,
            trace=trace,
            profile=profile,
        )
    )


def _encode(unit: CodeUnit, feeds: Sequence[Mapping[str, Array]]) -> bytes:
    """Return the contents of inputs.bin: the number of samples, then the inputs of each."""
    parts = [np.uint32(len(feeds)).tobytes()]
    for feed in feeds:
        for slot in unit.inputs:
            parts.append(fitting(feed, slot).tobytes())
    return b"".join(parts)


def _decode(unit: CodeUnit, data: bytes, samples: int) -> tuple[list[dict[str, Array]], int]:
    """Return the outputs in outputs.bin, and the bytes of stack used."""
    stream = BytesIO(data)
    results = [{slot.name: _array(stream, slot) for slot in unit.outputs} for _ in range(samples)]
    return results, int(np.frombuffer(stream.read(4), np.uint32)[0])


def _decode_trace(unit: CodeUnit, file: Path, samples: int) -> list[Trace]:
    """Return the arrays in trace.bin: per sample and layer the results of the layer."""
    with file.open("rb") as stream:
        return [
            tuple(tuple(_array(stream, slot) for slot in layer) for layer in unit.layers)
            for _ in range(samples)
        ]


def _decode_ticks(unit: CodeUnit, on: Board, file: Path) -> list[tuple[int, ...]]:
    """Return the instructions of each layer per sample, without those that the counting takes."""
    ticks = np.frombuffer(file.read_bytes(), np.uint32).reshape(-1, len(unit.layers) + 1)
    counts = np.rint(ticks * (_INSTRUCTIONS_PER_SECOND / on.clock)).astype(int)
    return [tuple(int(n) for n in row[:-1] - row[-1]) for row in counts]


def _array(stream: BinaryIO, slot: Slot) -> Array:
    data = stream.read(slot.type.nbytes)
    return np.frombuffer(data, slot.type.dtype.numpy).reshape(slot.type.shape).copy()
