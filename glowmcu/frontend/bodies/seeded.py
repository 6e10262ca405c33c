"""Random numbers with a seed: constants, drawn as ONNX's reference evaluator draws them.

Without a seed the result would differ from run to run and from one implementation to the next.
"""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.dtypes import DType
from glowmcu.core.types import Array
from glowmcu.frontend.bodies.body import Body, Operand, body
from glowmcu.frontend.tensors import dtype_of
from glowmcu.ops.onnx_node import OnnxNode


def _generator(node: OnnxNode) -> np.random.RandomState:
    """Return the generator that the node's seed starts; refuse a node without one."""
    seed = node.attr("seed")
    if seed is None or np.isnan(seed):
        _without_seed(node)
    return np.random.RandomState(int(seed) % 2**32)


def _without_seed(node: OnnxNode) -> NoReturn:
    node.fail(
        "the result is random",
        why="without a seed it differs from run to run; with one it is a constant",
        hint="give the node a seed, make the random tensor an input of the network, or export "
        "the model for inference",
    )


def _dtype(node: OnnxNode, default: DType) -> DType:
    """Return the type that the attribute `dtype` asks for."""
    code = node.attr("dtype")
    return dtype_of(code, f"the result of '{node.label}'") if code else default


def _drawn(node: OnnxNode, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return the numbers that a node gives, computed in their own type as the reference does."""
    generator = _generator(node)
    if node.op_type.startswith("RandomUniform"):
        low, high = float(node.attr("low", 0.0)), float(node.attr("high", 1.0))
        factor, offset, numbers = high - low, low, generator.random_sample(shape)
    else:
        factor, offset = float(node.attr("scale", 1.0)), float(node.attr("mean", 0.0))
        numbers = generator.standard_normal(shape)
    kind = dtype.numpy.type
    return np.asarray(np.asarray(numbers).astype(kind) * kind(factor) + kind(offset))


@body("RandomUniform", "RandomNormal")
def random(b: Body, node: OnnxNode) -> str:
    """With a seed: a constant, the same in every run."""
    shape = tuple(int(d) for d in node.attr("shape"))
    return b("Identity", _drawn(node, shape, _dtype(node, dtypes.F32)))


@body("RandomUniformLike", "RandomNormalLike")
def random_like(b: Body, node: OnnxNode) -> str:
    """With a seed: a constant of the input's shape, the same in every run."""
    type_ = node.value(0).type
    return b("Identity", _drawn(node, type_.shape, _dtype(node, type_.dtype)))


@body("Bernoulli")
def bernoulli(b: Body, node: OnnxNode) -> str:
    """With a seed: the same draws in every run, compared with probabilities known at run time."""
    type_ = node.value(0).type
    draws = _generator(node).random_sample(type_.shape)
    # numpy draws 1 where a draw is > 1 - p for p up to a half, where it is <= p for others
    limit = b("Where", b("LessOrEqual", b.real(0), 0.5), _above(1 - draws), _up(draws))
    return b.cast(b("GreaterOrEqual", b.real(0), limit), _dtype(node, type_.dtype))


@body("Dropout")
def dropout(b: Body, node: OnnxNode) -> tuple[str, str]:
    """As at inference: the tensor itself, and a mask of ones. In training mode with a seed: the
    same mask in every run. Ratio and training mode may be known at run time only.
    """
    x, ratio, training = node.value(0), node.optional(1), node.optional(2)
    ones = np.ones(x.shape, np.bool_ if node.opset >= 10 else x.type.dtype.numpy)
    never = training is None or (training.data is not None and not training.data.any())
    if never or (ratio is not None and ratio.data is not None and not ratio.data.any()):
        return b.input(0), b("Identity", ones)
    if node.attr("seed") is None:
        node.const(2, "training_mode")
        _without_seed(node)
    draws = _generator(node).random_sample(x.shape)
    work = dtypes.F64 if x.type.dtype is dtypes.F64 else dtypes.F32
    wide = ratio is not None and ratio.type.dtype is dtypes.F64
    rate: Operand = 0.5 if ratio is None else b.input(1) if wide else b.real(1)
    mask = b("GreaterOrEqual", draws if wide else -_up(-draws), rate)
    one, rate = np.ones((), work.numpy), b.cast(rate, work)
    kept = b("Mul", b.cast(mask, work), b.cast(b.input(0), work))
    y = b.like(b("Mul", kept, b("Div", one, b("Sub", one, rate))), 0)
    if training is None or training.data is not None:
        return y, mask
    return b("Where", b.input(2), y, b.input(0)), b("Where", b.input(2), mask, ones)


def _up(numbers: Array) -> Array:
    """Return the smallest float32 not below each number: x >= it just where x >= the number."""
    near = numbers.astype(np.float32)
    return np.where(near < numbers, np.nextafter(near, np.float32(np.inf)), near)


def _above(numbers: Array) -> Array:
    """Return the smallest float32 above each number: x >= it just where x > the number."""
    near = numbers.astype(np.float32)
    return np.where(near <= numbers, np.nextafter(near, np.float32(np.inf)), near)
