"""What can be chosen about post-training quantization."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from glowmcu.core import dtypes
from glowmcu.core.dtypes import DType
from glowmcu.options import Io, Observer, Options, Precision, Schema, Tool

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
    keep_int16   names of those whose activations are int16
    precision    of all other layers
    edges        how wide the network's own inputs and outputs are where float layers touch them
    states       inputs kept from one call to the next, each with the output that it takes over
    """

    io: Io = "int8"
    observer: Observer = "minmax"
    schema: Schema = "asymmetric"
    per_channel: bool = True
    tools: tuple[Tool, ...] = DEFAULT_TOOLS
    keep_float: tuple[str, ...] = ()
    keep_int16: tuple[str, ...] = ()
    precision: Precision = "int8"
    edges: DType = dtypes.I8
    states: tuple[tuple[str, str], ...] = ()

    @staticmethod
    def of(options: Options) -> Settings:
        """Return the settings that the options of a compilation ask for."""
        return Settings(
            options.stored_io,
            options.observer,
            options.schema,
            not options.per_tensor,
            options.tools,
            options.keep_float,
            options.keep_int16,
            "int16" if options.quantize == "int16" else "int8",
            dtypes.I8 if options.quantize == "int8" else dtypes.I16,
            tuple(options.state.items()),
        )
