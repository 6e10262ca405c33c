"""Choose a kernel among those of an instruction that the target and the shape allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from glowmcu.options import Optimize
from glowmcu.targets.kernel import Kernel
from glowmcu.targets.target import Target


class HasKernels(Protocol):
    """Anything with a preference list of kernels."""

    @property
    def kernels(self) -> Sequence[Kernel]:
        """Kernels, the preferred one first."""


@dataclass(frozen=True)
class Choice:
    """The kernel chosen, and (symbol, reason) of each one tried and not taken."""

    kernel: Kernel
    rejected: tuple[tuple[str, str], ...]


def select(instruction: HasKernels, target: Target, optimize: Optimize = "balanced") -> Choice:
    """Return the best kernel whose capabilities and preconditions hold.

    A kernel is offered when the target has what it requires, `optimize` is among its modes and it
    accepts the instruction. Among those offered, `speed` takes the one with the fewest estimated
    cycles, `size` the one with the fewest bytes of scratch and, of equals, of flash; where the
    first one offered gives no estimate, and for `balanced`, it is that first one. A kernel that
    the user registered comes before all others.

    Among the kernels of a list that need nothing, one accepts every instruction; a list where that
    does not hold is a fault of the card and raises LookupError.
    """
    for kernel in _registered(instruction):
        if not _reason(kernel, instruction, target, optimize):
            return Choice(kernel, ())
    offered: list[Kernel] = []
    rejected: list[tuple[str, str]] = []
    for kernel in instruction.kernels:
        reason = _reason(kernel, instruction, target, optimize)
        if not reason:
            offered.append(kernel)
            if optimize == "balanced":
                break
        elif not offered:
            rejected.append((kernel.symbol, reason))
    if not offered:
        raise LookupError(f"{type(instruction).__name__}: no kernel accepts it: {rejected}")
    best = _best(offered, instruction, optimize)
    for kernel in offered:
        if kernel is not best and optimize != "balanced":
            rejected.append((kernel.symbol, _comparison(kernel, best, instruction, optimize)))
    return Choice(best, tuple(rejected))


def _reason(kernel: Kernel, instruction: Any, target: Target, optimize: Optimize) -> str:
    """Return why a kernel is not offered, "" where it is."""
    missing = kernel.requires - target.capabilities
    if missing:
        return f"needs {', '.join(sorted(missing))}"
    if optimize not in kernel.modes:
        return f"is for --optimize {' or '.join(sorted(kernel.modes))}"
    return kernel.accepts(instruction)


def _best(offered: list[Kernel], instruction: Any, optimize: Optimize) -> Kernel:
    if optimize == "speed":
        timed = [(k.cycles(instruction), n) for n, k in enumerate(offered) if k.cycles]
        return offered[min(timed)[1]] if offered[0].cycles else offered[0]
    if optimize == "size":
        sized = [
            (k.scratch(instruction), k.flash(instruction), n)
            for n, k in enumerate(offered)
            if k.flash
        ]
        return offered[min(sized)[2]] if offered[0].flash else offered[0]
    return offered[0]


def _comparison(kernel: Kernel, best: Kernel, instruction: Any, optimize: Optimize) -> str:
    """Return why a kernel that was offered is not the best."""
    if optimize == "speed" and kernel.cycles and best.cycles:
        ours, theirs = kernel.cycles(instruction), best.cycles(instruction)
        return f"about {ours:,.0f} cycles, {best.symbol} {theirs:,.0f}"
    if optimize == "size" and kernel.flash and best.flash:
        more = kernel.scratch(instruction) - best.scratch(instruction)
        if more:
            return f"{more:,} bytes more scratch than {best.symbol}"
        return f"{kernel.flash(instruction) - best.flash(instruction):,} bytes more flash"
    return f"stands after {best.symbol} in the list"


_EXTRA: dict[str, list[Kernel]] = {}


def register_kernel(instruction: type[Any], kernel: Kernel) -> None:
    """Offer a kernel of one's own for an instruction; it is tried before the built-in ones."""
    _EXTRA.setdefault(instruction.__name__, []).insert(0, kernel)


def _registered(instruction: object) -> tuple[Kernel, ...]:
    return tuple(_EXTRA.get(type(instruction).__name__, ()))
