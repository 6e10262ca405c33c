"""What can be chosen about post-training quantization."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from glowmcu.options import Io, Observer, Options, Schema, Tool

TOOLS: tuple[Tool, ...] = get_args(Tool)
DEFAULT_TOOLS = Options().tools


@dataclass(frozen=True)
class Settings:
    """How a network is quantized.

    io           int8: real inputs and outputs are stored as int8 too; float: they stay as they are
    observer     how the range of an activation is found from its histogram
    schema       which scales and zero points activations may have
    per_channel  weights have a scale per output channel; off: one per tensor
    tools        what is done against the loss of accuracy
    keep_float   names of ONNX nodes or tensors that stay float
    states       inputs kept from one call to the next, each with the output that it takes over
    """

    io: Io = "int8"
    observer: Observer = "minmax"
    schema: Schema = "asymmetric"
    per_channel: bool = True
    tools: tuple[Tool, ...] = DEFAULT_TOOLS
    keep_float: tuple[str, ...] = ()
    states: tuple[tuple[str, str], ...] = ()

    @staticmethod
    def of(options: Options) -> Settings:
        """Return the settings that the options of a compilation ask for."""
        return Settings(
            options.io,
            options.observer,
            options.schema,
            not options.per_tensor,
            options.tools,
            options.keep_float,
            tuple(options.state.items()),
        )
