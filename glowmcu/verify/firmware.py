"""Firmware projects: a folder that builds into an image which tests the network on its board."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from glowmcu import resources
from glowmcu.core.packing import stored
from glowmcu.core.types import Array
from glowmcu.emit import literals
from glowmcu.emit.unit import CodeUnit
from glowmcu.targets.board import Board, common_folder, need_startup
from glowmcu.targets.target import target
from glowmcu.verify.host import HostLibrary, fitting
from glowmcu.verify.image import STARTUP, check_target, compiler_flags, need_setup, processor_of
from glowmcu.verify.typical import typical_sample


def firmware(unit: CodeUnit, board: Board, sample: Mapping[str, Array] | None = None) -> CodeUnit:
    """Return `unit` with all else that a firmware image for `board` takes, and a Makefile.

    Its main tests the network, see `main_source`. Raises OptionError where the board cannot run
    the code.
    """
    need_startup(board)
    need_setup(unit, board)
    check_target(unit, board)
    files = {name: text for name, text in unit.files.items() if name != "CMakeLists.txt"}
    common = common_folder()
    for name in (*STARTUP, board.startup, "board_startup.h", "board_semihosting.h"):
        files[name] = (common / name).read_text(encoding="utf-8")
    files["link.ld"] = board.linker_script()
    files["main.c"] = main_source(unit, sample)
    files["Makefile"] = (
        board_templates()
        .get_template("Makefile.j2")
        .render(
            name=unit.name,
            board=board,
            compiler=processor_of(unit, board).compiler,
            flags=("-O2", *compiler_flags(processor_of(unit, board))),
            sources=sorted(name for name in files if name.endswith(".c")),
        )
    )
    return replace(unit, files=files)


def main_source(unit: CodeUnit, sample: Mapping[str, Array] | None = None) -> str:
    """Return a main that calls the network's own self-test, where it has one.

    Otherwise it runs the network on `sample` (arrays by input name; None: some) and compares the
    outputs with those of the host, where the code is such that the host can run it.
    """
    templates = board_templates()
    if f"{unit.name}_self_test.c" in unit.files:
        return templates.get_template("call_selftest.c.j2").render(name=unit.name)
    sample = typical_sample(unit.inputs) if sample is None else sample
    values = {slot.name: fitting(sample, slot) for slot in unit.inputs}
    expected = {} if target("host").lacks(unit.target) else HostLibrary(unit).run(sample)
    values |= {s.name: stored(expected[s.name], s.type) for s in unit.outputs if expected}
    return templates.get_template("selftest.c.j2").render(
        name=unit.name,
        inputs=unit.inputs,
        outputs=unit.outputs,
        work=unit.work,
        checked=bool(expected),
        values={key: "\n".join(literals.array_lines(a) or ["    0,"]) for key, a in values.items()},
    )


def board_templates() -> Environment:
    """Return the templates of what runs on boards."""
    return Environment(
        loader=FileSystemLoader(resources.folder("templates") / "board"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
