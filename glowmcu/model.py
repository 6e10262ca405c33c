"""The Python interface: compile() and the CompiledModel that it returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx

from glowmcu.core.types import Array
from glowmcu.driver import Compilation, compile_network
from glowmcu.errors import OptionError
from glowmcu.frontend.samples import Samples
from glowmcu.generate import Progress
from glowmcu.options import Options
from glowmcu.together import Together, compile_together
from glowmcu.verify.execute import run_unit


class CompiledModel:
    """A compiled network: save it, or run it on the host or an emulated board."""

    def __init__(self, compilation: Compilation) -> None:
        self.compilation = compilation

    @property
    def report(self) -> dict[str, Any]:
        """The content of report.json."""
        return self.compilation.unit.report

    def save(self, folder: str | Path) -> None:
        """Write the C files, report and build files into a folder."""
        self.compilation.unit.write(Path(folder))

    def run(self, inputs: Mapping[str, Array], *, board: str | None = None) -> dict[str, Array]:
        """Run the compiled C: on the host, or on an emulated board.

        inputs  one array per network input, of its shape, or with a leading axis of samples (the
                outputs then have it too). Real numbers for a quantized input are quantized first.
        Returns the outputs by name, with the exact bits of the target. Those whose size depends on
        the data have their actual shape; of several samples that of the largest, then zeros.
        """
        chosen = self.compilation if board is not None else self.compilation.for_host()
        return run_unit(chosen.unit, inputs, board=board)


class CompiledModels:
    """Networks that were compiled for one firmware."""

    def __init__(self, together: Together) -> None:
        self.together = together
        self.models = tuple(map(CompiledModel, together.compilations))

    @property
    def report(self) -> dict[str, Any]:
        """The content of report.json."""
        return self.together.report

    def save(self, folder: str | Path) -> None:
        """Write the C files of all, kernels once, into a folder."""
        self.together.write(folder)


def compile_all(
    models: Sequence[str | Path | bytes | onnx.ModelProto],
    *,
    shared_arena: bool = False,
    calibration: Samples | None = None,
    progress: Progress = lambda _stage: None,
    **options: Any,
) -> CompiledModels:
    """Compile networks for one firmware, as the command line does with several models.

    shared_arena  they run in turn in one arena, where each keeps its states
    options       as for `compile`: `name` has the names with commas between; shapes, fixed inputs
                  and states go to the networks that have these inputs; limits are for all together
    """
    chosen = _options(options)
    return CompiledModels(
        compile_together(models, chosen, calibration, shared_arena=shared_arena, progress=progress)
    )


def compile(
    model: str | Path | bytes | onnx.ModelProto,
    *,
    calibration: Samples | None = None,
    progress: Progress = lambda _stage: None,
    **options: Any,
) -> CompiledModel:
    """Compile an ONNX network (path, bytes or ModelProto) and return a CompiledModel.

    `options` are the fields of glowmcu.Options, the same as the command line's. Raises
    GlowmcuError (or a subclass) with a complete sentence for what the caller can mend.
    """
    chosen = _options(options)
    return CompiledModel(compile_network(model, chosen, calibration, progress=progress))


def _options(given: Mapping[str, Any]) -> Options:
    unknown = sorted(set(given) - set(Options.__dataclass_fields__))
    if unknown:
        known = ", ".join(Options.__dataclass_fields__)
        raise OptionError(f"there is no option '{unknown[0]}'", hint=f"one of: {known}")
    return Options(**given)
