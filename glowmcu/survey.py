"""Everything that stops a compilation, in one pass, and what the rest of the network costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import onnx

from glowmcu import frontend
from glowmcu.core.passes import Trace
from glowmcu.driver import Compilation, compile_imported
from glowmcu.errors import GlowmcuError, Problem
from glowmcu.frontend.samples import Samples
from glowmcu.generate import Progress
from glowmcu.options import Options


@dataclass(frozen=True)
class Survey:
    """What stops a compilation, and what can be compiled in spite of it.

    compilation  of the whole network where nothing in the model stops it, else of the layers that
                 are supported; None where there are none. Its options are those that it took.
    """

    problems: tuple[Problem, ...]
    compilation: Compilation | None


def survey(
    model: str | Path | bytes | onnx.ModelProto,
    options: Options,
    calibration: Samples | None = None,
    *,
    progress: Progress = lambda _stage: None,
) -> Survey:
    """Look at a network as `compile_network` does, but go on after what would stop it.

    Raises GlowmcuError for what is not a consistent model.
    """
    progress("importing")
    found = frontend.survey(model, options.shapes, options.fix_inputs)
    problems = [] if found.error is None else [*found.error.problems]
    if found.imported is None:
        return Survey(tuple(problems), None)
    for attempt in _attempts(options, found.error is None):
        try:
            compilation = compile_imported(found.imported, attempt, calibration, Trace(), progress)
        except GlowmcuError as error:
            problems += [p for p in error.problems if p not in problems]
        else:
            return Survey(tuple(problems), compilation)
    return Survey(tuple(problems), None)


def _attempts(options: Options, whole: bool) -> Iterator[Options]:
    """Return the options as they are, then with ever less that may stop a compilation.

    Only a whole network can be calibrated or keep states.
    """
    unlimited = replace(options, ram_limit=None, flash_limit=None)
    if whole:
        yield options
        yield unlimited
    yield replace(unlimited, state={}, quantize="none", self_test=False, input="whole")
