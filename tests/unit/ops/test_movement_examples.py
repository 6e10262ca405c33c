"""Every example of the data-movement cards: graph and instructions agree, C is formatted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import rendered

from glowmcu.core.types import Array, TensorType, quantize
from glowmcu.graph import evaluate as graph_evaluate
from glowmcu.graph.graph import Graph, Value, apply, constant
from glowmcu.instr import evaluate as instr_evaluate
from glowmcu.instr import verify as instr_verify
from glowmcu.instr.function import Function
from glowmcu.lowering.lower import lower
from glowmcu.ops.base import Example, Op

CARDS = (
    "reshape",
    "transpose",
    "slice",
    "pad",
    "concat",
    "broadcast",
    "gather",
    "scatter",
    "resize",
    "interpolate",
)
EXAMPLES = [
    pytest.param(op, example, id=f"{name}-{number}")
    for name, op in Op.registry.items()
    if op.__module__.rpartition(".")[2] in CARDS
    for number, example in enumerate(op.examples)
]


def data(t: TensorType, example: Example, rng: np.random.Generator) -> Array:
    if t.dtype.is_integer and t.quant is None:
        return rng.integers(int(example.low), int(example.high), t.shape).astype(t.dtype.numpy)
    real = rng.uniform(example.low, example.high, t.shape).astype(np.float32)
    return quantize(real, t.quant, t.dtype) if t.quant else real.astype(t.dtype.numpy)


def lowered(op: type[Op], example: Example) -> tuple[Graph, Function, dict[str, Array]]:
    rng = np.random.default_rng(7)
    values: list[Value | None] = []
    feeds: dict[str, Array] = {}
    for index, t in enumerate(example.inputs):
        if t is None:
            values.append(None)
        elif index in example.constants:
            values.append(constant(f"c{index}", data(t, example, rng), t))
        else:
            feeds[f"x{index}"] = data(t, example, rng)
            values.append(Value(f"x{index}", t))
    card = op(**example.attributes)
    types = (example.output,) if example.output else ()
    if types and not card.raw:
        assert card.integer(tuple(v.type if v else None for v in values), types)
    node = apply(card, *values, name="y", types=types)
    inputs = tuple(v for v in values if v is not None and v.data is None)
    graph = Graph("g", inputs, node.outputs, tuple(v.name for v in node.outputs))
    return graph, lower(graph, graph.nodes(), "f"), feeds


@pytest.mark.parametrize(("op", "example"), EXAMPLES)
def test_instructions_compute_what_the_graph_means(op: type[Op], example: Example) -> None:
    graph, function, feeds = lowered(op, example)
    instr_verify.verify(function)
    meant = graph_evaluate.evaluate(graph, feeds)
    found = instr_evaluate.evaluate(function, feeds)
    for name, right in meant.items():
        assert found[name].dtype == right.dtype
        difference = np.abs(found[name].astype(np.float64) - right.astype(np.float64))
        assert difference.max(initial=0) <= (example.tolerance or 0)


@pytest.mark.cc
def test_the_rendered_text_is_formatted(need: Callable[..., None]) -> None:
    need("clang-format")
    for instruction in (i for p in EXAMPLES for i in lowered(*p.values)[1].instructions):
        if rendered.portable(instruction).template is not None:
            text = rendered.render(instruction)
            assert rendered.formatted(text) == text


@pytest.mark.cross
@pytest.mark.parametrize(
    ("cc", "flags"),
    [
        ("arm-none-eabi-gcc", ("-mthumb", "-mcpu=cortex-m0")),
        ("riscv64-unknown-elf-gcc", ("-march=rv32imac", "-mabi=ilp32", "--specs=picolibc.specs")),
    ],
)
def test_every_example_compiles_for_other_machines(
    need: Callable[..., None], cc: str, flags: tuple[str, ...]
) -> None:
    need(cc)
    cases = [i for p in EXAMPLES for i in lowered(*p.values)[1].instructions]
    rendered.check(
        [i for i in cases if rendered.portable(i).pack is None], cc=cc, flags=flags, run=False
    )
