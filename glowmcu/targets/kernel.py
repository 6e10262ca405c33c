"""Kernel: one C implementation of an instruction, its needs, its packing of constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from glowmcu.core.types import Array
from glowmcu.options import Optimize

EVERY_MODE: frozenset[Optimize] = frozenset({"speed", "balanced", "size"})


@dataclass(frozen=True)
class Packed:
    """A constant as a kernel wants it in flash: the array, and the ONNX tensors it was made of."""

    name: str
    data: Array
    comment: str = ""


def accepts_all(_instruction: Any) -> str:
    """Accept every instruction (the empty reason)."""
    return ""


def no_scratch(_instruction: Any) -> int:
    """Ask for no scratch bytes."""
    return 0


def no_pairs(_instruction: Any) -> tuple[tuple[str, str], ...]:
    """Promise nothing about overlapping operands."""
    return ()


@dataclass(frozen=True)
class Overlap:
    """An output may lie over an input unless low < address(output) - address(input) < high."""

    output: str
    input: str
    low: int
    high: int


def no_overlaps(_instruction: Any) -> tuple[Overlap, ...]:
    """Promise nothing about operands that overlap in part."""
    return ()


def no_turning(_instruction: Any) -> None:
    """Know one direction only."""


@dataclass(frozen=True)
class RowKernel:
    """A C function that makes rows of an instruction's output, one a call, wherever rows lie.

    symbol   void SYMBOL(params, y, row number, rows of x, constants, scratch); files as for Kernel
    scratch  bytes of scratch that one call needs; of a running sum, what it keeps between calls
    overlap  how a row of the output may lie over a row of the input that is needed no more
    cycles   estimated cycles of all rows together; None: unknown
    template renders the function for an instruction with the variables of view; it has no params
    """

    symbol: str
    scratch: Callable[[Any], int] = no_scratch
    overlap: Callable[[Any], tuple[Overlap, ...]] = no_overlaps
    cycles: Callable[[Any], float] | None = None
    template: str | None = None
    view: Callable[[Any], Mapping[str, Any]] | None = None


@dataclass(frozen=True)
class Kernel:
    """One implementation.

    symbol    C function; its header (struct, prototype, always-inline core) is
              runtime_c/core/SYMBOL.h, its out-of-line instance runtime_c/src/FOLDER/SYMBOL.c;
              an absolute FOLDER has both files: those of a kernel that is not glowmcu's
    requires  capabilities of the target, see targets.target
    accepts   "" when the kernel can do this instruction, else the reason why not
    scratch   bytes of scratch, 4-byte aligned, planned in the arena
    pack      constants as the kernel wants them, in the order of its C arguments;
              None: the instruction's constant operands as they are
    in_place  (output field, input field) pairs that this kernel may compute at one address,
              beyond what Instruction.may_share says of every kernel
    overlap   how an output may lie over an input elsewhere than at its address
    turned    the instruction going through memory in the opposite direction, so that outputs may
              lie over inputs on the other side; None where there is no such
    template  name of a Jinja template that renders the kernel for this instruction (shape-shaped
              code); `view` gives the template's variables
    core      the header holds an always-inline SYMBOL_core that the emitter may specialise
    modes     values of --optimize for which the kernel is offered: one that trades flash for time
              is for speed only, one whose code is long is not for size
    cycles    estimated cycles of one call for this instruction; None: unknown
    flash     bytes of packed constants and of code made for this instruction; None: unknown
    row       makes one row of the output from row pointers, a NULL one for padding; None: a row is
              made by the kernel itself where windows are one row high, and else not at all
    scan      makes the only row of the output from one row of the input after the other
    """

    symbol: str
    requires: frozenset[str] = frozenset()
    folder: str = "c99"
    accepts: Callable[[Any], str] = accepts_all
    scratch: Callable[[Any], int] = no_scratch
    pack: Callable[[Any], tuple[Packed, ...]] | None = None
    template: str | None = None
    view: Callable[[Any], Mapping[str, Any]] | None = None
    core: bool = False
    in_place: Callable[[Any], tuple[tuple[str, str], ...]] = no_pairs
    overlap: Callable[[Any], tuple[Overlap, ...]] = no_overlaps
    turned: Callable[[Any], Any] = no_turning
    modes: frozenset[Optimize] = EVERY_MODE
    cycles: Callable[[Any], float] | None = None
    flash: Callable[[Any], int] | None = None
    row: RowKernel | None = None
    scan: RowKernel | None = None
