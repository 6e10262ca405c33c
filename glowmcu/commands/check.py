"""glowmcu check: everything that stops a compilation, or what each layer costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from glowmcu.commands.model import compile_from, model_options, out
from glowmcu.errors import GlowmcuError


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@model_options
def check(model: Path, **values: Any) -> None:
    """Tell whether MODEL can be compiled. Writes nothing.

    If not, every problem is listed with what to try, and the exit status is 1. If so, what each
    layer costs: kernel, MACs, bytes.
    """
    from glowmcu import show

    try:
        compilation = compile_from(values, model)
    except GlowmcuError as error:
        for number, problem in enumerate(error.problems, 1):
            out.print(f"{number}. {problem}\n", markup=False)
        count = len(error.problems)
        out.print(f"{count} {'problem' if count == 1 else 'problems'}: {model} cannot be compiled")
        raise click.exceptions.Exit(1) from None
    show.layers(out, compilation)
    report = compilation.unit.report
    out.print(
        f"weights {report['weights_bytes']:,} bytes of flash, {report['macs']:,} MACs;"
        f" {model} can be compiled"
    )
