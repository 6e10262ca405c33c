"""Momentum, Adam, Adagrad, BatchNormalization in training: for learning on the device."""

from __future__ import annotations

import numpy as np

from glowmcu.core import dtypes
from glowmcu.frontend.bodies.body import Body, body
from glowmcu.ops.onnx_node import OnnxNode

_DOMAIN = "ai.onnx.preview.training"


def _regularized(b: Body, norm: float, x: str, g: str) -> str:
    return b("Add", b("Mul", x, norm), g)


def _first(b: Body, node: OnnxNode) -> str:
    """Whether this is the first step."""
    return b("Equal", b.cast(b.input(1), dtypes.F32), 0.0)


@body("Momentum", domain=_DOMAIN)
def momentum(b: Body, node: OnnxNode) -> tuple[str, ...]:
    """Standard and Nesterov."""
    alpha, beta = float(node.attr("alpha")), float(node.attr("beta"))
    norm, nesterov = float(node.attr("norm_coefficient")), node.attr("mode") == "nesterov"
    count = (len(node.inputs) - 2) // 3
    factor = b("Where", _first(b, node), 1.0, beta)
    xs, vs = [], []
    for i in range(count):
        x, g, v = (b.input(2 + i + count * k) for k in range(3))
        gradient = _regularized(b, norm, x, g)
        new = b("Add", b("Mul", v, alpha), b("Mul", gradient, factor))
        step = b("Add", gradient, b("Mul", new, alpha)) if nesterov else new
        xs.append(b("Sub", x, b("Mul", step, b.input(0))))
        vs.append(new)
    return (*xs, *vs)


@body("Adam", domain=_DOMAIN)
def adam(b: Body, node: OnnxNode) -> tuple[str, ...]:
    """With both regularizations."""
    alpha, beta = float(node.attr("alpha", 0.9)), float(node.attr("beta", 0.999))
    norm, post = (
        float(node.attr("norm_coefficient", 0)),
        float(node.attr("norm_coefficient_post", 0)),
    )
    epsilon, count = float(node.attr("epsilon", 1e-6)), (len(node.inputs) - 2) // 4
    t = b.cast(b.input(1), dtypes.F32)
    powers = [b("Sub", 1.0, b("Pow", base, t)) for base in (beta, alpha)]
    corrected = b("Mul", b.input(0), b("Div", b("Sqrt", powers[0]), powers[1]))
    rate = b("Where", _first(b, node), b.input(0), corrected)
    results: tuple[list[str], ...] = ([], [], [])
    for i in range(count):
        x, g, v, h = (b.input(2 + i + count * k) for k in range(4))
        gradient = _regularized(b, norm, x, g)
        v = b("Add", b("Mul", v, alpha), b("Mul", gradient, 1 - alpha))
        square = b("Mul", gradient, gradient)
        h = b("Add", b("Mul", h, beta), b("Mul", square, 1 - beta))
        step = b("Div", v, b("Add", b("Sqrt", h), epsilon))
        x = b("Mul", b("Sub", x, b("Mul", step, rate)), 1 - post)
        for names, name in zip(results, (x, v, h), strict=True):
            names.append(name)
    return tuple(name for names in results for name in names)


@body("Adagrad", domain=_DOMAIN)
def adagrad(b: Body, node: OnnxNode) -> tuple[str, ...]:
    """With decay and regularization."""
    norm, epsilon = float(node.attr("norm_coefficient", 0)), float(node.attr("epsilon", 1e-6))
    t, count = b.cast(b.input(1), dtypes.F32), (len(node.inputs) - 2) // 3
    decay = b("Add", b("Mul", t, float(node.attr("decay_factor", 0))), 1.0)
    rate = b("Div", b.input(0), decay)
    xs, hs = [], []
    for i in range(count):
        x, g, h = (b.input(2 + i + count * k) for k in range(3))
        gradient = _regularized(b, norm, x, g)
        h = b("Add", h, b("Mul", gradient, gradient))
        step = b("Div", gradient, b("Add", b("Sqrt", h), epsilon))
        xs.append(b("Sub", x, b("Mul", step, rate)))
        hs.append(h)
    return (*xs, *hs)


@body("BatchNormalization")
def batch_normalization(b: Body, node: OnnxNode) -> tuple[str, ...]:
    """In training: normalized by the batch's own statistics; running mean and variance."""
    x = node.value(0)
    momentum, epsilon = float(node.attr("momentum", 0.9)), float(node.attr("epsilon", 1e-5))
    node.attr("training_mode")
    axes = np.asarray([d for d in range(x.type.rank) if d != 1], np.int64)
    shape = (x.shape[1], *[1] * (x.type.rank - 2))
    mean = b("ReduceMean", b.real(0), axes)
    centred = b("Sub", b.real(0), mean)
    variance = b("ReduceMean", b("Mul", centred, centred), axes)
    scale, bias = (b.reshape(b.real(i), *shape) for i in (1, 2))
    factor = b("Div", scale, b("Sqrt", b("Add", variance, epsilon)))
    y = b("Add", b("Mul", centred, factor), bias)
    running = (
        b("Add", b("Mul", b.real(i), momentum), b("Mul", b.reshape(s, -1), 1 - momentum))
        for i, s in ((3, mean), (4, variance))
    )
    return (b.like(y, 0), *(b.like(r, 3) for r in running))
