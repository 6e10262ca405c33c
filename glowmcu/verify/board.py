"""Run a network on a board under QEMU: samples in, the outputs of every sample out."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path

import numpy as np

from glowmcu.core.packing import loaded
from glowmcu.core.types import Array
from glowmcu.emit.unit import CodeUnit, Slot
from glowmcu.errors import VerificationError
from glowmcu.targets.board import Board, board, emulated_boards, list_boards, need_emulator
from glowmcu.verify.firmware import board_templates
from glowmcu.verify.host import fitting
from glowmcu.verify.image import Footprint, build_image, function_at, measure
from glowmcu.verify.tools import find_tool

__all__ = [
    "Board",
    "BoardRun",
    "board",
    "emulated_boards",
    "list_boards",
    "run_all_on_board",
    "run_on_board",
]

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
_FOLLOW = """\
#include "board_semihosting.h"
#define {name}_HOOK_BEGIN(layer) \\
    (board_print("layer {name} "), board_print_hex(layer), board_print("\\n"))
"""
# An instruction takes 2^6 ns of the time that the board's clock sees.
_COUNT = ("-icount", "shift=6,align=off,sleep=off")
_INSTRUCTIONS_PER_SECOND = 1e9 / 64


@dataclass(frozen=True)
class BoardRun:
    """What a run on a board gave.

    outputs       per sample: arrays by output name
    stack         bytes of stack that the whole image used at most
    footprint     its flash and RAM
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
    (result,) = run_all_on_board(
        [unit], on, [feeds], timeout=timeout, trace=trace, profile=profile, optimize=optimize
    )
    return result


def run_all_on_board(
    units: Sequence[CodeUnit],
    on: Board,
    feeds: Sequence[Sequence[Mapping[str, Array]]],
    *,
    timeout: float = 60.0,
    trace: bool = False,
    profile: bool = False,
    optimize: str = "-O2",
) -> list[BoardRun]:
    """Do what `run_on_board` does for several networks of different names in one image."""
    need_emulator(on)
    emulator = find_tool(on.qemu[0])
    with tempfile.TemporaryDirectory(prefix="glowmcu-") as name:
        folder = Path(name)
        hooks = (_BEGIN if profile else "") + (_END if trace or profile else "")
        image = _build(units, on, folder, hooks, optimize, trace=trace, profile=profile)
        inputs = b"".join(_encode(u, samples) for u, samples in zip(units, feeds, strict=True))
        (folder / "inputs.bin").write_bytes(inputs)
        counting = _COUNT if profile else ()
        try:
            _emulate([emulator, *on.qemu[1:], *counting], on, image, timeout)
        except VerificationError as error:
            found = error.problems[0]
            if not found.why:
                raise
            where = _layer_at_fault(units, on, image, inputs, optimize, timeout)
            raise VerificationError(found.what, where=where, why=found.why) from None
        footprint = measure(image, on)
        results = BytesIO((folder / "outputs.bin").read_bytes())
        traces = BytesIO((folder / "trace.bin").read_bytes() if trace else b"")
        ticks = BytesIO((folder / "ticks.bin").read_bytes() if profile else b"")
    runs = []
    for unit, samples in zip(units, feeds, strict=True):
        outputs = [{s.name: _array(results, s) for s in unit.outputs} for _ in samples]
        traced = [_layers(traces, unit) for _ in samples] if trace else []
        counts = [_counts(ticks, unit, on) for _ in samples] if profile else []
        runs.append(BoardRun(outputs, 0, footprint, traced, counts))
    stack = int(np.frombuffer(results.read(4), np.uint32)[0])
    return [replace(run, stack=stack) for run in runs]


def _build(
    units: Sequence[CodeUnit],
    on: Board,
    folder: Path,
    hooks: str,
    optimize: str,
    *,
    trace: bool = False,
    profile: bool = False,
) -> Path:
    sources = {
        "board_main.c": board_templates()
        .get_template("main.c.j2")
        .render(networks=units, trace=trace, profile=profile)
    }
    flags: list[str] = []
    for prefix in (unit.name.upper() for unit in units) if hooks else ():
        sources[f"board_hooks_{prefix}.h"] = hooks.format(name=prefix)
        flags.append(f'-D{prefix}_HOOK_HEADER="board_hooks_{prefix}.h"')
    all_files = {name: text for unit in units for name, text in unit.files.items()}
    largest = max(units, key=lambda unit: unit.arena_size)
    unit = replace(largest, files=all_files)
    return build_image(unit, on, sources, folder, optimize=optimize, flags=tuple(flags))


def _run(qemu: list[str], image: Path, timeout: float) -> subprocess.CompletedProcess[str]:
    command = [
        *(*qemu, "-display", "none", "-monitor", "none", "-serial", "none"),
        *("-semihosting-config", "enable=on,target=native", "-kernel", image.name),
    ]
    return subprocess.run(
        command,
        cwd=image.parent,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=timeout,
        check=False,
    )


def _emulate(qemu: list[str], on: Board, image: Path, timeout: float) -> None:
    try:
        done = _run(qemu, image, timeout)
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
    return fault[1].replace(at[0], f"{at[0]} in {function}()") if at and function else fault[1]


def _layer_at_fault(
    units: Sequence[CodeUnit], on: Board, image: Path, inputs: bytes, optimize: str, timeout: float
) -> str:
    """Return the layer in which a network fails, from a second run that prints every layer."""
    folder = image.parent / "follow"
    folder.mkdir()
    again = _build(units, on, folder, _FOLLOW, optimize)
    (folder / "inputs.bin").write_bytes(inputs)
    try:
        done = _run(list(on.qemu), again, timeout)
    except subprocess.TimeoutExpired:
        return ""
    seen = re.findall(r"^layer (\w+) 0x([0-9a-f]+)$", done.stdout + done.stderr, re.MULTILINE)
    if not seen:
        return ""
    unit = next(u for u in units if u.name.upper() == seen[-1][0])
    index = int(seen[-1][1], 16)
    layers = unit.report.get("layers", ())
    name = f", {layers[index]['op']} '{layers[index]['name']}'" if index < len(layers) else ""
    return f"layer {index} of {unit.name}{name}"


def _encode(unit: CodeUnit, feeds: Sequence[Mapping[str, Array]]) -> bytes:
    """Return the contents of inputs.bin: the number of samples, then the inputs of each."""
    parts = [np.uint32(len(feeds)).tobytes()]
    for feed in feeds:
        for slot in unit.inputs:
            parts.append(fitting(feed, slot).tobytes())
    return b"".join(parts)


def _layers(stream: BytesIO, unit: CodeUnit) -> Trace:
    """Return the results of the layers of one sample in the order in which they ran."""
    found: list[tuple[Array, ...]] = []
    while (layer := int(np.frombuffer(stream.read(4), np.int32)[0])) >= 0:
        found.append(tuple(_array(stream, slot) for slot in unit.layers[layer]))
    return tuple(found)


def _counts(stream: BytesIO, unit: CodeUnit, on: Board) -> tuple[int, ...]:
    """Return the instructions of each layer, without those that the counting itself takes."""
    ticks = np.frombuffer(stream.read(4 * len(unit.layers)), np.int32)
    counts = np.rint(ticks * (_INSTRUCTIONS_PER_SECOND / on.clock)).astype(int)
    return tuple(int(n) for n in counts)


def _array(stream: BytesIO, slot: Slot) -> Array:
    data = stream.read(slot.type.nbytes)
    return loaded(np.frombuffer(data, np.uint8).copy(), slot.type)
