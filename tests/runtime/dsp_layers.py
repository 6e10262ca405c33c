"""Layers for the tests of kernels of Arm's DSP extension: random and adversarial weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.dtypes import DType
from glowmcu.core.types import Array, Quant, TensorType
from glowmcu.emit.emitter import emit
from glowmcu.emit.unit import CodeUnit, ModelInfo
from glowmcu.graph.graph import Graph, Value, apply, constant
from glowmcu.instr import evaluate as instr_level
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Function
from glowmcu.lowering.lower import lower
from glowmcu.memory import FUNCTION_PASSES
from glowmcu.memory.check import check
from glowmcu.memory.plan import plan
from glowmcu.ops.base import Op
from glowmcu.ops.conv import Conv2D
from glowmcu.ops.dense import Dense
from glowmcu.options import Options
from glowmcu.targets.kernel import Kernel
from glowmcu.targets.target import Target, target

M4 = target("cortex-m4")


@dataclass(frozen=True)
class Layer:
    """One convolution or dense layer; `dtype` is that of x and y, scales are for int8.

    weights: random; small; extreme, all 127 or -127; even, odd, both: these, and -128 in such
             channels.
    """

    x: tuple[int, ...]
    w: tuple[int, ...]
    attributes: tuple[tuple[str, Any], ...] = ()
    weights: str = "random"
    zero_point: int = -3
    scale: float = 1.0
    clamp: tuple[float, float] | None = None
    dtype: DType = dtypes.I8

    @property
    def is_dense(self) -> bool:
        return len(self.w) == 2


def conv(
    size: tuple[int, int, int], out: int, kernel: int | tuple[int, int] = 1, **options: Any
) -> Layer:
    """A convolution of [H, W, C] to `out` channels; strides, pads and fields of Layer by name."""
    high, wide = kernel if isinstance(kernel, tuple) else (kernel, kernel)
    fields = {k: options.pop(k) for k in list(options) if k in Layer.__dataclass_fields__}
    batch = options.pop("batch", 1)
    return Layer((batch, *size), (out, high, wide, size[2]), tuple(options.items()), **fields)


def dense(rows: int, inner: int, cols: int, **fields: Any) -> Layer:
    return Layer((rows, inner), (cols, inner), **fields)


def _weights(layer: Layer, rng: Any) -> Array:
    if layer.weights == "random":
        return rng.integers(-127, 128, layer.w).astype(np.int8)
    if layer.weights == "small":
        return rng.integers(-1, 2, layer.w).astype(np.int8)
    found = np.where(rng.integers(0, 4, layer.w) > 0, 127, -127).astype(np.int8)
    if layer.weights in ("even", "both"):
        found[0::2, ..., 0] = -128
    if layer.weights in ("odd", "both"):
        found[1::2, ..., 0] = -128
    return found


def function_of(layer: Layer, seed: int) -> Function:
    """Return the function of one layer, without kernels."""
    rng = np.random.default_rng(seed)
    data = _weights(layer, rng)
    inner = data[0].size
    step = 2.0 ** (8 - layer.dtype.bits)
    sx = 0.05 * step
    sw = tuple(0.01 * (1 + 0.1 * (n % 7)) for n in range(layer.w[0]))
    sy = 0.05 * 0.012 * 5500 * inner**0.5 / 50 / layer.scale * step
    x = Value("x", TensorType(layer.dtype, layer.x, Quant.per_tensor(sx, layer.zero_point)))
    w_type = TensorType(dtypes.I8, layer.w, Quant(sw, (0,) * len(sw), 0))
    w = constant("w", data, w_type)
    bias_type = TensorType(
        dtypes.I32, (len(sw),), Quant(tuple(sx * s for s in sw), (0,) * len(sw), 0)
    )
    limit = 30 if layer.weights == "small" else 9999
    bias = constant("b", rng.integers(-limit, limit, len(sw)).astype(np.int32), bias_type)
    op: Op = (
        Dense(layer.clamp)
        if layer.is_dense
        else Conv2D(clamp=layer.clamp, **dict(layer.attributes))
    )
    shape = op.infer(x.type, w_type, bias_type).shape
    y = TensorType(layer.dtype, shape, Quant.per_tensor(sy, -7))
    node = apply(op, x, w, bias, name="y", types=(y,))
    graph = Graph("layer", (x,), node.outputs, ("y",))
    return lower(graph, graph.nodes(), "layer")


def offered(function: Function, processor: Target = M4) -> Iterator[Kernel]:
    """Yield the kernels of the DSP extension that accept the layer."""
    (instruction,) = function.instructions
    for kernel in instruction.kernels:
        if kernel.folder == "arm_dsp" and kernel.requires <= processor.capabilities:
            if not kernel.accepts(instruction):
                yield kernel


def raw_kernels(function: Function) -> list[Kernel]:
    """Return those of the raw-weight product."""
    return [k for k in offered(function) if k.template and k.template.startswith("raw_")]


def bound(function: Function, kernel: Kernel) -> Function:
    """Return the function with that kernel and its scratch."""
    (instruction,) = function.instructions
    size = kernel.scratch(instruction)
    scratch = Buffer("scratch", TensorType(dtypes.U8, (size,)), "scratch") if size else None
    chosen = replace(instruction, kernel=kernel, scratch=scratch)  # type: ignore[type-var]
    return replace(function, instructions=(chosen,))


def unit_of(function: Function, name: str, share: bool, processor: Target = M4) -> CodeUnit:
    """Return the C of a function whose instruction has its kernel."""
    for item in FUNCTION_PASSES if share else ():
        function = item.run(function)
    layout = plan(function, processor.align)
    check(function, layout)
    return emit(function, layout, processor, Options(name=name), ModelInfo(name))


def feeds_of(layer: Layer, seed: int) -> list[dict[str, Array]]:
    """Random values, and those that drive sums to their bounds."""
    rng = np.random.default_rng(seed)
    low, high = layer.dtype.low, layer.dtype.high
    random = rng.integers(low, high + 1, layer.x)
    corners = np.where(rng.integers(0, 2, layer.x) > 0, high, low)
    found = (random, corners, np.full(layer.x, high), np.full(layer.x, low))
    return [{"x": f.astype(layer.dtype.numpy)} for f in found]


def expected_of(function: Function, feeds: list[dict[str, Array]]) -> list[Array]:
    return [instr_level.evaluate(function, f)["y"] for f in feeds]


SAME = {"pads": (1, 1, 1, 1)}
TWO = {"strides": (2, 2)}
LAYERS = [
    # pointwise: chunks, odd pixels, tails, small and large K, weights in FPU registers
    conv((5, 5, 64), 64),
    conv((3, 3, 8), 16),
    conv((7, 9, 16), 32),
    conv((4, 5, 32), 12),
    conv((1, 1, 12), 8),
    conv((1, 2, 4), 4),
    conv((3, 3, 7), 5),
    conv((1, 17, 13), 3),
    conv((2, 3, 2), 1),
    conv((1, 3, 100), 6),
    conv((3, 1, 256), 7, weights="extreme"),
    conv((2, 2, 66), 17),
    conv((2, 3, 28), 8),
    conv((3, 3, 40), 9, clamp=(-1.0, 1.5)),
    conv((3, 5, 16), 8, clamp=(0.0, 2.0)),
    conv((3, 3, 20), 8, weights="even"),
    conv((3, 3, 21), 6, weights="odd"),
    conv((3, 3, 4), 4, batch=3),
    conv((3, 5, 8), 8, weights="small", scale=900.0),
    conv((3, 3, 10), 5, weights="small", scale=900.0),
    conv((4, 5, 3), 5, 2, weights="small", scale=900.0),
    dense(2, 11, 6, weights="small", scale=900.0),
    # windows: odd and even widths, strides, channels that make odd rows, tall windows, loops
    conv((6, 6, 3), 8, 3, **SAME),
    conv((7, 7, 3), 9, 3, **TWO),
    conv((5, 7, 1), 4, (4, 3), pads=(2, 1, 1, 1)),
    conv((12, 5, 1), 16, (10, 4), strides=(2, 2), pads=(4, 1, 5, 1)),
    conv((5, 5, 16), 8, 3, **SAME),
    conv((4, 6, 32), 7, 3, pads=(0, 1, 1, 0)),
    conv((4, 4, 56), 4, 3, **SAME, weights="extreme"),
    conv((5, 5, 5), 6, 3, strides=(3, 3), pads=(2, 1, 0, 2)),
    conv((6, 6, 2), 5, 2, strides=(1, 2), batch=2),
    conv((9, 9, 12), 8, 1, **TWO),
    conv((8, 9, 7), 4, 1, **TWO),
    conv((3, 1, 4), 4, 3, **SAME),
    conv((17, 2, 1), 3, (16, 1), pads=(0, 0, 3, 0)),
    conv((3, 4, 9), 3, 3, **SAME, weights="odd", clamp=(-3.0, 3.0), zero_point=-128),
    conv((6, 5, 6), 4, 5, pads=(2, 2, 2, 2), zero_point=127),
    conv((1, 20, 40), 6, (1, 3), pads=(0, 1, 0, 1)),
    conv((5, 5, 24), 4, 4),
    # dense
    dense(1, 64, 12),
    dense(1, 640, 10),
    dense(3, 9, 7),
    dense(1, 1, 1),
    dense(2, 130, 2, weights="extreme"),
    dense(1, 67, 5, clamp=(-2.0, 2.0)),
    dense(1, 128, 6, weights="even"),
]
LAYERS += [replace(layer, dtype=dtypes.I16, zero_point=0) for layer in LAYERS[::4]]
