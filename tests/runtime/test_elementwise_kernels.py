"""Element-wise cards: graph, instructions and C code agree on every example."""

from __future__ import annotations

import shutil
import subprocess

import c_calls
import numpy as np
import pytest

from glowmcu.core.types import Array, TensorType, quantize
from glowmcu.graph import evaluate as graph_evaluate
from glowmcu.graph import verify as graph_verify
from glowmcu.graph.graph import Graph, Value, apply, constant
from glowmcu.instr import evaluate as instr_evaluate
from glowmcu.instr import verify as instr_verify
from glowmcu.instr.function import Function
from glowmcu.lowering.lower import lower
from glowmcu.ops.base import Example, Op
from glowmcu.resources import folder

CARDS = ("elementwise", "cast", "quant", "softmax", "reduce", "standardize")
EXAMPLES = [
    pytest.param(op, example, id=f"{name}-{number}")
    for name, op in Op.registry.items()
    if op.__module__.rpartition(".")[2] in CARDS
    for number, example in enumerate(op.examples)
]


def sample(t: TensorType, example: Example, rng: np.random.Generator) -> Array:
    if t.dtype.kind != "float" and t.quant is None:
        return rng.integers(int(example.low), int(example.high), t.shape).astype(t.dtype.numpy)
    if t.quant and t.dtype.nbytes == 1:
        return rng.integers(t.dtype.low, t.dtype.high + 1, t.shape).astype(t.dtype.numpy)
    real = rng.uniform(example.low, example.high, t.shape).astype(np.float32)
    return quantize(real, t.quant, t.dtype) if t.quant else real.astype(t.dtype.numpy)


def lowered(op: type[Op], example: Example) -> tuple[Graph, Function, dict[str, Array]]:
    rng = np.random.default_rng(7)
    values: list[Value | None] = []
    feeds: dict[str, Array] = {}
    for index, t in enumerate(example.inputs):
        if t is None:
            values.append(None)
            continue
        if index in example.constants:
            values.append(constant(f"c{index}", sample(t, example, rng), t))
        else:
            feeds[f"x{index}"] = sample(t, example, rng)
            values.append(Value(f"x{index}", t))
    card = op(**example.attributes)
    types = (example.output,) if example.output else ()
    if types:
        assert card.integer(tuple(v.type if v else None for v in values), types)
    node = apply(card, *values, name="y", types=types)
    inputs = tuple(v for v in values if v is not None and v.data is None)
    graph = Graph("g", inputs, node.outputs, ("y",))
    graph_verify.verify(graph)
    return graph, lower(graph, graph.nodes(), "f"), feeds


def assert_close(found: Array, right: Array, tolerance: float) -> None:
    assert found.dtype == right.dtype and found.shape == right.shape
    if right.dtype.kind == "f":
        np.testing.assert_allclose(found, right, rtol=tolerance, atol=tolerance)
    else:
        difference = np.abs(found.astype(np.float64) - right.astype(np.float64))
        assert difference.max(initial=0) <= tolerance


@pytest.mark.parametrize(("op", "example"), EXAMPLES)
def test_instructions_compute_what_the_graph_means(op: type[Op], example: Example) -> None:
    graph, function, feeds = lowered(op, example)
    instr_verify.verify(function)
    meant = graph_evaluate.evaluate(graph, feeds)["y"]
    found = instr_evaluate.evaluate(function, feeds)["y"]
    assert_close(found, meant, example.tolerance or 0)


@pytest.mark.cc
def test_c_computes_what_the_instructions_say(cc: str) -> None:
    flags = tuple(c_calls.SANITIZE) if cc == "gcc" else ()
    cases = []
    for number, parameters in enumerate(EXAMPLES):
        _, function, feeds = lowered(*parameters.values)
        for instruction in function.instructions:
            memory = c_calls.random_memory(instruction, number)
            for buffer, name in zip(function.inputs, feeds, strict=True):
                memory[buffer] = instr_evaluate.in_memory(feeds[name], buffer)
            cases.append((instruction, memory))
    for (instruction, memory), found in zip(cases, c_calls.run(cases, cc, flags), strict=True):
        for result, right in zip(found, c_calls.expected(instruction, memory), strict=True):
            assert_close(result, right, 0 if right.dtype.kind != "f" else 2e-6)


def test_rendered_code_is_formatted() -> None:
    if shutil.which("clang-format") is None:
        pytest.skip("clang-format is not installed")
    style = f"--style=file:{folder('runtime_c').parent / '.clang-format'}"
    texts = [
        c_calls.render(instruction)
        for parameters in EXAMPLES
        for instruction in lowered(*parameters.values)[1].instructions
        if c_calls.portable(instruction).template
    ]
    text = "\n".join(texts)
    found = subprocess.run(["clang-format", style], input=text, capture_output=True, text=True)
    assert found.stdout == text
