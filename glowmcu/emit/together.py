"""Several networks in one folder: their files side by side, kernels once, perhaps one arena."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from glowmcu.emit.emitter import template
from glowmcu.emit.memory import rounded
from glowmcu.emit.report import GENERATOR
from glowmcu.emit.unit import CodeUnit
from glowmcu.errors import OptionError
from glowmcu.memory.shared import SharedArena

SHARED_HEADER = "shared_arena.h"
_OF_ONE = ("CMakeLists.txt", "example_main.c.txt")
_REPORTS = ("report.json", "report.html")


def check_names(names: Sequence[str], *, shared: bool) -> None:
    """Raise OptionError where networks cannot stand side by side under these names."""
    for number, name in enumerate(names):
        if name.upper() in map(str.upper, names[:number]):
            raise OptionError(
                f"two networks have the name '{name}'",
                why="files, functions and macros of each begin with its name",
                hint=f"--name {','.join(f'{n}{i}' for i, n in enumerate(names, 1))}",
            )
    if shared and "SHARED" in map(str.upper, names):
        raise OptionError("no network can have the name 'shared'", why="the arena has it")


def together(
    units: Sequence[CodeUnit], shared: SharedArena | None
) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the files of several networks and the report of the whole."""
    files: dict[str, str] = {}
    for unit in units:
        for name, text in _renamed(unit).items():
            if files.setdefault(name, text) != text:
                raise OptionError(
                    f"two networks have a file {name}", hint="give them other names with --name"
                )
    if shared is not None:
        files[SHARED_HEADER] = template(f"{SHARED_HEADER}.j2").render(
            names=[u.name for u in units],
            generator=GENERATOR,
            size=_size(units),
            scratch=shared.scratch,
        )
    context = {
        "name": "networks",
        "units": units,
        "shared": shared is not None,
        "sources": [n for n in files if n.endswith(".c")],
        "needs_libm": any("math.h" in u.headers for u in units),
    }
    files["CMakeLists.txt"] = template("CMakeLists.txt.j2").render(context)
    files["example_main.c.txt"] = template("together_main.c.j2").render(context)
    arenas = [u.arena_size for u in units]
    report = {
        "generator": GENERATOR,
        "networks": [u.name for u in units],
        "shared_arena": shared is not None,
        "arena_bytes": sum(arenas) if shared is None else _size(units),
        "scratch_bytes": None if shared is None else shared.scratch,
        "weights_bytes": sum(u.report["weights_bytes"] for u in units),
        "files": [*files, "report.json"],
    }
    files["report.json"] = json.dumps(report, indent=1) + "\n"
    return files, report


def _renamed(unit: CodeUnit) -> dict[str, str]:
    """Return the files of one network, its reports under its name."""
    files = {n: t for n, t in unit.files.items() if n not in (*_OF_ONE, *_REPORTS)}
    names = [*files, *(f"{unit.name}_{n}" for n in _REPORTS)]
    report = {**unit.report, "files": names}
    files[f"{unit.name}_report.json"] = json.dumps(report, indent=1) + "\n"
    files[f"{unit.name}_report.html"] = unit.files["report.html"]
    return files


def _size(units: Sequence[CodeUnit]) -> int:
    """Return the bytes of the union of all arenas."""
    align = max(u.arena_align for u in units)
    return rounded(max(u.arena_size for u in units), align)
