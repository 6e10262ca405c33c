"""The command line: the commands and their options only; the work is done by driver and verify."""

from __future__ import annotations

import gc
import os
import sys
import traceback
from pathlib import Path
from typing import Any

import click

from glowmcu import __version__
from glowmcu.commands.check import check
from glowmcu.commands.compile import compile_command
from glowmcu.commands.export import export
from glowmcu.commands.firmware import firmware, fit, profile
from glowmcu.commands.model import compile_from, err, model_options, out, progress
from glowmcu.commands.quantize import quantize
from glowmcu.errors import GlowmcuError

OK, USER_ERROR, USAGE, INTERNAL = 0, 1, 2, 3


def _print_cmake_folder(context: click.Context, _option: Any, asked: bool) -> None:
    if asked:
        from glowmcu.resources import folder

        click.echo(folder("cmake"))
        context.exit()


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="glowmcu")
@click.option(
    "--cmake-dir",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_cmake_folder,
    help="Print the folder of glowmcu_add_model.cmake and exit.",
)
def cli() -> None:
    """Compile trained neural networks (ONNX) into C for microcontrollers.

    \b
    glowmcu demo                                  see the whole way on a small network
    glowmcu compile kws.onnx -o out --target cortex-m4
    glowmcu verify kws.onnx --data x.npz --board mps2-an386
    """


@cli.command()
@click.argument("model", type=click.Path(path_type=Path))
@model_options
@click.option(
    "--stage",
    type=click.Choice(["imported", "graph", "function"]),
    help="Print the network as text at this stage.",
)
@click.option(
    "--dot",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the final graph in Graphviz's language.",
)
@click.option("--memory", is_flag=True, help="Draw the arena: address across, layers down.")
@click.option(
    "--explain-kernels", is_flag=True, help="Say for every layer why its kernel was chosen."
)
def inspect(
    model: Path,
    stage: str | None,
    dot: Path | None,
    memory: bool,
    explain_kernels: bool,
    **values: Any,
) -> None:
    """Show what MODEL becomes: layers, kernels, MACs, memory. Writes no C."""
    from glowmcu import show
    from glowmcu.graph import printer

    compilation = compile_from(values, model)
    if dot is not None:
        show.write_text(dot, printer.dot(compilation.graph))
    if stage:
        out.print(show.stage_text(compilation, stage), markup=False)
    elif memory:
        out.print(show.memory_map(compilation, out.width), markup=False)
    elif explain_kernels:
        show.kernels(out, compilation)
    else:
        show.layers(out, compilation)


@cli.command()
@click.argument("source", metavar="MODEL|DIR", type=click.Path(path_type=Path))
@click.option(
    "--input",
    "data",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE.npz",
    help="Inputs: one array per input, samples along a first axis.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE.npz",
    help="Where the outputs go; without it they are printed in short.",
)
@click.option("--board", metavar="NAME", help="Run in QEMU on this board instead of the host.")
@model_options
def run(source: Path, data: Path, output: Path | None, board: str | None, **values: Any) -> None:
    """Run a MODEL, or the folder DIR that `compile` wrote, on data.

    \b
    glowmcu run out --input x.npz --output y.npz
    glowmcu run kws_int8.onnx --target cortex-m4 --input x.npz --board mps2-an386
    """
    from glowmcu import show
    from glowmcu.emit.read import read_unit
    from glowmcu.verify.execute import run_unit

    if source.is_dir():
        unit = read_unit(source, values["name"])
    else:
        compilation = compile_from({**values, "board": board}, source)
        unit = compilation.unit if board is not None else compilation.for_host().unit
    with progress(values["quiet"]) as report:
        report("building and running")
        results = run_unit(unit, data, board=board)
    if output is not None:
        show.write_arrays(output, results)
    else:
        show.arrays(out, results)


@cli.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "--data",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE.npz",
    help="Inputs to compare on.",
)
@click.option(
    "--samples", default=5, show_default=True, type=click.IntRange(1), help="How many of them."
)
@click.option("--board", metavar="NAME", help="Compare this emulated board as well.")
@model_options
def verify(model: Path, data: Path, samples: int, board: str | None, **values: Any) -> None:
    """Prove that every level computes the same, layer by layer.

    ONNX Runtime, the numpy graph, the numpy instructions, the host's C and, with --board, the
    emulated board are compared; the first layer that differs is named. Exit status 1 if one does.
    """
    from glowmcu import show
    from glowmcu.verify.levels import verify_compilation

    compilation = compile_from({**values, "board": board}, model)
    with progress(values["quiet"]) as report:
        results = verify_compilation(compilation, data, samples, board, report)
    if not values["quiet"]:
        show.comparisons(out, results)
    failed = [r for r in results if not r.passed]
    if failed:
        raise GlowmcuError(f"{failed[0].title}: the first layer that differs is {failed[0].first}")


@cli.command()
@click.option("--markdown", is_flag=True, help="As a table for the documentation.")
def passes(markdown: bool) -> None:
    """List the passes in the order in which they run."""
    from glowmcu import show

    show.table(out, "passes", show.pass_rows(), markdown)


@cli.command()
@click.argument("name", required=False)
@click.option("--markdown", is_flag=True, help="As a table for the documentation.")
def ops(name: str | None, markdown: bool) -> None:
    """List the ONNX operators that can be compiled, or what is supported of one (NAME)."""
    from glowmcu import show

    show.table(out, "operators", show.operator_rows(name), markdown)


@cli.command()
@click.option("--markdown", is_flag=True, help="As a table for the documentation.")
def targets(markdown: bool) -> None:
    """List the processors to compile for."""
    from glowmcu import show

    show.table(out, "targets", show.target_rows(), markdown)


@cli.command()
@click.option("--markdown", is_flag=True, help="As a table for the documentation.")
def boards(markdown: bool) -> None:
    """List the boards: memory, clock, and whether `run` and `verify` can emulate them."""
    from glowmcu import show

    show.table(out, "boards", show.board_rows(), markdown)


@cli.command()
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Keep the generated C in this folder.",
)
@click.option(
    "--board", default="mps2-an386", show_default=True, metavar="NAME", help="Board to emulate."
)
def demo(output: Path | None, board: str) -> None:
    """Quantize, compile and run a small digit recogniser, on the host and on an emulated board."""
    from glowmcu.demo.show import run_demo

    with progress(False) as report:
        run_demo(out, board, output, report)


for _command in (compile_command, check, quantize, firmware, profile, fit, export):
    cli.add_command(_command)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; exit with 0 (done), 1 (user error), 2 (usage), 3 (fault in glowmcu)."""
    # a compilation makes many small objects that stay: looking for garbage often costs a tenth
    gc.set_threshold(200_000)
    sys.exit(_status(arguments))


def _status(arguments: list[str] | None) -> int:
    try:
        status = cli.main(arguments, prog_name="glowmcu", standalone_mode=False)
        sys.stdout.flush()
        if isinstance(status, int):  # of click.exceptions.Exit
            return status
    except click.UsageError as error:
        error.show()
        return USAGE
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except (click.Abort, KeyboardInterrupt):
        err.print("stopped")
        return 130
    except GlowmcuError as error:
        for problem in error.problems:
            err.print(f"error: {problem}", markup=False)
        return USER_ERROR
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except Exception:
        traceback.print_exc()
        err.print("This is a fault in glowmcu: please report it with the text above and the model.")
        return INTERNAL
    return OK


if __name__ == "__main__":
    main()
