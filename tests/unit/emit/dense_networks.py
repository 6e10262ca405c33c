"""Small functions and plans for tests of what comes after lowering."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from glowmcu.core.types import Array
from glowmcu.graph.graph import Graph, Value, apply, constant
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.evaluate import layout_without_reuse
from glowmcu.instr.function import Function
from glowmcu.lowering.lower import lower
from glowmcu.lowering.select import select_kernels
from glowmcu.ops.base import bias_i32, f32, i8, weights_i8
from glowmcu.ops.dense import Dense
from glowmcu.targets.target import target


@dataclass(frozen=True)
class PlanWithoutReuse:
    """A memory plan in which nothing shares memory."""

    offsets: dict[Buffer, int]
    size: int
    align: int
    lower_bound: int
    lifetimes: dict[Buffer, tuple[int, int]]
    outside: dict[Buffer, int] = field(default_factory=dict)
    slow: dict[Buffer, int] = field(default_factory=dict)
    slow_size: int = 0


def plan_without_reuse(function: Function) -> PlanWithoutReuse:
    offsets, size = layout_without_reuse(function)
    whole = (-1, len(function.instructions))
    return PlanWithoutReuse(offsets, size, 16, size, dict.fromkeys(offsets, whole))


def stored(type_: Any, rng: np.random.Generator) -> Array:
    if type_.dtype.is_integer:
        low, high = max(type_.dtype.low, -1000), min(type_.dtype.high, 1000)
        return rng.integers(low, high + 1, type_.shape).astype(type_.dtype.numpy)
    return rng.standard_normal(type_.shape).astype(type_.dtype.numpy)


def dense_chain(widths: tuple[int, ...], quantized: bool, name: str = "net") -> Function:
    """Return dense layers one after the other, kernels chosen."""
    rng = np.random.default_rng(7)
    scale = 0.02
    x = Value("input", i8(2, widths[0]) if quantized else f32(2, widths[0]))
    value = x
    for number, (inner, cols) in enumerate(itertools.pairwise(widths)):
        if quantized:
            w_type = weights_i8(cols, inner)
            b_type = bias_i32(value.type, w_type)
            y_type = (i8(2, cols, scale=scale * inner, zero_point=number),)
        else:
            w_type, b_type, y_type = f32(cols, inner), f32(cols), ()
        w = constant(f"fc{number}.weight", stored(w_type, rng), w_type)
        b = constant(f"fc{number}.bias", stored(b_type, rng), b_type)
        node = apply(
            Dense(), value, w, b, name=f"y{number}", origin=(f"/fc{number}/Gemm",), types=y_type
        )
        value = node.output
    graph = Graph(name, (x,), (value,), ("scores",))
    return select_kernels(lower(graph, graph.nodes(), name), target("host"))
