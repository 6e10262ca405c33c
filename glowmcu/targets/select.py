"""Choose a kernel among those of an instruction that the target and the shape allow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from glowmcu.options import Optimize
from glowmcu.targets.kernel import Kernel
from glowmcu.targets.target import Target


class HasKernels(Protocol):
    """Anything with a preference list of kernels."""

    @property
    def kernels(self) -> Sequence[Kernel]:
        """Kernels, the preferred one first."""


def select(instruction: HasKernels, target: Target, optimize: Optimize = "balanced") -> Kernel:
    """Return the best kernel whose capabilities and preconditions hold.

    A kernel is offered when the target has what it requires, `optimize` is among its modes and it
    accepts the instruction. Among those offered, `speed` takes the one with the fewest estimated
    cycles, `size` the one with the fewest bytes of scratch and, of equals, of flash; where the
    first one offered gives no estimate, and for `balanced`, it is that first one. A kernel that
    the user registered comes before all others.

    Among the kernels of a list that need nothing, one accepts every instruction; a list where that
    does not hold is a fault of the card and raises LookupError.
    """
    listed = instruction.kernels if optimize == "balanced" else ()
    for kernel in (*registered(instruction), *listed):
        if not why_not(kernel, instruction, target, optimize):
            return kernel
    kernels = offered(instruction, target, optimize)
    if not kernels:
        reasons = verdicts(instruction, target, optimize, None)
        raise LookupError(f"{type(instruction).__name__}: no kernel accepts it: {reasons}")
    return _best(kernels, instruction, optimize)


def offered(instruction: HasKernels, target: Target, optimize: Optimize) -> list[Kernel]:
    """Return the built-in kernels to choose among, in order of preference."""
    return [k for k in instruction.kernels if not why_not(k, instruction, target, optimize)]


def why_not(kernel: Kernel, instruction: Any, target: Target, optimize: Optimize) -> str:
    """Return why a kernel is not offered, "" where it is."""
    missing = lacking(kernel, target)
    if missing:
        return missing
    if optimize not in kernel.modes:
        return f"is for --optimize {' or '.join(sorted(kernel.modes))}"
    return kernel.accepts(instruction)


def lacking(kernel: Kernel, target: Target) -> str:
    """Return the sentence that a kernel needs what the target has not, "" where it has it."""
    missing = kernel.requires - target.capabilities
    return f"needs {', '.join(sorted(missing))}" if missing else ""


def verdicts(
    instruction: HasKernels, target: Target, optimize: Optimize, best: Kernel | None
) -> tuple[tuple[str, str], ...]:
    """Return (symbol, why it is not the best) for every other built-in kernel."""
    found = []
    for kernel in instruction.kernels:
        if best is None or kernel.symbol != best.symbol:
            reason = why_not(kernel, instruction, target, optimize)
            if not reason and best is not None:
                reason = _comparison(kernel, best, instruction, optimize)
            found.append((kernel.symbol, reason))
    return tuple(found)


def _best(kernels: list[Kernel], instruction: Any, optimize: Optimize) -> Kernel:
    if optimize == "speed":
        timed = [(k.cycles(instruction), n) for n, k in enumerate(kernels) if k.cycles]
        return kernels[min(timed)[1]] if kernels[0].cycles else kernels[0]
    if optimize == "size":
        sized = [
            (k.scratch(instruction), k.flash(instruction), n)
            for n, k in enumerate(kernels)
            if k.flash
        ]
        return kernels[min(sized)[2]] if kernels[0].flash else kernels[0]
    return kernels[0]


def _comparison(kernel: Kernel, best: Kernel, instruction: Any, optimize: Optimize) -> str:
    """Return why a kernel that was offered is not the one taken."""
    if optimize == "speed" and kernel.cycles and best.cycles:
        if kernel.cycles(instruction) < best.cycles(instruction):
            return f"was passed over for {best.symbol}"
        return f"is slower than {best.symbol}"
    if optimize == "size" and kernel.flash and best.flash:
        if kernel.scratch(instruction) > best.scratch(instruction):
            return f"takes more scratch than {best.symbol}"
        return f"takes more flash than {best.symbol}"
    return f"stands after {best.symbol} in the list"


_EXTRA: dict[str, list[Kernel]] = {}


def register_kernel(instruction: type[Any], kernel: Kernel) -> None:
    """Offer a kernel of one's own for an instruction; it is tried before the built-in ones."""
    _EXTRA.setdefault(instruction.__name__, []).insert(0, kernel)


def registered(instruction: object) -> tuple[Kernel, ...]:
    """Return the kernels that the user registered for an instruction."""
    return tuple(_EXTRA.get(type(instruction).__name__, ()))
