"""`glowmcu export`: a network as a component of a product's build system."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from glowmcu.commands.model import compile_from, model_options, out

_FORMATS = ("cmake", "arduino", "platformio", "zephyr", "esp-idf", "cmsis-pack", "make")


@click.command()
@click.argument("source", metavar="MODEL|DIR", type=click.Path(path_type=Path))
@click.option(
    "--format", "kind", required=True, type=click.Choice(_FORMATS), help="The build system."
)
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path),
    metavar="OUT",
    help="Folder of the component; it is made if it does not exist.",
)
@click.option("--vendor", default="glowmcu", show_default=True, help="Who publishes the component.")
@click.option(
    "--url", default="https://example.com", show_default=True, help="Where it is published."
)
@model_options
def export(source: Path, kind: str, output: Path, vendor: str, url: str, **values: Any) -> None:
    """Lay out a network as a library, component or package, with an example program.

    \b
    glowmcu export out --format platformio -o lib/kws
    glowmcu export kws_int8.onnx --target cortex-m4 --format zephyr -o modules/kws
    """
    from glowmcu.emit import export as exports
    from glowmcu.emit.read import read_unit

    unit = (
        read_unit(source, values["name"]) if source.is_dir() else compile_from(values, source).unit
    )
    files = exports.export(unit, kind, vendor=vendor, url=url)
    exports.write(output, files)
    if not values["quiet"]:
        out.print(f"{unit.name} for {kind}: {len(files)} files in {output}", markup=False)
