"""Options: everything a user can choose about a compilation, the same for the CLI and Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from glowmcu.errors import OptionError

Optimize = Literal["speed", "balanced", "size"]
Specialize = Literal["none", "hot", "all"]
Io = Literal["int8", "float"]
Observer = Literal["minmax", "percentile", "entropy", "mse"]
Schema = Literal["asymmetric", "symmetric", "symmetric-uint8", "power-of-two"]
Precision = Literal["int8", "int16", "float"]
Tool = Literal["equalization", "weight-clipping", "weight-rounding", "bias-correction"]


@dataclass(frozen=True)
class Options:
    """One compilation.

    name         prefix of files and C symbols; "" takes the model's file name
    target       a name from `glowmcu targets`
    quantize     none: keep the model's types; int8: quantize with calibration data; int16: with
                 activations of 16 bits; mixed: int8, and int16 or float where max_drop needs it
    shapes       input or dimension name -> shape; `{"x": (1, 3, 32, 32)}` or `{"time": (100,)}`
    fix_inputs   input name -> value; the input becomes a constant, so that what depends on it folds
    state        input name -> output name; the network keeps the value from one call to the next,
                 and neither is passed any more
    board        a name from `glowmcu boards`, or a file like their board.toml: the arena and the
                 weights are placed in the regions of its memory; "": not placed
    optimize     what kernels are chosen for: speed (fewest estimated cycles, flash is free up to
                 flash_limit), balanced (no more flash than 1.3 times the weights and 24 KiB, where
                 that can be), size (little code and scratch)
    specialize   which layers get their own constant-parameter copy of a kernel
    share        reuse memory of dead buffers in place and by views (off: for bisecting)
    stripe       run chains of layers row by row to save memory (off: for bisecting)
    input        rows: the caller hands the input over row by row, it is never whole in memory
    self_test    add a self-test: a sample with what every layer must make of it
    ram_limit    bytes of arena that must not be exceeded; None: no limit
    flash_limit  bytes of weights and code (as estimated) that must not be exceeded; the fastest
                 kernels within it are taken. None: no limit
    kernels      layer (name, ONNX node or tensor; * and ? as in file names) -> C function of the
                 kernel it must take, to find a fault or to measure
    io           words with commas between: int8 or float for the inputs and outputs of a network
                 that is quantized, caller where they stay in the caller's memory
    profile      file that `glowmcu quantize --save-profile` wrote, instead of calibration data
    observer     how the range of an activation is found: all of it, or with outliers clipped
    schema       which scales and zero points activations may have
    per_tensor   one scale for the weights of a layer instead of one for each output channel
    tools        what is done against the loss of accuracy
    keep_float   layers that stay float, by ONNX node or tensor; * and ? as in file names
    keep_int16   layers whose activations are int16, named in the same way
    max_drop     what mixed precision may lose: "0.5%" of the samples, or "40dB", the least ratio of
                 signal to error at the outputs; None: 0.5%
    labels       class of every calibration sample: a .npy, .npz or text file, or a sequence
    """

    name: str = ""
    target: str = "host"
    board: str = ""
    quantize: Literal["none", "int8", "int16", "mixed"] = "none"
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    fix_inputs: Mapping[str, float | int] = field(default_factory=dict)
    state: Mapping[str, str] = field(default_factory=dict)
    optimize: Optimize = "balanced"
    specialize: Specialize = "hot"
    share: bool = True
    stripe: bool = True
    input: Literal["whole", "rows"] = "whole"
    self_test: bool = False
    ram_limit: int | None = None
    flash_limit: int | None = None
    kernels: Mapping[str, str] = field(default_factory=dict)
    io: str = "int8"
    profile: str | Path | None = None
    observer: Observer = "minmax"
    schema: Schema = "asymmetric"
    per_tensor: bool = False
    tools: tuple[Tool, ...] = ("equalization", "weight-rounding", "bias-correction")
    keep_float: tuple[str, ...] = ()
    keep_int16: tuple[str, ...] = ()
    max_drop: str | None = None
    labels: str | Path | Sequence[int] | None = None

    @property
    def stored_io(self) -> Io:
        """How inputs and outputs of a quantized network are stored."""
        return "float" if "float" in io_words(self.io) else "int8"

    @property
    def caller_io(self) -> bool:
        """Tell whether inputs and outputs stay in the caller's memory."""
        return "caller" in io_words(self.io)


def io_words(text: str) -> tuple[str, ...]:
    """Return the words of --io; raise OptionError for one that does not exist or two that clash."""
    known = (*get_args(Io), "caller")
    words = tuple(word.strip() for word in text.split(","))
    for word in words:
        if word not in known:
            raise OptionError(
                f"--io {text}: there is no '{word}'",
                hint=f"one of {', '.join(known)}, or two of them as in --io float,caller",
            )
    if {"int8", "float"} <= set(words):
        raise OptionError(f"--io {text}: inputs and outputs are either int8 or float")
    return words
