"""The whole compilation as one function: the place to start reading."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import onnx

from glowmcu import frontend, quantize
from glowmcu.core.passes import Pass, PassRecord, Runner, Stopped, Trace, as_pass
from glowmcu.core.types import Array
from glowmcu.emit.emitter import emit
from glowmcu.emit.names import check_model_name, model_name
from glowmcu.emit.unit import CodeUnit, ModelInfo
from glowmcu.errors import DoesNotFitError, OptionError
from glowmcu.frontend.samples import Samples, load_samples
from glowmcu.graph import printer as graph_printer
from glowmcu.graph.graph import Graph
from glowmcu.graph.verify import verify as verify_graph
from glowmcu.instr import printer as function_printer
from glowmcu.instr.function import Function
from glowmcu.instr.verify import verify as verify_function
from glowmcu.lowering.lower import lower
from glowmcu.lowering.schedule import schedule
from glowmcu.lowering.select import select_kernels
from glowmcu.lowering.stack import stack_maps
from glowmcu.memory import FUNCTION_PASSES
from glowmcu.memory.check import check
from glowmcu.memory.plan import MemoryPlan, plan
from glowmcu.options import Options
from glowmcu.passes import GRAPH_PASSES, islands
from glowmcu.targets.target import Target, target

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Compilation:
    """Every stage's result: the imported graph, the final one, the function, its plan, the C."""

    source: onnx.ModelProto
    imported: Graph
    graph: Graph
    function: Function
    plan: MemoryPlan
    unit: CodeUnit
    records: tuple[PassRecord, ...]
    notes: tuple[str, ...]
    options: Options
    target: Target


def function_passes(options: Options) -> tuple[Pass[Function], ...]:
    """Return the passes from function to function that these options ask for, in order."""
    machine = target(options.target)

    def choose_kernels(function: Function) -> Function:
        """Choose a kernel for every instruction and give it its scratch."""
        return select_kernels(function, machine, options.optimize)

    sharing = FUNCTION_PASSES if options.share else ()
    return (as_pass(stack_maps), as_pass(choose_kernels, required=True), *sharing)


def compile_network(
    model: str | Path | bytes | onnx.ModelProto,
    options: Options,
    calibration: Samples | None = None,
    *,
    trace: Trace | None = None,
    progress: Progress = lambda _stage: None,
) -> Compilation:
    """Compile a network; nothing is written to disk.

    Raises GlowmcuError for everything that the model or the options are to blame for, and
    core.passes.Stopped where `trace.stop_after` asks for it.
    """
    trace = trace or Trace()
    _check_names(trace, options)
    machine = target(options.target)
    progress("importing")
    imported = frontend.load(model, options.shapes, options.fix_inputs)
    name = check_model_name(options.name) if options.name else model_name(imported.name)

    progress("simplifying the graph")
    graphs = Runner(verify_graph, graph_printer.dump, lambda g: len(g.nodes()), trace)
    graph = graphs.run(imported.graph, GRAPH_PASSES)
    if options.quantize == "int8":
        graph = _quantized(graph, calibration, progress)
        graph = graphs.run(graph, GRAPH_PASSES)

    progress("lowering")
    function = lower(graph, schedule(graph), name)
    functions = Runner(verify_function, function_printer.dump, lambda f: len(f.instructions), trace)
    function = functions.run(function, function_passes(options))

    progress("planning memory")
    layout = plan(function, machine.align)
    check(function, layout)
    if trace.stop_after == "plan":
        raise Stopped(function_printer.dump(function, layout.offsets, layout.lifetimes))
    _check_limits(function, layout, options)

    progress("writing C")
    records = (*graphs.records, *functions.records)
    notes = (*imported.notes, *islands(graph))
    info = ModelInfo(imported.name, imported.sha256, notes, records, imported.opset)
    unit = emit(function, layout, machine, replace(options, name=name), info)
    return Compilation(
        imported.model,
        imported.graph,
        graph,
        function,
        layout,
        unit,
        records,
        notes,
        options,
        machine,
    )


def _quantized(graph: Graph, calibration: Samples | None, progress: Progress) -> Graph:
    if calibration is None:
        raise OptionError(
            "quantizing to int8 needs calibration data",
            why="the ranges of the activations are measured on real inputs",
            hint="give --calibration FILE.npz with a few dozen typical inputs",
        )
    samples = load_samples(calibration, graph.inputs)
    return quantize.quantize(
        graph, samples, progress=lambda done, total: progress(f"calibrating {done}/{total}")
    )


def _check_names(trace: Trace, options: Options) -> None:
    """Refuse names of passes that do not exist, with the ones that do."""
    known = [p.name for p in GRAPH_PASSES] + [p.name for p in function_passes(options)] + ["plan"]
    asked = {*trace.print_after, *trace.skip} - {"all"}
    asked |= {trace.stop_after} if trace.stop_after else set()
    for name in sorted(asked - set(known)):
        raise OptionError(f"there is no pass '{name}'", hint=f"one of: {', '.join(known)}")


def _check_limits(function: Function, layout: MemoryPlan, options: Options) -> None:
    if options.ram_limit is not None and layout.size > options.ram_limit:
        raise DoesNotFitError(
            f"the arena needs {layout.size} bytes, the limit is {options.ram_limit}",
            why=f"no plan can be smaller than the {layout.lower_bound} bytes live at its peak",
            hint="raise --ram-limit, shrink the input or the widest layer, or quantize to int8",
        )
    weights = sum(b.nbytes for b in function.buffers() if b.kind == "constant" and b.base is None)
    if options.flash_limit is not None and weights > options.flash_limit:
        raise DoesNotFitError(
            f"the weights need {weights} bytes, the limit is {options.flash_limit}",
            hint="raise --flash-limit or quantize to int8",
        )


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
        Returns the outputs by name, with the exact bits of the target.
        """
        from glowmcu.verify.execute import run_unit

        return run_unit(self.compilation.unit, inputs, board=board)


def compile(
    model: str | Path | bytes | onnx.ModelProto,
    *,
    calibration: Samples | Iterable[Mapping[str, Array]] | None = None,
    progress: Progress = lambda _stage: None,
    **options: Any,
) -> CompiledModel:
    """Compile an ONNX network (path, bytes or ModelProto) and return a CompiledModel.

    `options` are the fields of glowmcu.Options, the same as the command line's. Raises
    GlowmcuError (or a subclass) with a complete sentence for what the caller can mend.
    """
    unknown = sorted(set(options) - set(Options.__dataclass_fields__))
    if unknown:
        known = ", ".join(Options.__dataclass_fields__)
        raise OptionError(f"there is no option '{unknown[0]}'", hint=f"one of: {known}")
    return CompiledModel(compile_network(model, Options(**options), calibration, progress=progress))
