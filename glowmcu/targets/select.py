"""Choose a kernel: the first of an instruction's list that the target and the shape allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from glowmcu.targets.kernel import Kernel
from glowmcu.targets.target import Target


class HasKernels(Protocol):
    """Anything with a preference list of kernels."""

    @property
    def kernels(self) -> Sequence[Kernel]:
        """Kernels, the preferred one first."""


@dataclass(frozen=True)
class Choice:
    """The kernel chosen, and why each one before it was not."""

    kernel: Kernel
    rejected: tuple[tuple[str, str], ...]


def select(instruction: HasKernels, target: Target) -> Choice:
    """Return the first kernel whose capabilities and preconditions hold.

    The last kernel of every list needs nothing and accepts everything; a list where that does not
    hold is a fault of the card and raises LookupError.
    """
    rejected: list[tuple[str, str]] = []
    for kernel in _registered(instruction) + tuple(instruction.kernels):
        missing = kernel.requires - target.capabilities
        reason = f"needs {', '.join(sorted(missing))}" if missing else kernel.accepts(instruction)
        if not reason:
            return Choice(kernel, tuple(rejected))
        rejected.append((kernel.symbol, reason))
    raise LookupError(f"{type(instruction).__name__}: no kernel accepts it: {rejected}")


_EXTRA: dict[str, list[Kernel]] = {}


def register_kernel(instruction: type[Any], kernel: Kernel) -> None:
    """Offer a kernel of one's own for an instruction; it is tried before the built-in ones."""
    _EXTRA.setdefault(instruction.__name__, []).insert(0, kernel)


def _registered(instruction: object) -> tuple[Kernel, ...]:
    return tuple(_EXTRA.get(type(instruction).__name__, ()))
