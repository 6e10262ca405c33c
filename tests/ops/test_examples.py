"""Every example of every card at every level: graph = instructions = C on this machine."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

import glowmcu.ops  # noqa: F401 - registers the cards
from glowmcu.core.types import Array, TensorType, quantize
from glowmcu.emit.emitter import ModelInfo, emit
from glowmcu.emit.unit import CodeUnit
from glowmcu.errors import VerificationError
from glowmcu.graph import evaluate as graph_level
from glowmcu.graph.graph import Graph, Value, apply, constant
from glowmcu.instr import evaluate as instr_level
from glowmcu.instr.function import Function
from glowmcu.instr.verify import verify
from glowmcu.lowering.lower import lower
from glowmcu.lowering.select import select_kernels
from glowmcu.memory import FUNCTION_PASSES
from glowmcu.memory.check import check
from glowmcu.memory.plan import MemoryPlan, plan
from glowmcu.ops.base import Example, Op
from glowmcu.options import Options
from glowmcu.targets.target import target
from glowmcu.verify.host import HostLibrary, build_library

OPS = sorted(name for name, op in Op.registry.items() if op.__module__.startswith("glowmcu."))
CASES = [(name, i) for name in OPS for i in range(len(Op.registry[name].examples))]
FLOAT_TOLERANCE = 1e-5
FLAGS = (
    "-std=c99 -O1 -ffp-contract=off -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion "
    "-Wshadow -Wdouble-promotion -Wundef -Wmissing-prototypes -Werror "
    "-fsanitize=undefined,float-cast-overflow"
).split()
"""The sanitizer reports on stderr and goes on, which leaves the other tests alone."""


@dataclass(frozen=True)
class Compiled:
    """One example as a network, at every level but C."""

    example: Example
    graph: Graph
    feeds: dict[str, Array]
    function: Function
    plan: MemoryPlan
    unit: CodeUnit


def data_of(type_: TensorType, example: Example, rng: np.random.Generator) -> Array:
    if type_.dtype.kind == "bool":
        return rng.integers(0, 2, type_.shape).astype(np.bool_)
    if type_.dtype.is_integer and type_.quant is None:
        low = max(int(np.ceil(example.low)), type_.dtype.low)
        high = min(int(np.floor(example.high)), type_.dtype.high)
        return rng.integers(low, high, type_.shape, endpoint=True).astype(type_.dtype.numpy)
    real = rng.uniform(example.low, example.high, type_.shape)
    if type_.quant is not None:
        return quantize(real.astype(np.float32), type_.quant, type_.dtype)
    return real.astype(type_.dtype.numpy)


def network(op: type[Op], example: Example, name: str) -> tuple[Graph, dict[str, Array]]:
    """Return the graph of one example, and data for its inputs."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    values: list[Value | None] = []
    feeds: dict[str, Array] = {}
    for index, type_ in enumerate(example.inputs):
        if type_ is None:
            values.append(None)
            continue
        data = data_of(type_, example, rng)
        if index in example.constants:
            values.append(constant(f"c{index}", data, type_))
        else:
            feeds[f"x{index}"] = data
            values.append(Value(f"x{index}", type_))
    types = (example.output,) if example.output else ()
    node = apply(op(**example.attributes), *values, name="y", types=types)
    inputs = tuple(v for v in values if v is not None and v.data is None)
    return Graph(name, inputs, node.outputs, tuple(v.name for v in node.outputs)), feeds


@cache
def compiled(name: str, index: int, machine: str = "host") -> Compiled:
    op, processor = Op.registry[name], target(machine)
    example = op.examples[index]
    label = f"{re.sub(r'(?<=[a-z])(?=[A-Z])', '_', name).lower()}_{index}"
    graph, feeds = network(op, example, label)
    function = select_kernels(lower(graph, graph.nodes(), label), processor)
    verify(function)
    for item in FUNCTION_PASSES:
        function = item.run(function)
        verify(function)
    layout = plan(function, processor.align)
    check(function, layout)
    options = Options(name=label, specialize="all" if index % 2 else "none")
    unit = emit(function, layout, processor, options, ModelInfo(label))
    return Compiled(example, graph, feeds, function, layout, unit)


@cache
def library_of(name: str) -> object:
    """Return the library with all examples of a card, or the error that building it gave."""
    units = []
    for index in range(len(Op.registry[name].examples)):
        try:
            units.append(compiled(name, index).unit)
        except Exception:  # the example's own test reports it
            continue
    try:
        return build_library(units, flags=tuple(FLAGS))
    except VerificationError as error:
        return error


def host_library(name: str, index: int) -> HostLibrary:
    found = library_of(name)
    unit = compiled(name, index).unit
    if isinstance(found, VerificationError):
        return HostLibrary(unit, flags=tuple(FLAGS))
    return HostLibrary(unit, library=found)  # type: ignore[arg-type]


def assert_close(got: Array, expected: Array, lsb: int, relative: float) -> None:
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    if expected.dtype.kind in "iub":
        worst = np.abs(got.astype(object) - expected.astype(object)).max(initial=0)
        assert worst <= lsb, f"differs by {worst} LSB\n{got}\n{expected}"
        return
    wide, want = got.astype(np.float64), expected.astype(np.float64)
    finite = want[np.isfinite(want)]
    span = float(np.ptp(finite)) if finite.size > 1 else 0.0
    span = max(span, float(np.abs(finite).max(initial=0.0))) or 1.0
    np.testing.assert_allclose(wide, want, rtol=0, atol=relative * span)


def test_every_card_has_examples() -> None:
    assert not [name for name in OPS if not Op.registry[name].examples]


@pytest.mark.parametrize(("name", "index"), CASES)
def test_instructions_compute_what_the_graph_means(name: str, index: int) -> None:
    case = compiled(name, index)
    expected = graph_level.evaluate(case.graph, case.feeds)
    plain = instr_level.evaluate(case.function, case.feeds)
    planned = instr_level.evaluate(case.function, case.feeds, case.plan.offsets, case.plan.extent)
    tolerance = case.example.tolerance
    for value, output in zip(case.graph.outputs, case.graph.output_names, strict=True):
        lsb = (1 if value.type.quant else 0) if tolerance is None else int(tolerance)
        relative = FLOAT_TOLERANCE if tolerance is None else tolerance
        assert_close(plain[output], expected[output], lsb, relative)
        np.testing.assert_array_equal(planned[output], plain[output])


@pytest.mark.cc
@pytest.mark.parametrize(("name", "index"), CASES)
def test_c_computes_what_the_instructions_say(
    name: str, index: int, capfd: pytest.CaptureFixture[str]
) -> None:
    case = compiled(name, index)
    expected = instr_level.evaluate(case.function, case.feeds)
    library = host_library(name, index)
    got, again = library.run(case.feeds), library.run(case.feeds)
    for output in case.graph.output_names:
        assert_close(got[output], expected[output], 0, FLOAT_TOLERANCE)
        assert got[output].tobytes() == again[output].tobytes()
    assert "runtime error" not in capfd.readouterr().err
