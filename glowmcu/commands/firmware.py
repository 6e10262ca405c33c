"""Commands about boards: build an image, count its instructions, find the boards that fit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from glowmcu.commands.model import model_options, out, progress, unit_for_board

if TYPE_CHECKING:
    from glowmcu.verify.profile import LayerCost

_BAR = 30
_LABELS = {"ram": "RAM"}
_board = click.option("--board", "board_name", required=True, metavar="NAME", help="The board.")


@click.command()
@click.argument("source", metavar="MODEL|DIR", type=click.Path(path_type=Path))
@_board
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE.elf",
    help="The image; .bin and .hex go beside it.  [NAME.elf]",
)
@click.option(
    "--project",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Keep sources, startup, linker script and a Makefile there; without -o build nothing.",
)
@model_options
def firmware(
    source: Path, board_name: str, output: Path | None, project: Path | None, **values: Any
) -> None:
    """Build a firmware image that tests a network on its board.

    The image runs the network's self-test and says by semihosting whether every layer gives what
    it gave on this machine. Exit status 1, with the bytes missing, where it does not fit.

    \b
    glowmcu firmware kws_int8.onnx --board mps2-an386 -o kws.elf
    """
    from glowmcu.targets.board import board as find_board
    from glowmcu.targets.board import need_startup
    from glowmcu.verify.deliver import deliver
    from glowmcu.verify.firmware import firmware as firmware_project

    on = find_board(board_name)
    need_startup(on)
    unit = unit_for_board(values, source, on, self_test=True, board=board_name)
    if project is not None:
        firmware_project(unit, on).write(project)
        if output is None:
            out.print(f"written to {project}: `make` builds the image there", markup=False)
            return
    place = output or Path(f"{unit.name}.elf")
    with progress(values["quiet"]) as report:
        report(f"building for {on.name}")
        built = deliver(unit, on, place)
    if values["quiet"]:
        return
    out.print(f"[bold]{unit.name}[/] on {on.name}: {on.summary}")
    for region, used in built.footprint.regions.items():
        note = f"{on.stack:,} of it stack" if region == "ram" else ""
        out.print(bar(_LABELS.get(region, region), used, on.memory[region].length, note))
    out.print(bar("stack", built.stack, on.stack, "C library not counted"))
    out.print("written: " + ", ".join(map(str, built.files)), markup=False)
    if on.emulated:
        out.print(
            f"to run it: {' '.join(on.qemu)} -nographic -semihosting-config "
            f"enable=on,target=native -kernel {place}",
            markup=False,
        )


def bar(label: str, used: int, limit: int, note: str = "") -> Text:
    """Return one line: a bar of `used` out of `limit` bytes, the numbers, a note."""
    filled = min(_BAR, -(-used * _BAR // limit))
    colour = "green" if used <= 0.8 * limit else "yellow" if used <= limit else "red"
    line = Text(f"  {label:<11}")
    line.append("█" * filled, colour).append("░" * (_BAR - filled), "dim")
    line.append(f" {used:>10,} of {limit:,} bytes, {used / limit:.0%}")
    return line.append(f" ({note})" if note else "")


@click.command()
@click.argument("source", metavar="MODEL|DIR", type=click.Path(path_type=Path))
@_board
@click.option(
    "--input",
    "data",
    type=click.Path(path_type=Path),
    metavar="FILE.npz",
    help="Inputs, of which the first sample is run.  [some of its own]",
)
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
@model_options
def profile(source: Path, board_name: str, data: Path | None, as_json: bool, **values: Any) -> None:
    """Count the instructions of every layer on an emulated board.

    \b
    glowmcu profile kws_int8.onnx --board mps2-an386
    """
    from glowmcu import show
    from glowmcu.frontend.samples import load_samples
    from glowmcu.targets.board import board as find_board
    from glowmcu.targets.board import need_emulator
    from glowmcu.verify.profile import profile_on_board
    from glowmcu.verify.typical import typical_sample

    on = find_board(board_name)
    need_emulator(on)
    unit = unit_for_board(values, source, on, board=board_name)
    sample = load_samples(data, unit.inputs, 1)[0] if data else typical_sample(unit.inputs)
    with progress(values["quiet"]) as report:
        report(f"building for {on.name}, running QEMU")
        result = profile_on_board(unit, on, sample)
    if as_json:
        out.print(json.dumps(result.record(), indent=1), markup=False)
        return
    body: list[Sequence[str]] = []
    for number, layer in enumerate(result.layers):
        body.append(_cost_row(str(number), layer))
        for place, member in enumerate(layer.members):
            body.append(_cost_row(f"{number}.{place}", member, "~"))
    headings = ("", "instruction", "layer", "kernel", "MACs", "executed", "per MAC", "share")
    show.table(out, f"{unit.name} on {on.name}", (headings, body))
    macs = sum(layer.macs for layer in result.layers)
    ratio = f", {result.instructions / macs:.2f} per MAC" if macs else ""
    out.print(f"{result.instructions:,} instructions per inference{ratio}")


def _cost_row(number: str, layer: LayerCost, about: str = "") -> Sequence[str]:
    return (
        number,
        layer.op,
        layer.name,
        layer.kernel,
        f"{layer.macs:,}",
        f"{about}{layer.instructions:,}",
        f"{about}{layer.per_mac:.2f}" if layer.per_mac else "-",
        f"{about}{layer.share:.1%}",
    )


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "--board", "names", multiple=True, metavar="NAME", help="Look at this board only. Repeatable."
)
@model_options
def fit(model: Path, names: tuple[str, ...], **values: Any) -> None:
    """Say on which boards MODEL fits, and about how long an inference takes there.

    The model is compiled for every processor; instructions are counted in QEMU on a board with the
    same core and enough memory. Times are estimates from them and the clock: caches and the wait
    states of the flash are not known.
    """
    from glowmcu import show
    from glowmcu.targets.board import board as find_board
    from glowmcu.targets.board import list_boards
    from glowmcu.verify.fit import fit_boards

    boards = tuple(map(find_board, names)) or list_boards()
    with progress(values["quiet"]) as report:

        def unit_for(target: str) -> Any:
            from glowmcu.commands.model import make_options
            from glowmcu.driver import compile_network

            report(f"compiling for {target}")
            options = make_options({**values, "target": target})
            return compile_network(model, options, values["calibration"]).unit

        found = fit_boards(unit_for, boards, report)
    body: list[Sequence[str]] = [
        (
            fitted.board.name,
            _share(fitted.flash, fitted.flash_limit),
            _share(fitted.ram, fitted.ram_limit),
            f"{fitted.instructions:,}" if fitted.instructions is not None else "-",
            f"{fitted.seconds * 1e3:,.1f} ms" if fitted.seconds is not None else "-",
            fitted.verdict,
        )
        for fitted in found
    ]
    headings = ("board", "flash KiB", "RAM KiB", "instructions", "about", "fits")
    show.table(out, str(model.name), (headings, body))


def _share(used: int | None, limit: int) -> str:
    if used is None:
        return "?"
    return f"{used / 1024:,.0f}/{limit / 1024:,.0f}"
