"""glowmcu compiles trained neural networks (ONNX) into C for microcontrollers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from glowmcu.errors import (
    DoesNotFitError,
    GlowmcuError,
    InvalidModelError,
    OptionError,
    ToolMissingError,
    UnsupportedError,
    VerificationError,
)
from glowmcu.options import Options

if TYPE_CHECKING:
    from glowmcu.model import CompiledModel, CompiledModels, compile, compile_all
    from glowmcu.targets.select import register_kernel

__version__ = "0.1.0"
__all__ = [
    "CompiledModel",
    "CompiledModels",
    "DoesNotFitError",
    "GlowmcuError",
    "InvalidModelError",
    "OptionError",
    "Options",
    "ToolMissingError",
    "UnsupportedError",
    "VerificationError",
    "compile",
    "compile_all",
    "register_kernel",
]


def __getattr__(name: str) -> Any:
    """Import the compiler on first use, so that `glowmcu --help` and errors are quick."""
    if name in ("CompiledModel", "CompiledModels", "compile", "compile_all"):
        from glowmcu import model

        return getattr(model, name)
    if name == "register_kernel":
        from glowmcu.targets.select import register_kernel

        return register_kernel
    raise AttributeError(f"module 'glowmcu' has no attribute '{name}'")
