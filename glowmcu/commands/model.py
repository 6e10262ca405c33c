"""Options of every command that compiles a model, and what carries them out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from rich.console import Console

from glowmcu.commands.quantization import quantization_options, with_quantization
from glowmcu.options import Options

if TYPE_CHECKING:
    from glowmcu.driver import Compilation
    from glowmcu.emit.unit import CodeUnit
    from glowmcu.targets.board import Board

F = TypeVar("F", bound=Callable[..., Any])

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


class Shape(click.ParamType[Any]):
    """NAME=1,3,32,32 as (name, tuple)."""

    name = "NAME=DIM,DIM,…"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, tuple[int, ...]]:
        """Parse one --shape option."""
        name, _, dims = str(value).rpartition("=")
        try:
            shape = tuple(int(d) for d in dims.replace("x", ",").split(","))
        except ValueError:
            shape = (-1,)
        if not name or min(shape) < 0:
            self.fail(f"'{value}' is not of the form NAME=1,3,32,32", param, ctx)
        return name, shape


class Fixed(click.ParamType[Any]):
    """NAME=16000 as (name, number)."""

    name = "NAME=NUMBER"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, float | int]:
        """Parse one --fix-input option."""
        name, _, text = str(value).rpartition("=")
        for number in (int, float):
            try:
                return name, number(text)
            except ValueError:
                continue
        return self.fail(f"'{value}' is not of the form NAME=16000", param, ctx)


def _load_plugins(_context: Any, _option: Any, files: tuple[Path, ...]) -> None:
    if files:
        from glowmcu.plugins import load_plugin

        for file in files:
            load_plugin(file)


class State(click.ParamType[Any]):
    """INPUT=OUTPUT as a pair of names."""

    name = "INPUT=OUTPUT"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, str]:
        """Parse one --state option."""
        state, _, source = str(value).partition("=")
        if not state or not source:
            self.fail(f"'{value}' is not of the form INPUT=OUTPUT", param, ctx)
        return state, source


class Wish(click.ParamType[Any]):
    """LAYER=KERNEL as a pair of names."""

    name = "LAYER=KERNEL"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, str]:
        """Parse one --kernel option."""
        layer, _, symbol = str(value).rpartition("=")
        if not layer or not symbol:
            self.fail(f"'{value}' is not of the form LAYER=KERNEL", param, ctx)
        return layer, symbol


def model_options(function: F) -> F:
    """Add the options that every command which compiles a model takes."""
    options = [
        click.option(
            "--target",
            default="host",
            show_default=True,
            metavar="NAME",
            help="Processor to compile for; `glowmcu targets` lists them.",
        ),
        click.option(
            "--shape",
            "shapes",
            type=Shape(),
            multiple=True,
            help="Bind an input's shape, or a dimension symbol (NAME=100). Repeatable.",
        ),
        click.option(
            "--fix-input",
            "fix_inputs",
            type=Fixed(),
            multiple=True,
            help="Make an input a constant, so that what depends on it folds. Repeatable.",
        ),
        click.option(
            "--state",
            "states",
            type=State(),
            multiple=True,
            help="Keep an output in the arena, to be that input in the next call. Repeatable.",
        ),
        *quantization_options(),
        click.option("--name", default="", help="Prefix of files and C symbols.  [model's name]"),
        click.option(
            "--optimize",
            type=click.Choice(["speed", "balanced", "size"]),
            default="balanced",
            show_default=True,
            help="What kernels are chosen for: speed spends flash (see --flash-limit), balanced at"
            " most 1.3 times the weights and 24 KiB, size avoids long code.",
        ),
        click.option(
            "--specialize",
            type=click.Choice(["none", "hot", "all"]),
            default="hot",
            show_default=True,
            help="Layers that get a copy of their kernel with constant parameters.",
        ),
        click.option(
            "--no-share",
            is_flag=True,
            help="Do not compute in place or in views (to find a fault).",
        ),
        click.option(
            "--no-stripe",
            is_flag=True,
            help="Do not run chains of layers row by row (to find a fault).",
        ),
        click.option(
            "--ram-limit",
            type=click.IntRange(0),
            metavar="BYTES",
            help="Take the fastest way that needs no more memory than this; fail if there is none.",
        ),
        click.option(
            "--flash-limit",
            type=click.IntRange(0),
            metavar="BYTES",
            help="Take the fastest kernels with which weights and code (as estimated) need no more"
            " flash than this; fail if there are none.",
        ),
        click.option(
            "--kernel",
            "kernels",
            type=Wish(),
            multiple=True,
            help="Give a layer this kernel (to find a fault, to measure); LAYER is a name, ONNX"
            " node or tensor, or a pattern with * and ?. `inspect --explain-kernels` lists kernels."
            " Repeatable.",
        ),
        click.option(
            "--self-test",
            is_flag=True,
            help="Add NAME_self_test(): one sample (the first of --calibration, or any), checked"
            " layer by layer.",
        ),
        click.option(
            "--plugin",
            "plugins",
            type=click.Path(path_type=Path),
            multiple=True,
            expose_value=False,
            is_eager=True,
            callback=_load_plugins,
            metavar="FILE.py",
            help="Python file with operators or kernels of your own, see docs/plugins.md."
            " Repeatable.",
        ),
        click.option("--quiet", "-q", is_flag=True, help="Print errors only."),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def make_options(values: dict[str, Any]) -> Options:
    """Return Options from the parameters of `model_options`."""
    options = Options(
        name=values["name"],
        target=values["target"],
        board=values.get("board") or "",
        shapes=dict(values["shapes"]),
        fix_inputs=dict(values["fix_inputs"]),
        state=dict(values["states"]),
        optimize=values["optimize"],
        specialize=values["specialize"],
        share=not values["no_share"],
        stripe=not values["no_stripe"],
        input=values.get("input_", "whole"),
        self_test=values["self_test"],
        ram_limit=values["ram_limit"],
        flash_limit=values["flash_limit"],
        kernels=dict(values["kernels"]),
    )
    return with_quantization(options, values)


@contextmanager
def progress(quiet: bool) -> Iterator[Callable[[str], None]]:
    """Show the running stage on standard error, where that is a terminal."""
    if quiet or not err.is_terminal:
        yield lambda _stage: None
        return
    with err.status("starting") as status:
        yield lambda stage: status.update(f"{stage} …")


def compile_from(values: dict[str, Any], model: Path, trace: Any = None) -> Compilation:
    """Compile with the parameters of `model_options`, showing progress."""
    from glowmcu.driver import compile_network

    with progress(values["quiet"]) as report:
        compilation = compile_network(
            model, make_options(values), values["calibration"], trace=trace, progress=report
        )
    if not values["quiet"]:
        for note in compilation.info.notes:
            err.print(f"note: {note}", markup=False)
    return compilation


def unit_for_board(values: dict[str, Any], source: Path, on: Board, **changes: Any) -> CodeUnit:
    """Return the network in the folder `source`, or compile that model for the board's target.

    changes  parameters that the command sets itself
    """
    from glowmcu.emit.read import read_unit

    if source.is_dir():
        return read_unit(source, values["name"])
    chosen = on.target if values["target"] == "host" else values["target"]
    return compile_from({**values, "target": chosen, **changes}, source).unit
