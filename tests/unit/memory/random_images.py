"""Random int8 and float networks of convolutions, pools, sums and tables on images, as graphs."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.types import Quant, TensorType
from glowmcu.graph.graph import Graph, Value, apply, constant
from glowmcu.instr.function import Function
from glowmcu.lowering.lower import lower
from glowmcu.lowering.select import select_kernels
from glowmcu.ops._resize_taps import Axis
from glowmcu.ops.base import f32, i8
from glowmcu.ops.concat import Concat
from glowmcu.ops.conv import Conv2D
from glowmcu.ops.elementwise import Elementwise
from glowmcu.ops.pool import Pool2D
from glowmcu.ops.resize import Resize2D
from glowmcu.ops.slice import Slice
from glowmcu.ops.transpose import Transpose
from glowmcu.targets.target import target


class Maker:
    """Draws one network."""

    def __init__(self, seed: int, *, real: bool = False, branches: bool = False) -> None:
        self.real = real
        self.with_branches = branches
        self.chance = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.count = 0

    def network(self) -> Graph:
        """Return a network of two to seven layers, some with residual sums, some that end in one
        value for each channel."""
        pick = self.chance.choice
        h, w, c = self.chance.randint(5, 14), pick([1, 2, 5, 8, 9]), pick([1, 2, 3, 4, 8])
        planar = self.with_branches and self.chance.random() < 0.5
        source = Value("x", (f32 if self.real else i8)(1, *((c, h, w) if planar else (h, w, c))))
        x, skip = source, None
        if planar:
            x = self.node(Transpose((0, 2, 3, 1)), x, x, same=True)
        for _ in range(self.chance.randint(2, 7)):
            made = self.layer(x)
            if made is None:
                continue
            x = made
            if skip is not None and skip.shape == x.shape and self.chance.random() < 0.7:
                x, skip = self.node(Elementwise("add"), x, x, skip), None
            elif self.chance.random() < 0.4:
                skip = x
        if self.chance.random() < 0.5:
            x = self.whole(x)
        outputs = [x]
        if skip is not None and self.chance.random() < 0.3:
            outputs.append(skip)
        outputs = list(dict.fromkeys(v for v in outputs if v.producer is not None))
        if not outputs:
            outputs = [self.node(Elementwise("relu"), source, source)]
        names = tuple(f"y{n}" for n in range(len(outputs)))
        return Graph("net", (source,), tuple(outputs), names)

    def layer(self, x: Value) -> Value | None:
        """Append a layer whose window fits; None where it does not."""
        pick = self.chance.choice
        kind = pick(
            [
                *("conv", "conv", "pointwise", "depthwise", "depthwise", "max", "average", "map"),
                *(["branches"] if self.with_branches else []),
            ]
        )
        _, h, w, c = x.shape
        if kind == "branches":
            return self.branches(x)
        if kind == "map":
            return self.node(Elementwise(pick(["relu", "sigmoid"])), x, x)
        if kind == "pointwise":
            return self.conv(x, (1, 1), pick([1, 3, 4, 8]), 1, strides=(pick([1, 1, 2]), 1))
        kernel = (pick([1, 2, 3, 3, 5]), pick([1, 2, 3, 3]))
        dilations = (pick([1, 1, 1, 2]), pick([1, 1, 2]))
        span = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
        pads = tuple(self.chance.randint(0, k - 1) for k in (*kernel, *kernel))
        if h + pads[0] + pads[2] < span[0] or w + pads[1] + pads[3] < span[1]:
            return None
        shape: dict[str, Any] = {
            "strides": (pick([1, 1, 2, 3]), pick([1, 1, 2])),
            "pads": pads,
            "dilations": dilations,
        }
        if kind in ("max", "average"):
            if kind == "average" and max(dilations) > 1:
                return None
            op = Pool2D(kind=kind, kernel=kernel, **shape)
            return self.node(op, x, x, same=kind == "max")
        groups = c if kind == "depthwise" else 1
        return self.conv(
            x, kernel, c if kind == "depthwise" else pick([2, 3, 4, 6]), groups, **shape
        )

    def branches(self, x: Value) -> Value:
        """Split the channels, give each part a layer, put them side by side, some with x."""
        _, h, w, c = x.shape
        cut = self.chance.randint(1, max(1, c - 1))
        if self.chance.random() < 0.6 and h * w < 100:
            repeat = self.chance.choice([(2, 2), (3, 1), (2, 1), (1, 2)])
            axes = [Axis(n, n * k, k) for n, k in zip((h, w), repeat, strict=True)]
            x = self.node(Resize2D(axes[0], axes[1]), x, x, same=True)
            _, h, w, c = x.shape
        parts = [x]
        for start, count in ((0, cut), (cut, c - cut)):
            if count:
                op = Slice((0, 0, 0, start), (1, 1, 1, 1), (1, h, w, count))
                part = self.node(op, x, x, same=True)
                parts.append(self.conv(part, (3, 3), 4, 1, pads=(1, 1, 1, 1)))
        count = self.chance.randint(2, len(parts))
        return self.node(Concat(3), parts[-1], *parts[-count:], same=self.chance.random() < 0.7)

    def whole(self, x: Value) -> Value:
        """Append a layer over all rows, most often over the whole image."""
        _, h, w, c = x.shape
        if self.chance.random() < 0.5:
            return self.node(Pool2D(kind="average", kernel=(h, w)), x, x)
        return self.conv(x, (h, 1), c, c) if h <= 16 else x

    def conv(
        self, x: Value, kernel: tuple[int, int], outputs: int, groups: int, **shape: Any
    ) -> Value:
        """Append a convolution with random weights."""
        inner = x.shape[3] // groups
        if self.real:
            real_w = self.numbers.standard_normal((outputs, *kernel, inner)).astype(np.float32)
            real_b = self.numbers.standard_normal(outputs).astype(np.float32)
            clamp = self.chance.choice([None, (0.0, 6.0)])
            parts = constant(self.name("w"), real_w), constant(self.name("b"), real_b)
            return self.node(Conv2D(groups=groups, clamp=clamp, **shape), x, x, *parts)
        weights = self.numbers.integers(-127, 128, (outputs, *kernel, inner)).astype(np.int8)
        scales = tuple(self.numbers.uniform(0.002, 0.02, outputs).tolist())
        quant = Quant(scales, (0,) * outputs, 0)
        w = constant(self.name("w"), weights, TensorType(dtypes.I8, weights.shape, quant))
        bias = self.numbers.integers(-2000, 2000, outputs).astype(np.int32)
        assert x.type.quant is not None
        bias_quant = Quant(tuple(s * x.type.quant.scale[0] for s in scales), (0,) * outputs, 0)
        b = constant(self.name("b"), bias, TensorType(dtypes.I32, bias.shape, bias_quant))
        return self.node(Conv2D(groups=groups, **shape), x, x, w, b)

    def node(self, op: Any, like: Value, *inputs: Value, same: bool = False) -> Value:
        """Apply an operator; its result is quantized like `like` or at random."""
        result = op.infer(*(v.type for v in inputs))
        if self.real:
            return apply(op, *inputs, name=self.name("t")).output
        quant = like.type.quant
        if not same:
            scale, zero = self.chance.choice([0.03, 0.05, 0.2]), self.chance.randint(-128, 30)
            quant = Quant.per_tensor(scale, zero)
        type_ = TensorType(dtypes.I8, result.shape, quant)
        return apply(op, *inputs, name=self.name("t"), types=(type_,)).output

    def name(self, kind: str) -> str:
        """Return a new name."""
        self.count += 1
        return f"{kind}{self.count}"


def random_function(
    seed: int, *, real: bool = False, branches: bool = False, machine: str = "host"
) -> Function:
    """Return a random network as instructions with kernels, by default the portable ones."""
    graph = Maker(seed, real=real, branches=branches).network()
    return select_kernels(lower(graph, graph.nodes(), "net"), target(machine), "balanced")
