"""The whole compilation as one function: the place to start reading."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import onnx

from glowmcu import frontend, quantize
from glowmcu.core.passes import Pass, PassRecord, Runner, Stopped, Trace, as_pass
from glowmcu.core.types import Array
from glowmcu.emit.emitter import emit
from glowmcu.emit.golden import Golden
from glowmcu.emit.names import check_model_name, model_name
from glowmcu.emit.unit import CodeUnit, ModelInfo
from glowmcu.errors import DoesNotFitError, OptionError, Problem
from glowmcu.frontend.labels import labels_beside, load_labels
from glowmcu.frontend.samples import Samples, load_samples
from glowmcu.graph import printer as graph_printer
from glowmcu.graph.graph import Graph
from glowmcu.graph.verify import verify as verify_graph
from glowmcu.instr import printer as function_printer
from glowmcu.instr.function import Function
from glowmcu.instr.verify import verify as verify_function
from glowmcu.lowering.lower import lower
from glowmcu.lowering.outside import leave_tensors_outside
from glowmcu.lowering.schedule import schedule
from glowmcu.lowering.select import select_kernels
from glowmcu.lowering.stack import stack_maps
from glowmcu.lowering.states import check_states, match_states, streamed
from glowmcu.memory import memory_passes
from glowmcu.memory.check import check
from glowmcu.memory.guard import conditions_first, guard_choices
from glowmcu.memory.limit import ram_problems
from glowmcu.memory.plan import MemoryPlan, plan
from glowmcu.options import Options
from glowmcu.passes import GRAPH_PASSES, islands
from glowmcu.quantize import Quantized
from glowmcu.targets.target import Target, target
from glowmcu.verify.host import this_machine
from glowmcu.verify.self_test import golden

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Compilation:
    """Every stage's result: the imported graph, the final one, the function, its plan, the C.

    lowered    the function before kernels were chosen for the target
    quantized  what quantization did, where the model was float
    records    what the passes over the function did
    """

    source: onnx.ModelProto
    imported: Graph
    graph: Graph
    lowered: Function
    function: Function
    plan: MemoryPlan
    unit: CodeUnit
    info: ModelInfo
    options: Options
    quantized: Quantized | None = None
    records: tuple[PassRecord, ...] = ()

    @property
    def target(self) -> Target:
        """The processor compiled for."""
        return self.unit.target

    def for_host(self) -> Compilation:
        """Return this compilation with kernels that run here and give the same bits.

        It is the same one where no kernel needs anything that this machine has not.
        """
        used = [i.kernel.requires for i in self.function.instructions if i.kernel]
        here = this_machine()
        if frozenset().union(*used) <= here.capabilities:
            return self
        return self._again(target=here.name, ram_limit=None, flash_limit=None)

    def limited(self, ram_limit: int) -> Compilation:
        """Return this compilation in an arena of at most so many bytes."""
        return self._again(ram_limit=ram_limit)

    def _again(self, **changes: Any) -> Compilation:
        options = replace(self.options, **changes)
        function, layout, unit, records = generate(self.lowered, options, self.info)
        return replace(
            self, function=function, plan=layout, unit=unit, options=options, records=records
        )

    def emitted(self, layout: MemoryPlan, golden: Golden | None = None) -> Compilation:
        """Return this compilation with another plan, or with a self-test that expects `golden`."""
        check(self.function, layout)
        info = replace(self.info, passes=(*self.info.passes, *self.records))
        unit = emit(self.function, layout, self.target, self.options, info, golden)
        return replace(self, plan=layout, unit=unit)

    def with_self_test(self, calibration: Samples | None) -> Compilation:
        """Return this compilation with a self-test, on the first sample or some input."""
        return self.emitted(self.plan, golden(self, calibration))


def function_passes(options: Options) -> tuple[Pass[Function], ...]:
    """Return the passes from function to function that these options ask for, in order."""
    machine = target(options.target)

    def choose_kernels(function: Function) -> Function:
        """Choose a kernel for every instruction and give it its scratch."""
        return select_kernels(function, machine, options.optimize)

    def tensors_of_the_caller(function: Function) -> Function:
        """Leave inputs and outputs in the caller's memory."""
        return leave_tensors_outside(function, inputs=options.input == "whole")

    outside = (as_pass(tensors_of_the_caller, required=True),) if options.caller_io else ()
    early = (as_pass(stack_maps), as_pass(conditions_first))
    chosen = (*outside, *early, as_pass(choose_kernels, required=True))
    return (*chosen, *memory_passes(machine, options), as_pass(guard_choices))


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
    quantize.check_options(options)
    progress("importing")
    imported = frontend.load(model, options.shapes, options.fix_inputs)
    return compile_imported(imported, options, calibration, trace, progress)


def compile_imported(
    imported: frontend.Imported,
    options: Options,
    calibration: Samples | None,
    trace: Trace,
    progress: Progress,
) -> Compilation:
    """Compile a network that was imported."""
    name = check_model_name(options.name) if options.name else model_name(imported.name)

    progress("simplifying the graph")
    graphs = Runner(verify_graph, graph_printer.dump, lambda g: len(g.nodes()), trace)
    check_states(imported.graph, options.state)
    simple = graphs.run(imported.graph, GRAPH_PASSES)
    options = replace(options, name=name)

    def run_passes(graph: Graph) -> Graph:
        return graphs.run(graph, GRAPH_PASSES)

    def try_passes(graph: Graph) -> Graph:
        quiet = Trace(skip=trace.skip)
        return Runner(graphs.verify, graphs.dump, graphs.size, quiet).run(graph, GRAPH_PASSES)

    quantized = None
    if options.quantize != "none":
        quantized = quantize.Stage(
            options, run_passes, try_passes, lambda g: _cost(g, options, try_passes), progress
        ).run(
            simple,
            _calibration_samples(simple, calibration, options),
            _calibration_labels(simple, calibration, options),
        )
    progress("lowering")
    graph, lowered = _lowered(quantized.graph if quantized else simple, options, run_passes)
    notes = (*imported.notes, *(quantized.notes() if quantized else ()), *islands(graph))
    info = ModelInfo(
        imported.name,
        imported.sha256,
        notes,
        tuple(graphs.records),
        imported.opset,
        quantized.record() if quantized else None,
        imported.extents,
    )
    function, layout, unit, records = generate(lowered, options, info, trace, progress)
    compilation = Compilation(
        imported.model,
        imported.graph,
        graph,
        lowered,
        function,
        layout,
        unit,
        info,
        options,
        quantized,
        records,
    )
    if options.self_test:
        progress("running on the host for the self-test")
        return compilation.with_self_test(calibration)
    return compilation


def _lowered(
    graph: Graph, options: Options, run_passes: Callable[[Graph], Graph]
) -> tuple[Graph, Function]:
    """Return the final graph, its states of one type at both ends, and its instructions."""
    matched = match_states(graph, options.state)
    if matched is not graph:
        matched = run_passes(matched)
    check_states(matched, options.state)
    return matched, lower(matched, schedule(matched), options.name, options.state)


def _cost(graph: Graph, options: Options, run_passes: Callable[[Graph], Graph]) -> quantize.Cost:
    """Return what a network costs, whatever it is allowed to."""
    unlimited = replace(options, ram_limit=None, flash_limit=None)
    _, lowered = _lowered(graph, unlimited, run_passes)
    report = generate(lowered, unlimited, ModelInfo())[2].report
    cycles = [layer["cycles_estimate"] for layer in report["layers"]]
    return quantize.Cost(
        report["arena_bytes"],
        report["weights_bytes"] + report["code_bytes_estimate"],
        None if None in cycles else sum(cycles),
    )


def generate(
    lowered: Function,
    options: Options,
    info: ModelInfo,
    trace: Trace | None = None,
    progress: Progress = lambda _stage: None,
) -> tuple[Function, MemoryPlan, CodeUnit, tuple[PassRecord, ...]]:
    """Choose kernels, plan memory and write the C of a lowered function.

    Returns the records of the passes as well.
    """
    trace = trace or Trace()
    machine = target(options.target)
    function, records = _run_passes(lowered, options, trace)
    progress("planning memory")
    layout = plan(function, machine.align)
    if options.ram_limit is not None and layout.size > options.ram_limit:
        # kernels chosen for size need less scratch
        smaller, more = _run_passes(lowered, replace(options, optimize="size"), trace)
        found = plan(smaller, machine.align)
        if found.size < layout.size:
            function, layout, records = smaller, found, more
    check(function, layout)
    if trace.stop_after == "plan":
        raise Stopped(function_printer.dump(function, layout.offsets, layout.lifetimes))
    _check_limits(function, layout, options)

    progress("writing C")
    info = replace(info, passes=(*info.passes, *records))
    unit = emit(function, layout, machine, options, info)
    return function, layout, unit, records


def _run_passes(
    lowered: Function, options: Options, trace: Trace
) -> tuple[Function, tuple[PassRecord, ...]]:
    runner = Runner(verify_function, function_printer.dump, lambda f: len(f.instructions), trace)
    return runner.run(lowered, function_passes(options)), tuple(runner.records)


def _calibration_samples(
    graph: Graph, calibration: Samples | None, options: Options
) -> list[dict[str, Array]] | None:
    if calibration is None:
        return None
    given = [v for v in graph.inputs if v.name not in options.state]
    return streamed(graph, load_samples(calibration, given), options.state)


def _calibration_labels(
    graph: Graph, calibration: Samples | None, options: Options
) -> Array | None:
    if options.quantize != "mixed":
        return None
    if options.labels is not None:
        return load_labels(options.labels)
    return None if calibration is None else labels_beside(calibration, graph.inputs)


def _check_names(trace: Trace, options: Options) -> None:
    """Refuse names of passes that do not exist, with the ones that do."""
    known = [p.name for p in GRAPH_PASSES] + [p.name for p in function_passes(options)] + ["plan"]
    asked = {*trace.print_after, *trace.skip} - {"all"}
    asked |= {trace.stop_after} if trace.stop_after else set()
    for name in sorted(asked - set(known)):
        raise OptionError(f"there is no pass '{name}'", hint=f"one of: {', '.join(known)}")


def _check_limits(function: Function, layout: MemoryPlan, options: Options) -> None:
    """Raise DoesNotFitError for every limit that is exceeded."""
    problems = list(ram_problems(function, layout, options.ram_limit))
    weights = sum(b.nbytes for b in function.buffers() if b.kind == "constant" and b.base is None)
    if options.flash_limit is not None and weights > options.flash_limit:
        problems.append(
            Problem(
                f"the weights need {weights} bytes, the limit is {options.flash_limit}",
                hint="raise --flash-limit or quantize to int8",
            )
        )
    if problems:
        raise DoesNotFitError(problems)
