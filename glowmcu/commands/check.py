"""glowmcu check: everything that stops a compilation, and what each layer costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from glowmcu.commands.model import err, make_options, model_options, out, progress


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@model_options
def check(model: Path, **values: Any) -> None:
    """Tell whether MODEL can be compiled, and what each layer costs. Writes nothing.

    Everything that stops it is listed with what to try, and the exit status is 1; the layers that
    are supported are listed with kernel, MACs and bytes in any case.
    """
    from glowmcu import show
    from glowmcu.survey import survey

    options = make_options(values)
    with progress(values["quiet"]) as report:
        found = survey(model, options, values["calibration"], progress=report)
    for number, problem in enumerate(found.problems, 1):
        out.print(f"{number}. {problem}\n", markup=False)
    compilation, count = found.compilation, len(found.problems)
    if compilation is not None:
        if not values["quiet"]:
            for note in compilation.info.notes:
                err.print(f"note: {note}", markup=False)
        if options.quantize != compilation.options.quantize:
            out.print("The layers in float, as only the whole network can be quantized:")
        show.layers(out, compilation)
        layers = compilation.unit.report
        out.print(f"weights {layers['weights_bytes']:,} bytes of flash, {layers['macs']:,} MACs")
    if not count:
        out.print(f"{model} can be compiled")
        return
    out.print(f"{count} {'problem' if count == 1 else 'problems'}: {model} cannot be compiled")
    raise click.exceptions.Exit(1)
