"""Verify one compilation: every level against the one before it, ONNX Runtime first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from glowmcu.core.types import Array, dequantize
from glowmcu.frontend.samples import Sample, Samples, load_samples
from glowmcu.graph.evaluate import evaluate_all
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.evaluate import evaluate, initial_state, is_skipped, value_of
from glowmcu.instr.instruction import Instruction
from glowmcu.targets.board import board as find_board
from glowmcu.verify.board import run_on_board
from glowmcu.verify.compare import (
    Comparison,
    compare_graph,
    compare_instructions,
    difference,
    instruction_label,
)
from glowmcu.verify.extent import cropped
from glowmcu.verify.host import HostLibrary
from glowmcu.verify.reference import Reference

if TYPE_CHECKING:
    from glowmcu.driver import Compilation

Progress = Callable[[str], None]


def verify_compilation(
    compilation: Compilation,
    data: Samples,
    samples: int = 5,
    board: str | None = None,
    progress: Progress = lambda _stage: None,
) -> list[Comparison]:
    """Return one comparison per pair of levels, on the first `samples` of the data.

    The samples are a sequence where the network keeps states, which start as zeros.
    Where this compilation quantized a float network, ONNX Runtime's real values are compared as
    well, but not judged: the difference is the quantization's.
    """
    feeds = load_samples(data, compilation.unit.inputs, samples)
    progress("running ONNX Runtime")
    reference = Reference(compilation.source)
    if compilation.options.quantize == "none":
        results = _against_reference(compilation, reference, feeds)
    else:
        results = [_quantization_error(compilation, reference, feeds)]
    progress("building for the host")
    results.append(_host(compilation.for_host(), feeds))
    if board is not None:
        progress(f"building for {board}, running QEMU")
        results.append(_board(compilation, feeds, board))
    return results


def _against_reference(
    compilation: Compilation, reference: Reference, feeds: Sequence[Sample]
) -> list[Comparison]:
    graph = Comparison("ONNX Runtime - numpy graph")
    function = Comparison("ONNX Runtime - numpy instructions")
    states, extents = compilation.options.state, compilation.unit.extents
    known = _first_states(compilation, real=False)
    for inputs in feeds:
        feed = {**inputs, **known}
        tensors = reference.run(feed)
        known = {state: tensors[source] for state, source in states.items()}
        compare_graph(compilation.graph, tensors, graph, extents)
        compare_instructions(compilation.function, tensors, function, extents)
        arrays = evaluate_all(compilation.graph, feed)
        tensors |= {
            said: np.asarray(tensors[name].shape, np.int32) for name, said in extents.items()
        }
        outputs = dict(zip(compilation.graph.output_names, compilation.graph.outputs, strict=True))
        meant = cropped({n: arrays[v] for n, v in outputs.items()}, extents)
        got = cropped(evaluate(compilation.function, feed), extents)
        for name, value in outputs.items():
            found = difference(tensors[name], meant[name], value.type)
            graph.add(name, found, output=True)
            if name in got:
                found = difference(tensors[name], got[name], value.type)
                function.add(name, found, output=True)
    return [graph, function]


def _quantization_error(
    compilation: Compilation, reference: Reference, feeds: Sequence[Sample]
) -> Comparison:
    result = Comparison("float ONNX Runtime - quantized graph", judged=False)
    states = compilation.options.state
    known, stored = (_first_states(compilation, real=r) for r in (True, False))
    for inputs in feeds:
        feed = {**inputs, **stored}
        real = {
            v.name: dequantize(feed[v.name], v.type.quant) if v.type.quant else feed[v.name]
            for v in compilation.graph.inputs
        }
        tensors = reference.run({**real, **known})
        known = {state: tensors[source] for state, source in states.items()}
        arrays = evaluate_all(compilation.graph, feed)
        outputs = dict(zip(compilation.graph.output_names, compilation.graph.outputs, strict=True))
        stored = {state: arrays[outputs[source]] for state, source in states.items()}
        names = dict(zip(compilation.graph.outputs, compilation.graph.output_names, strict=True))
        for value, array in arrays.items():
            expected = tensors.get(names.get(value, value.name))
            if expected is None or value.type.quant is None or expected.dtype != np.float32:
                continue
            if value.perm is not None and expected.ndim == len(value.perm):
                expected = expected.transpose(value.perm)
            if expected.shape == array.shape:
                got = dequantize(array, value.type.quant)
                found = difference(expected, got, value.type.real())
                result.add(value.name, found, output=value in names)
    return result


def _first_states(compilation: Compilation, *, real: bool) -> Sample:
    """Return the states before the first sample, as real numbers or as they are stored."""
    first = {b.name: initial_state(b) for b in compilation.function.states}
    types = {b.name: b.type for b in compilation.function.states}
    if not real:
        return first
    return {n: dequantize(a, quant) if (quant := types[n].quant) else a for n, a in first.items()}


def _traced(
    compilation: Compilation, feed: Sample
) -> tuple[dict[str, Array], list[tuple[Instruction, tuple[Array, ...]]]]:
    """Return the outputs of the numpy instructions, and what each one wrote when it ran."""
    layers: list[tuple[Instruction, tuple[Array, ...]]] = []

    def keep(_index: int, instruction: Instruction, memory: Mapping[Buffer, Array]) -> None:
        written = () if is_skipped(instruction, memory) else instruction.outputs()
        layers.append((instruction, tuple(value_of(memory[b], b) for b in written)))

    plan = compilation.plan
    outputs = evaluate(compilation.function, feed, plan.offsets, plan.extent, watch=keep)
    return outputs, layers


def _is_float(compilation: Compilation) -> bool:
    """Tell whether the arithmetic has floats, whose bits may differ between machines."""
    buffers = (b for i in compilation.function.instructions for b in i.outputs())
    return any(b.type.dtype.is_float for b in buffers)


def _compare_traces(
    compilation: Compilation,
    result: Comparison,
    feed: Sample,
    outputs: Mapping[str, Array],
    layers: Sequence[Sequence[Array]],
) -> Sample:
    """Compare one sample; return the states after it."""
    function = compilation.function
    wanted, expected = _traced(compilation, feed)
    for (instruction, want), got in zip(expected, layers, strict=True):
        for buffer, a, b in zip(instruction.outputs(), want, got, strict=bool(want)):
            result.add(instruction_label(instruction), difference(a, b, buffer.type))
    for buffer, name in zip(function.outputs, function.output_names, strict=True):
        result.add(name, difference(wanted[name], outputs[name], buffer.type), output=True)
    return {b.name: wanted[b.name] for b in function.states}


def _host(compilation: Compilation, feeds: Sequence[Sample]) -> Comparison:
    result = Comparison("numpy instructions - host C", exact=not _is_float(compilation))
    library = HostLibrary(compilation.unit, trace=True)
    states: Sample = {}
    for feed in feeds:
        outputs, layers = library.run_traced(feed)
        states = _compare_traces(compilation, result, {**feed, **states}, outputs, layers)
    return result


def _board(compilation: Compilation, feeds: Sequence[Sample], name: str) -> Comparison:
    result = Comparison(f"numpy instructions - {name}", exact=not _is_float(compilation))
    run = run_on_board(compilation.unit, find_board(name), feeds, trace=True)
    states: Sample = {}
    for feed, outputs, layers in zip(feeds, run.outputs, run.trace, strict=True):
        states = _compare_traces(compilation, result, {**feed, **states}, outputs, layers)
    return result
