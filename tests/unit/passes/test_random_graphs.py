"""All passes on random graphs of movement, arithmetic and quantization: the meaning stays."""

from __future__ import annotations

import math

import numpy as np
import pytest
from law import changed, feeds, network, same_tensors

from glowmcu.core import dtypes
from glowmcu.core.types import Quant
from glowmcu.graph.evaluate import evaluate
from glowmcu.graph.graph import Graph, Value, apply, constant
from glowmcu.graph.verify import verify
from glowmcu.instr.evaluate import evaluate as run_instructions
from glowmcu.lowering.lower import lower
from glowmcu.ops.base import f32, weights_i8
from glowmcu.ops.concat import Concat
from glowmcu.ops.conv import Conv2D
from glowmcu.ops.dense import Dense
from glowmcu.ops.elementwise import Elementwise
from glowmcu.ops.pad import Pad
from glowmcu.ops.pool import Pool2D
from glowmcu.ops.quant import Dequantize, Quantize
from glowmcu.ops.reduce import Reduce
from glowmcu.ops.reshape import Reshape
from glowmcu.ops.slice import Slice
from glowmcu.ops.transpose import Transpose
from glowmcu.passes import GRAPH_PASSES
from glowmcu.quantize import Settings, quantize


class Maker:
    """Adds random operators to a pool of values."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        shapes = [(1, 4, 3, 6), (2, 3, 4, 5), (1, 1, 6, 4)]
        self.inputs = [Value(f"x{i}", f32(*shapes[self.pick(3)])) for i in range(2)]
        self.values = list(self.inputs)
        self.number = 0

    def pick(self, count: int) -> int:
        return int(self.rng.integers(count))

    def add(self, op: object, *inputs: Value) -> Value:
        self.number += 1
        value = apply(op, *inputs, name=f"v{self.number}").output
        self.values.append(value)
        return value

    def constant(self, *shape: int) -> Value:
        self.number += 1
        data = self.rng.normal(0, 1, shape).astype(np.float32)
        return constant(f"c{self.number}", data)

    def weights(self, *shape: int) -> Value:
        """Real weights or integers behind a Dequantize."""
        if self.pick(2):
            return self.constant(*shape)
        data = self.rng.integers(-127, 128, shape).astype(np.int8)
        return apply(Dequantize(), constant(f"w{self.number}", data, weights_i8(*shape))).output

    def transpose(self, x: Value) -> None:
        orders = [(0, 2, 3, 1), (0, 3, 1, 2), tuple(self.rng.permutation(x.type.rank).tolist())]
        perm = orders[self.pick(3)]
        self.add(Transpose(perm if len(perm) == x.type.rank else orders[2]), x)

    def reshape(self, x: Value) -> None:
        shape = list(x.shape)
        at = self.pick(len(shape))
        if self.pick(2) and at + 1 < len(shape):
            shape[at : at + 2] = [shape[at] * shape[at + 1]]
        else:
            divisor = next((d for d in (2, 3) if shape[at] % d == 0), 1)
            shape[at : at + 1] = [divisor, shape[at] // divisor]
        self.add(Reshape(tuple(shape)), x)

    def unary(self, x: Value) -> None:
        self.add(Elementwise(["relu", "neg", "tanh", "abs"][self.pick(4)]), x)

    def clip(self, x: Value) -> None:
        low = constant("low", np.float32([-0.5, 0.0][self.pick(2)]))
        self.add(Elementwise("clip"), x, low, constant("high", np.float32(2.0)))

    def binary(self, x: Value) -> None:
        same = [v for v in self.values if v.shape == x.shape]
        along = self.pick(x.type.rank)
        shape = [n if i == along else 1 for i, n in enumerate(x.shape)][along * self.pick(2) :]
        others = [*same, self.constant(*shape), self.constant(), self.constant(*x.shape)]
        pair = [x, others[self.pick(len(others))]]
        self.add(
            Elementwise(["add", "mul", "sub", "max"][self.pick(4)]), *pair[:: self.pick(2) * 2 - 1]
        )

    def concat(self, x: Value) -> None:
        same = [v for v in self.values if v.shape == x.shape]
        self.add(Concat(self.pick(x.type.rank)), x, same[self.pick(len(same))])

    def reduce(self, x: Value) -> None:
        axes = tuple(i for i in range(x.type.rank) if self.pick(2)) or (0,)
        if len(axes) < x.type.rank:
            self.add(Reduce(["mean", "max", "sum"][self.pick(3)], axes, bool(self.pick(2))), x)

    def pad(self, x: Value) -> None:
        pads = tuple(self.pick(2) for _ in range(2 * x.type.rank))
        self.add(
            Pad(pads, "constant", [0.0, -math.inf, 1.0][self.pick(3) if self.pick(2) else 0]), x
        )

    def slice(self, x: Value) -> None:
        starts = tuple(self.pick(n) for n in x.shape)
        self.add(
            Slice(
                starts,
                (1,) * x.type.rank,
                tuple(n - s for n, s in zip(x.shape, starts, strict=True)),
            ),
            x,
        )

    def window(self, x: Value) -> None:
        if x.type.rank != 4 or min(x.shape[1:3]) < 2:
            return
        if self.pick(2):
            kind = ["max", "average"][self.pick(2)]
            self.add(Pool2D(kind=kind, kernel=(2, 2), strides=(1, 2)), x)
        else:
            w = self.weights(3, 2, 2, x.shape[3])
            self.add(Conv2D(pads=(self.pick(2), 0, 1, 0)), x, w, self.constant(3))

    def dense(self, x: Value) -> None:
        if x.type.rank > 1:
            flat = self.add(Reshape((x.shape[0], math.prod(x.shape[1:]))), x) if self.pick(2) else x
            self.add(Dense(), flat, self.weights(3, flat.shape[-1]))

    def pair(self) -> None:
        """Replace the newest value by itself quantized and dequantized."""
        x = self.values.pop()
        unsigned = self.pick(5) == 0
        zero = [-128, 3][self.pick(2)] + 128 * unsigned
        op = Quantize(dtypes.U8 if unsigned else dtypes.I8, Quant.per_tensor(0.05, zero))
        self.add(Dequantize(), self.add(op, x))
        self.values.pop(-2)

    def graph(self, steps: int, stored: bool, *kinds: str) -> Graph:
        """Make a graph of all values that nothing reads; `stored`: most values are quantized."""
        for _ in range(steps):
            x = self.values[-1 - self.pick(min(4, len(self.values)))]
            before = len(self.values)
            if x.type.numel < 3000 and x.type.rank < 6:
                getattr(self, kinds[self.pick(len(kinds))])(x)
            if stored and len(self.values) > before and self.pick(5):
                self.pair()
        read = {v for value in self.values if value.producer for v in value.producer.inputs}
        outputs = [v for v in self.values if v not in read and v.producer]
        return network(self.inputs, *(outputs or self.inputs))


def all_passes(graph: Graph) -> Graph:
    for item in GRAPH_PASSES:
        graph = item.run(graph)
    return graph


MOVEMENT = ("transpose", "reshape", "concat", "pad", "slice")
FLOAT = (*MOVEMENT, "transpose", "unary", "clip", "binary", "binary", "reduce", "window", "dense")
STORED = (*MOVEMENT, *("unary", "clip", "binary", "window", "window", "dense") * 2)


@pytest.mark.parametrize("seed", range(40))
def test_float_graphs(seed: int) -> None:
    graph = Maker(seed).graph(14, False, *FLOAT)
    with np.errstate(all="ignore"):
        same_tensors(graph, changed(graph, all_passes, 1e-3))


@pytest.mark.parametrize("seed", range(40))
def test_graphs_with_quantized_values(seed: int) -> None:
    graph = Maker(seed).graph(14, True, *STORED)
    with np.errstate(all="ignore"):
        changed(graph, all_passes, 0.05)


@pytest.mark.parametrize("seed", range(20))
def test_graphs_that_are_quantized_then(seed: int) -> None:
    with np.errstate(all="ignore"):
        graph = all_passes(Maker(seed).graph(12, False, *FLOAT))
        if not graph.nodes():
            return
        samples = [feeds(graph, number) for number in range(4)]
        if not all(np.isfinite(a).any() for a in evaluate(graph, samples[0]).values()):
            return
        stored = all_passes(quantize(graph, samples, Settings(io="float")))
        verify(stored)
        real, meant = evaluate(graph, samples[1]), evaluate(stored, samples[1])
        found = run_instructions(lower(stored, stored.nodes(), "net"), samples[1])
    for name, expected in real.items():
        finite = np.isfinite(expected)
        span = float(np.ptp(expected[finite])) if finite.any() else 0.0
        for got, tolerance in ((meant[name], 0.25), (found[name], 0.3)):
            delta = np.abs(expected[finite].astype(np.float64) - got[finite])
            assert float(delta.max(initial=0)) <= max(tolerance * span, 0.1)
