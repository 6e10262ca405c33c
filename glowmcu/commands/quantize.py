"""The command that quantizes a network."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from glowmcu.commands.model import compile_from, model_options, out


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE.onnx",
    help="Write the quantized network as standard ONNX (QuantizeLinear, DequantizeLinear).",
)
@click.option(
    "--save-profile",
    type=click.Path(path_type=Path),
    metavar="FILE.json",
    help="Keep what calibration saw, to quantize from later with --profile.",
)
@click.option("--explain", is_flag=True, help="Show how far every layer is from float.")
@model_options
def quantize(
    model: Path, output: Path | None, save_profile: Path | None, explain: bool, **values: Any
) -> None:
    """Quantize a float MODEL with typical inputs: to int8, int16 or a mixture.

    \b
    glowmcu quantize kws.onnx --calibration samples.npz -o kws_int8.onnx
    glowmcu quantize kws.onnx --calibration samples.npz --save-profile kws.json
    glowmcu quantize kws.onnx --profile kws.json --observer mse --explain
    glowmcu quantize kws.onnx --calibration samples.npz --quantize mixed --max-drop 0.5%
    """
    from glowmcu import show
    from glowmcu.quantize import save_profile as save
    from glowmcu.quantize.write import save_onnx

    precision = "int8" if values["quantize"] == "none" else values["quantize"]
    compilation = compile_from({**values, "quantize": precision}, model)
    found = compilation.quantized
    assert found is not None
    if save_profile is not None:
        save(found.profile, save_profile)
    if output is not None:
        save_onnx(found.graph, output)
    if values["quiet"]:
        return
    if found.mixed is not None:
        show.table(out, "precision", tradeoff_rows(found.mixed.rows))
        if found.mixed.raised:
            show.table(out, "raised layers", (("layer", "precision"), list(found.mixed.raised)))
    if explain and found.errors:
        show.table(out, "error of every value against float", error_rows(found.errors))
    report = compilation.unit.report
    out.print(
        f"{report['name']}: {len(report['layers'])} layers, {found.profile.samples} samples, "
        f"weights {report['weights_bytes']:,} bytes, arena {report['arena_bytes']:,} bytes"
    )
    written = [str(path) for path in (output, save_profile) if path is not None]
    if written:
        out.print("written: " + ", ".join(written), markup=False)


def tradeoff_rows(rows: Sequence[Any]) -> tuple[Sequence[str], list[Sequence[str]]]:
    """Return the table of what each precision loses and costs."""

    def share(value: float | None) -> str:
        return "" if value is None else f"{value:.2%}"

    def cells(row: Any) -> Sequence[str]:
        quality, cost = row.quality, row.cost
        return (
            row.precision,
            share(quality.accuracy),
            share(quality.agreement),
            "exact" if math.isinf(quality.sqnr) else f"{quality.sqnr:.1f} dB",
            f"{row.price:.2f}",
            "" if cost.cycles is None else f"{cost.cycles:,.0f}",
            f"{cost.ram:,}",
            f"{cost.flash:,}",
        )

    heads = ("precision", "accuracy", "same class", "signal/error", "work", "cycles")
    return (*heads, "RAM", "flash"), [cells(row) for row in rows]


def error_rows(errors: Sequence[Any]) -> tuple[Sequence[str], list[Sequence[str]]]:
    """Return a table of layer errors, in the order of execution."""
    rows: list[Sequence[str]] = [
        (
            error.name,
            error.op,
            error.stored,
            "" if math.isnan(error.low) else f"{error.low:.4g} … {error.high:.4g}",
            "exact" if math.isinf(error.sqnr) else f"{error.sqnr:.1f} dB",
        )
        for error in errors
    ]
    return ("value", "made by", "stored", "range", "signal/error"), rows
