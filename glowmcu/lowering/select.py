"""Choose a kernel for every instruction and give it the scratch that this kernel needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from fnmatch import fnmatchcase

from glowmcu.core import dtypes
from glowmcu.core.types import TensorType
from glowmcu.errors import OptionError
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Function
from glowmcu.instr.instruction import Instruction
from glowmcu.lowering.flash import Saving, fastest_within, total, ways_of
from glowmcu.options import Optimize
from glowmcu.targets.kernel import Kernel
from glowmcu.targets.select import lacking, offered, registered, select
from glowmcu.targets.target import TARGETS, Target


def select_kernels(
    function: Function,
    target: Target,
    optimize: Optimize = "balanced",
    wishes: Mapping[str, str] | None = None,
    saving: Saving | None = None,
) -> Function:
    """Return the function with `kernel` and `scratch` set on every instruction.

    wishes  layer -> symbol of the kernel that it must take, see Options.kernels
    saving  take the fastest kernels that need so much less flash
    """
    wishes = wishes or {}
    wished = {n: k for w in wishes.items() for n, k in _wished(function, target, *w).items()}
    kernels = [
        wished.get(n) or select(i, target, optimize) for n, i in enumerate(function.instructions)
    ]
    if saving is not None:
        kernels = _thrifty(function, target, optimize, kernels, set(wished), saving)
    bound = []
    for number, (instruction, kernel) in enumerate(
        zip(function.instructions, kernels, strict=True)
    ):
        size = kernel.scratch(instruction)
        scratch = None
        if size:
            type_ = TensorType(dtypes.U8, (size,))
            scratch = Buffer(f"{instruction.name}.scratch{number}", type_, "scratch")
        bound.append(replace(instruction, kernel=kernel, scratch=scratch))  # type: ignore[type-var]
    return replace(function, instructions=tuple(bound))


def is_wished(instruction: Instruction, wishes: Mapping[str, str]) -> bool:
    """Tell whether a layer has the kernel that it must take."""
    kernel = instruction.kernel
    return kernel is not None and any(
        kernel.symbol == symbol and _matches(instruction, layer) for layer, symbol in wishes.items()
    )


def _thrifty(
    function: Function,
    target: Target,
    optimize: Optimize,
    kernels: list[Kernel],
    settled: set[int],
    saving: Saving,
) -> list[Kernel]:
    """Return the fastest kernels that take so many bytes less than the given ones."""
    ways = {}
    for number, (instruction, kernel) in enumerate(
        zip(function.instructions, kernels, strict=True)
    ):
        given = kernel in registered(instruction) or number in settled
        choice = [kernel] if given else offered(instruction, target, optimize)
        if instruction.macs or len(choice) > 1:
            ways[number] = ways_of(instruction, choice, saving.code)
    now = [next(w for w in found if w.kernel is kernels[n]) for n, found in ways.items()]
    taken = fastest_within(ways, total(now) - saving.nbytes) if ways else {}
    return [taken[n].kernel if n in taken else k for n, k in enumerate(kernels)]


def _names(instruction: Instruction) -> tuple[str, ...]:
    return (instruction.name, *instruction.origin, *(b.name for b in instruction.outputs()))


def _matches(instruction: Instruction, layer: str) -> bool:
    return any(name == layer or fnmatchcase(name, layer) for name in _names(instruction))


def _wished(function: Function, target: Target, layer: str, symbol: str) -> dict[int, Kernel]:
    """Return {instruction: kernel} of one wish.

    A layer that is named must be able to take the kernel; of several that a pattern with * or ?
    matches, those take it that can.
    """
    found = {n: i for n, i in enumerate(function.instructions) if _matches(i, layer)}
    if not found:
        names = [name for i in function.instructions for name in _names(i)]
        near = get_close_matches(layer, names, 3) or [i.name for i in function.instructions[:3]]
        raise OptionError(
            f"there is no layer '{layer}' to choose a kernel for",
            hint=f"layers have names like {', '.join(near)}",
        )
    able: dict[int, Kernel] = {}
    reasons = []
    for number, instruction in found.items():
        kernels = (*registered(instruction), *instruction.kernels)
        kernel = next((k for k in kernels if k.symbol == symbol), None)
        reason = _why_not(instruction, target, kernel, symbol, kernels)
        if kernel is not None and reason is None:
            able[number] = kernel
        elif reason is not None:
            reasons.append(reason)
    if not able:
        raise next((r for r in reasons if "has no kernel" not in str(r)), reasons[0])
    return able


def _why_not(
    instruction: Instruction,
    target: Target,
    kernel: Kernel | None,
    symbol: str,
    kernels: tuple[Kernel, ...],
) -> OptionError | None:
    name = f"layer '{instruction.name}' ({type(instruction).__name__})"
    if kernel is None:
        return OptionError(
            f"{name} has no kernel '{symbol}'",
            hint=f"its kernels are {', '.join(k.symbol for k in kernels)}",
        )
    if lacking(kernel, target):
        able = [t.name for t in TARGETS.values() if not lacking(kernel, t)]
        return OptionError(
            f"{name} cannot use {symbol} on {target.name}",
            why=f"it {lacking(kernel, target)}, which that target has not",
            hint=f"--target {' or '.join(able)}",
        )
    reason = kernel.accepts(instruction)
    if reason:
        return OptionError(
            f"{name} cannot use {symbol}",
            why=reason,
            hint="`glowmcu inspect --explain-kernels` lists the kernels that it can use",
        )
    return None
