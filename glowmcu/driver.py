"""The whole compilation as one function: the place to start reading."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import onnx

from glowmcu import frontend, quantize
from glowmcu.core.passes import PassRecord, Runner, Trace
from glowmcu.core.types import Array
from glowmcu.emit.emitter import emit
from glowmcu.emit.golden import Golden
from glowmcu.emit.names import check_model_name, model_name
from glowmcu.emit.unit import CodeUnit, ModelInfo
from glowmcu.errors import OptionError
from glowmcu.frontend.labels import labels_beside, load_labels
from glowmcu.frontend.samples import Samples, load_samples
from glowmcu.generate import Progress, function_passes, generate
from glowmcu.graph import printer as graph_printer
from glowmcu.graph.graph import Graph
from glowmcu.graph.verify import verify as verify_graph
from glowmcu.instr.function import Function
from glowmcu.lowering.lower import lower
from glowmcu.lowering.schedule import schedule
from glowmcu.lowering.states import check_states, match_states, streamed
from glowmcu.memory.check import check
from glowmcu.memory.plan import MemoryPlan
from glowmcu.options import Options
from glowmcu.passes import GRAPH_PASSES, islands
from glowmcu.quantize import Quantized
from glowmcu.targets.target import Target
from glowmcu.verify.host import this_machine
from glowmcu.verify.self_test import golden


@dataclass(frozen=True)
class Compilation:
    """Every stage's result: the imported graph, the final one, the function, its plan, the C.

    lowered    the function before kernels were chosen for the target
    quantized  what quantization did, where the model was float
    records    what the passes over the function did
    options    those in force: a limit of flash may ask for leaner ones than were given
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
        return self._again(target=here.name, ram_limit=None, flash_limit=None, kernels={})

    def limited(self, ram_limit: int) -> Compilation:
        """Return this compilation in an arena of at most so many bytes."""
        return self._again(ram_limit=ram_limit)

    def _again(self, **changes: Any) -> Compilation:
        options = replace(self.options, **changes)
        made = generate(self.lowered, options, self.info)
        return replace(
            self,
            function=made.function,
            plan=made.plan,
            unit=made.unit,
            options=made.options,
            records=made.records,
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
    made = generate(lowered, options, info, trace, progress)
    compilation = Compilation(
        imported.model,
        imported.graph,
        graph,
        lowered,
        made.function,
        made.plan,
        made.unit,
        info,
        made.options,
        quantized,
        made.records,
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
    report = generate(lowered, unlimited, ModelInfo()).unit.report
    cycles = [layer["cycles_estimate"] for layer in report["layers"]]
    return quantize.Cost(
        report["arena_bytes"],
        report["weights_bytes"] + report["code_bytes_estimate"],
        None if None in cycles else sum(cycles),
    )


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
