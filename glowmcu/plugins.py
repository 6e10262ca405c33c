"""Plugins: a user's Python file that brings operators, instructions or kernels of its own."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from pathlib import Path

from glowmcu.errors import OptionError


def load_plugin(file: Path) -> None:
    """Run a Python file; what it defines as cards or registers is known from then on.

    Raises OptionError, with the line, where the file cannot be run.
    """
    name = f"glowmcu_plugin_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file.resolve())
    if not file.is_file() or spec is None or spec.loader is None:
        raise OptionError(
            f"the plugin '{file}' is not a Python file", hint="--plugin takes a file like my_ops.py"
        )
    known = sys.modules.get(name)
    if known is not None and known.__file__ == str(file.resolve()):
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # the annotations of its classes are looked up there
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        lines = [
            frame.lineno
            for frame in traceback.extract_tb(error.__traceback__)
            if frame.filename == str(file.resolve())
        ]
        line = f", line {lines[-1]}" if lines else ""
        raise OptionError(
            f"the plugin '{file}'{line} fails", why=f"{type(error).__name__}: {error}"
        ) from error
