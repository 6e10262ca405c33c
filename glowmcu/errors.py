"""Errors that a user can cause, as sentences: what, where, why, what to try."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """One thing that stops the compilation; every part but `what` may be empty.

    needs  inputs of the model that would have to be constants
    """

    what: str
    where: str = ""
    why: str = ""
    hint: str = ""
    needs: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [self.what]
        lines += [f"  where: {self.where}"] if self.where else []
        lines += [f"  why:   {self.why}"] if self.why else []
        lines += [f"  try:   {self.hint}"] if self.hint else []
        return "\n".join(lines)


class GlowmcuError(Exception):
    """Base of every error that a user can cause; the text is complete, a traceback adds nothing."""

    def __init__(
        self, what: str | Sequence[Problem], *, where: str = "", why: str = "", hint: str = ""
    ) -> None:
        self.problems: tuple[Problem, ...] = (
            (Problem(what, where, why, hint),) if isinstance(what, str) else tuple(what)
        )
        super().__init__("\n".join(str(p) for p in self.problems))


class UnsupportedError(GlowmcuError):
    """The model is valid, but uses something that glowmcu does not compile."""


class InvalidModelError(GlowmcuError):
    """The file is not a readable, consistent ONNX model, or its data do not fit it."""


class OptionError(GlowmcuError):
    """An option or argument has a value that cannot be used."""


class DoesNotFitError(GlowmcuError):
    """The network needs more RAM, flash or accumulator range than there is."""


class ToolMissingError(GlowmcuError):
    """A compiler, emulator or library that this command needs is not installed."""


class VerificationError(GlowmcuError):
    """Two levels that must agree do not, or the compiled program failed when run."""
