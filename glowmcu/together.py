"""Several networks for one firmware: each compiled, side by side, on request with one arena."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import onnx

from glowmcu.driver import Compilation, compile_network
from glowmcu.emit.names import model_name
from glowmcu.emit.together import check_names, together
from glowmcu.emit.unit import CodeUnit, write_files
from glowmcu.errors import DoesNotFitError, GlowmcuError, OptionError, Problem
from glowmcu.frontend.read import read
from glowmcu.frontend.samples import Samples
from glowmcu.generate import Progress
from glowmcu.memory.limit import ram_problems
from glowmcu.memory.plan import plan
from glowmcu.memory.shared import SharedArena, share_arena
from glowmcu.options import Options

Model = str | Path | bytes | onnx.ModelProto
T = TypeVar("T")


@dataclass(frozen=True)
class Together:
    """Networks that were compiled for one firmware.

    shared  their common arena; None: each has its own
    files   everything that a compiler needs, kernels once
    report  the content of report.json
    """

    compilations: tuple[Compilation, ...]
    shared: SharedArena | None
    files: dict[str, str]
    report: dict[str, Any]

    @property
    def units(self) -> tuple[CodeUnit, ...]:
        """Each network's C."""
        return tuple(c.unit for c in self.compilations)

    def write(self, folder: Path | str) -> None:
        """Write every file into a folder."""
        write_files(self.files, folder)


def compile_together(
    models: Sequence[Model],
    options: Options,
    calibration: Samples | None = None,
    *,
    shared_arena: bool = False,
    progress: Progress = lambda _stage: None,
) -> Together:
    """Compile several networks; nothing is written to disk.

    options  of all of them: `name` may have their names with commas between; shapes, fixed inputs
             and states go to the networks that have inputs or dimensions of these names; limits
             are those of all together
    """
    protos = [read(model).proto for model in models]
    names = _names(options.name, models)
    check_names(names, shared=shared_arena)
    if options.ram_limit is not None and not shared_arena:
        raise OptionError(
            "there is no one arena that --ram-limit could limit",
            why="every network has its own",
            hint="share one with --shared-arena, or compile them one by one",
        )
    if options.board:
        raise OptionError(
            "the memory of a board is divided for one network only",
            hint="leave out --board, or compile the networks one by one",
        )
    every = _distributed(options, protos)
    found: list[Compilation] = []
    for model, name, own in zip(models, names, every, strict=True):

        def report(stage: str, name: str = name) -> None:
            progress(f"{name}: {stage}")

        with _naming(name):
            own = replace(own, name=name, self_test=False)
            found.append(compile_network(model, own, calibration, progress=report))
    shared = None
    if shared_arena:
        found, shared = _sharing(found, options.ram_limit)
    _check_limits(found, shared, options)
    if options.self_test:
        progress("running on the host for the self-tests")
        found = [c.with_self_test(calibration) for c in found]
    files, whole = together([c.unit for c in found], shared)
    return Together(tuple(found), shared, files, whole)


def _sharing(found: list[Compilation], limit: int | None) -> tuple[list[Compilation], SharedArena]:
    """Return the networks with their states at their places in a common arena."""
    shared = _share(found)
    if limit is not None and shared.size > limit:
        found = [_within(c, limit, shared) for c in found]
        shared = _share(found)
    placed = []
    for compilation, at in zip(found, shared.states_at, strict=True):
        if at is not None:
            align = compilation.target.align
            layout = plan(compilation.function, align, states_at=at)
            compilation = compilation.emitted(layout)
        placed.append(compilation)
    return placed, shared


def _share(found: Sequence[Compilation]) -> SharedArena:
    return share_arena([c.function for c in found], [c.target.align for c in found])


def _within(compilation: Compilation, limit: int, shared: SharedArena) -> Compilation:
    """Return a network within what the states of the others leave of a limit."""
    others = shared.size - shared.scratch - sum(b.nbytes for b in compilation.function.states)
    try:
        return compilation.limited(limit - others)
    except DoesNotFitError as error:
        why = f"; the states of other networks take {others} of {limit} bytes" if others else ""
        problems = [replace(p, why=p.why + why) for p in error.problems]
        raise DoesNotFitError(_named(compilation.unit.name, problems)) from None


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Say in every error which of the networks it is about."""
    try:
        yield
    except GlowmcuError as error:
        raise type(error)(_named(name, error.problems)) from None


def _named(name: str, problems: Sequence[Problem]) -> list[Problem]:
    return [replace(p, what=f"network {name}: {p.what}") for p in problems]


def _names(text: str, models: Sequence[Model]) -> list[str]:
    """Return a name for each network."""
    if not text:
        return [
            model_name(Path(m).stem if isinstance(m, str | Path) else f"network{number}")
            for number, m in enumerate(models, 1)
        ]
    names = [name.strip() for name in text.split(",")]
    if len(names) != len(models):
        raise OptionError(
            f"--name {text} has {len(names)} names for {len(models)} networks",
            hint="one for each, with commas between",
        )
    return names


def _distributed(options: Options, protos: Sequence[onnx.ModelProto]) -> list[Options]:
    """Return the options of each network: of those that name inputs, the ones that it has."""
    known = [_inputs(p) for p in protos]
    for option, given in (
        ("--shape", options.shapes),
        ("--fix-input", options.fix_inputs),
        ("--state", options.state),
    ):
        for name in given:
            if not any(name in found for found in known):
                raise OptionError(f"{option} names '{name}', which none of the networks has")
    return [
        replace(
            options,
            shapes=_of(options.shapes, found),
            fix_inputs=_of(options.fix_inputs, found),
            state=_of(options.state, found),
        )
        for found in known
    ]


def _of(given: Mapping[str, T], known: set[str]) -> dict[str, T]:
    return {name: value for name, value in given.items() if name in known}


def _inputs(proto: onnx.ModelProto) -> set[str]:
    """Return the names of inputs and of their dimensions."""
    names = {i.name for i in proto.graph.input}
    for item in proto.graph.input:
        names |= {d.dim_param for d in item.type.tensor_type.shape.dim if d.dim_param}
    return names


def _check_limits(
    found: Sequence[Compilation], shared: SharedArena | None, options: Options
) -> None:
    problems: list[Problem] = []
    if shared is not None and options.ram_limit is not None and shared.size > options.ram_limit:
        largest = found[shared.largest]
        layout = replace(largest.plan, size=shared.size)
        problems += _named(
            largest.unit.name, ram_problems(largest.function, layout, options.ram_limit)
        )
    reports = [c.unit.report for c in found]
    flash = sum(r["weights_bytes"] + r["code_bytes_estimate"] for r in reports)
    if options.flash_limit is not None and flash > options.flash_limit:
        what = f"all networks need about {flash} bytes of flash, the limit is {options.flash_limit}"
        hint = f"--flash-limit {flash}, --optimize size, or quantize to int8"
        problems.append(Problem(what, hint=hint))
    if problems:
        raise DoesNotFitError(problems)
