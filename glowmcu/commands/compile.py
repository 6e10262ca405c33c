"""The command that compiles networks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from glowmcu.commands.model import compile_from, err, make_options, model_options, out, progress


@click.command("compile")
@click.argument(
    "models", metavar="MODEL...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder for the C files; it is made if it does not exist.",
)
@model_options
@click.option(
    "--board",
    default="",
    metavar="NAME",
    help="Place the arena and the weights in this board's regions of memory, by use; the target is"
    " the board's. A file like boards/*/board.toml describes a board of your own.",
)
@click.option(
    "--input",
    "input_",
    type=click.Choice(["whole", "rows"]),
    default="whole",
    show_default=True,
    help="rows: NAME_push_row takes the input row by row, as a camera or microphone delivers it.",
)
@click.option(
    "--shared-arena",
    is_flag=True,
    help="One arena for all the MODELs, which then run in turn; without it each has its own.",
)
@click.option(
    "--print-after",
    multiple=True,
    metavar="PASS",
    help="Print the network after a pass; `all` for every one. Repeatable.",
)
@click.option("--print-changed", is_flag=True, help="Print what each pass changes, as a diff.")
@click.option("--stop-after", metavar="PASS", help="Print the network after this pass and stop.")
@click.option("--skip", multiple=True, metavar="PASS", help="Leave a pass out (to find a fault).")
def compile_command(
    models: tuple[Path, ...],
    output: Path | None,
    shared_arena: bool,
    print_after: tuple[str, ...],
    print_changed: bool,
    stop_after: str | None,
    skip: tuple[str, ...],
    **values: Any,
) -> None:
    """Compile each MODEL (an ONNX file) into C, all in one folder.

    Of several, options that name inputs go to the networks that have them, --calibration has the
    arrays of all, --name takes a name for each with commas between, and limits are those of all
    together.

    \b
    glowmcu compile kws_int8.onnx -o out --target cortex-m4
    glowmcu compile net.onnx -o out --quantize int8 --calibration samples.npz
    glowmcu compile net.onnx -o out --shape input=1,3,96,96
    glowmcu compile kws.onnx vww.onnx -o out --shared-arena
    cc -I out out/*.c main.c                      builds it: out/ is complete
    """
    if output is None and stop_after is None:
        raise click.UsageError("give the output folder with -o DIR (or look with --stop-after)")
    looking = bool(print_after or print_changed or stop_after or skip)
    if len(models) > 1 and looking:
        raise click.UsageError("options that look at passes take one MODEL at a time")
    if len(models) > 1 or shared_arena:
        assert output is not None
        _compile_together(models, output, shared_arena, values)
        return
    (model,) = models
    if values["board"] and values["target"] == "host":
        from glowmcu.targets.board import board as find_board

        values["target"] = find_board(values["board"]).target
    from glowmcu.core.passes import Stopped, Trace
    from glowmcu.show import dump_any, summary

    trace = Trace(
        frozenset(print_after),
        print_changed,
        stop_after,
        frozenset(skip),
        lambda text: out.print(text, markup=False),
    )
    try:
        compilation = compile_from(values, model, trace)
    except Stopped as stopped:
        out.print(dump_any(stopped.subject), markup=False)
        return
    assert output is not None
    compilation.unit.write(output)
    if not values["quiet"]:
        summary(out, compilation, output)


def _compile_together(
    models: Sequence[Path], output: Path, shared_arena: bool, values: dict[str, Any]
) -> None:
    from glowmcu.show import summary, summary_together
    from glowmcu.together import compile_together

    with progress(values["quiet"]) as report:
        found = compile_together(
            models,
            make_options(values),
            values["calibration"],
            shared_arena=shared_arena,
            progress=report,
        )
    found.write(output)
    if values["quiet"]:
        return
    for compilation in found.compilations:
        for note in compilation.info.notes:
            err.print(f"note: {compilation.unit.name}: {note}", markup=False)
        summary(out, compilation)
    summary_together(out, found.report, output)
