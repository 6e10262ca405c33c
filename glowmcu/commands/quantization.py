"""Options of quantization, which every command that compiles a model takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import click

from glowmcu.errors import OptionError
from glowmcu.options import Observer, Options, Schema, Tool, io_words


class Tools(click.ParamType[Any]):
    """Names of tools with commas between, or none."""

    name = "LIST|none"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[Tool, ...]:
        """Parse --tools."""
        if isinstance(value, tuple):
            return value
        names = [] if value == "none" else str(value).split(",")
        known: tuple[Tool, ...] = get_args(Tool)
        for name in names:
            if name not in known:
                self.fail(f"'{name}' is none of {', '.join(known)}, none", param, ctx)
        return tuple(tool for tool in known if tool in names)


class Words(click.ParamType[Any]):
    """The words of --io."""

    name = "int8|float|caller,…"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        """Check --io."""
        try:
            return ",".join(io_words(str(value)))
        except OptionError as error:
            self.fail(str(error), param, ctx)


def quantization_options() -> list[Callable[[Any], Any]]:
    """Return the decorators that add the options."""
    return [
        click.option(
            "--quantize",
            type=click.Choice(["none", "int8", "int16", "mixed"]),
            default="none",
            show_default=True,
            help="Quantize a float model, with --calibration: int8; int16 for the activations;"
            " mixed: int8, and more bits for the layers that --max-drop needs them for.",
        ),
        click.option(
            "--calibration",
            type=click.Path(path_type=Path),
            metavar="FILE.npz",
            help="Typical inputs: an .npz with one array per input, or a folder of .npy.",
        ),
        click.option(
            "--profile",
            type=click.Path(path_type=Path),
            metavar="FILE.json",
            help="What `quantize --save-profile` kept of a calibration, instead of one.",
        ),
        click.option(
            "--io",
            type=Words(),
            default="int8",
            show_default=True,
            help="Inputs and outputs of a model that is quantized: int8 or float. caller: they stay"
            " in the caller's memory, outside the arena, as in --io float,caller.",
        ),
        click.option(
            "--observer",
            type=click.Choice(get_args(Observer)),
            default="minmax",
            show_default=True,
            help="How the range of an activation is found.",
        ),
        click.option(
            "--schema",
            type=click.Choice(get_args(Schema)),
            default="asymmetric",
            show_default=True,
            help="Scales and zero points that activations may have.",
        ),
        click.option(
            "--per-tensor", is_flag=True, help="One scale for a layer's weights, not per channel."
        ),
        click.option(
            "--tools",
            type=Tools(),
            default=",".join(Options().tools),
            show_default=True,
            help="What is done against the loss of accuracy; there is weight-clipping too.",
        ),
        click.option(
            "--keep-float",
            multiple=True,
            metavar="NAME",
            help="Leave a layer in float, by ONNX node or tensor; * and ? match. Repeatable.",
        ),
        click.option(
            "--keep-int16",
            multiple=True,
            metavar="NAME",
            help="Give a layer int16 activations, named in the same way. Repeatable.",
        ),
        click.option(
            "--max-drop",
            metavar="0.5%|40dB",
            help="What --quantize mixed may lose: points of accuracy (with --labels, else of"
            " agreement with the float class), or the least signal/error of the outputs.  [0.5%]",
        ),
        click.option(
            "--labels",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Class of every calibration sample: .npy, .npz or text. An array 'y' or 'label'"
            " beside the inputs in --calibration does as well.",
        ),
    ]


def with_quantization(options: Options, values: dict[str, Any]) -> Options:
    """Return the options with those that `quantization_options` added."""
    return replace(
        options,
        quantize=values["quantize"],
        io=values["io"],
        profile=values["profile"],
        observer=values["observer"],
        schema=values["schema"],
        per_tensor=values["per_tensor"],
        tools=values["tools"],
        keep_float=tuple(values["keep_float"]),
        keep_int16=tuple(values["keep_int16"]),
        max_drop=values["max_drop"],
        labels=values["labels"],
    )
