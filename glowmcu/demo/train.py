"""Train the demo network on handwritten digits with plain numpy: python -m glowmcu.demo.train."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from glowmcu.core.types import Array

Backward = Callable[[Array], Array]
Weights = dict[str, Array]

_EPOCHS = 60
_BATCH = 32
_STEP = 4e-3  # of Adam, falling to 0 by a half cosine


# The network, images as N x H x W x C -------------------------------------------------------------


def initial_weights(rng: np.random.Generator) -> Weights:
    """Return random weights (H x W x in x out; no `out` for the depthwise one) and zero biases."""
    shapes = {
        "conv1": (3, 3, 1, 12),
        "depthwise": (3, 3, 12),
        "pointwise": (1, 1, 12, 24),
        "conv2": (3, 3, 24, 24),
        "dense": (24, 10),
    }
    weights = {}
    for name, shape in shapes.items():
        inputs = 9 if name == "depthwise" else int(np.prod(shape[:-1]))
        weights[name] = rng.normal(0, np.sqrt(2 / inputs), shape).astype(np.float32)
        weights[name + "_bias"] = np.zeros(shape[-1], np.float32)
    return weights


def forward(weights: Weights, x: Array, gradients: Weights) -> tuple[Array, list[Backward]]:
    """Return logits, and the backward steps in forward order, which fill `gradients`."""
    steps: list[Backward] = []
    for layer in (
        _convolution(weights, "conv1", gradients),
        _relu,
        _convolution(weights, "depthwise", gradients),
        _relu,
        _convolution(weights, "pointwise", gradients),
        _relu,
        _max_pool,
        _convolution(weights, "conv2", gradients),
        _relu,
        _global_average,
        _dense(weights, "dense", gradients),
    ):
        x, backward = layer(x)
        steps.append(backward)
    return x, steps


Layer = Callable[[Array], tuple[Array, Backward]]


def _convolution(weights: Weights, name: str, gradients: Weights) -> Layer:
    """Convolution with stride 1 and zero padding that keeps the size."""
    w = weights[name]
    size = w.shape[0]
    pad = size // 2
    # n, h, w: position; i, j: tap; c: input channel; o: output channel
    window, weight = ("nhwijc", "ijc") if w.ndim == 3 else ("nhwijc", "ijco")
    result = "nhwc" if w.ndim == 3 else "nhwo"

    def layer(x: Array) -> tuple[Array, Backward]:
        padded = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (size, size), (1, 2))
        windows = np.ascontiguousarray(windows.transpose(0, 1, 2, 4, 5, 3))
        y = np.einsum(f"{window},{weight}->{result}", windows, w, optimize=True)

        def backward(dy: Array) -> Array:
            gradients[name] = np.einsum(f"{window},{result}->{weight}", windows, dy, optimize=True)
            gradients[name + "_bias"] = dy.sum((0, 1, 2))
            dwindows = np.einsum(f"{result},{weight}->{window}", dy, w, optimize=True)
            dx = np.zeros_like(padded)
            for i in range(size):
                for j in range(size):
                    dx[:, i : i + x.shape[1], j : j + x.shape[2]] += dwindows[:, :, :, i, j]
            return dx[:, pad : pad + x.shape[1], pad : pad + x.shape[2]]

        return y + weights[name + "_bias"], backward

    return layer


def _dense(weights: Weights, name: str, gradients: Weights) -> Layer:
    def layer(x: Array) -> tuple[Array, Backward]:
        def backward(dy: Array) -> Array:
            gradients[name] = x.T @ dy
            gradients[name + "_bias"] = dy.sum(0)
            return dy @ weights[name].T

        return x @ weights[name] + weights[name + "_bias"], backward

    return layer


def _relu(x: Array) -> tuple[Array, Backward]:
    return np.maximum(x, 0), lambda dy: dy * (x > 0)


def _max_pool(x: Array) -> tuple[Array, Backward]:
    n, h, w, c = x.shape
    blocks = x.reshape(n, h // 2, 2, w // 2, 2, c)
    y = blocks.max((2, 4))

    def backward(dy: Array) -> Array:
        largest = blocks == y[:, :, None, :, None]
        return np.asarray(largest * dy[:, :, None, :, None]).reshape(x.shape)

    return y, backward


def _global_average(x: Array) -> tuple[Array, Backward]:
    _, h, w, _ = x.shape
    return x.mean((1, 2)), lambda dy: np.broadcast_to(dy[:, None, None] / (h * w), x.shape)


# Training -----------------------------------------------------------------------------------------


def load_digits() -> tuple[Array, Array, Array, Array]:
    """Return images (N x 1 x 8 x 8, 0 to 1) and labels to train on, then those held out."""
    from sklearn import datasets

    data = datasets.load_digits()
    order = np.random.default_rng(1).permutation(len(data.target))
    x = (data.images[order, None] / 16).astype(np.float32)
    y = data.target[order].astype(np.int64)
    return x[360:], y[360:], x[:360], y[:360]


def train(x: Array, y: Array, epochs: int = _EPOCHS) -> Weights:
    """Return the weights that Adam finds for the images `x` with the labels `y`."""
    rng = np.random.default_rng(7)
    weights = initial_weights(rng)
    mean = {name: np.zeros_like(w) for name, w in weights.items()}
    square = {name: np.zeros_like(w) for name, w in weights.items()}
    images = x.transpose(0, 2, 3, 1)
    total = epochs * (len(x) // _BATCH)
    for step, batch in enumerate(_batches(rng, len(x), epochs)):
        gradients: Weights = {}
        logits, steps = forward(weights, _shifted(rng, images[batch]), gradients)
        delta = (softmax(logits) - np.eye(10, dtype=np.float32)[y[batch]]) / len(batch)
        for backward in reversed(steps):
            delta = backward(delta)
        rate = _STEP * (1 + np.cos(np.pi * step / total)) / 2
        for name, gradient in gradients.items():
            mean[name] += 0.1 * (gradient - mean[name])
            square[name] += 0.001 * (gradient**2 - square[name])
            unbiased = mean[name] / (1 - 0.9 ** (step + 1))
            scale = np.sqrt(square[name] / (1 - 0.999 ** (step + 1))) + 1e-8
            weights[name] = (weights[name] - rate * unbiased / scale).astype(np.float32)
    return weights


def _batches(rng: np.random.Generator, count: int, epochs: int) -> Iterator[Array]:
    for _ in range(epochs):
        order = rng.permutation(count)
        for start in range(0, count - _BATCH + 1, _BATCH):
            yield order[start : start + _BATCH]


def _shifted(rng: np.random.Generator, images: Array) -> Array:
    """Return the images moved sideways by one pixel or not at all: more to learn from."""
    result = images.copy()
    moves = rng.integers(-1, 2, len(images))
    for move in (-1, 1):
        result[moves == move] = np.roll(images[moves == move], move, axis=2)
    return result


def softmax(logits: Array) -> Array:
    """Return probabilities along the last axis."""
    e = np.exp(logits - logits.max(-1, keepdims=True))
    return np.asarray(e / e.sum(-1, keepdims=True))


def accuracy(weights: Weights, x: Array, y: Array) -> float:
    """Return the fraction of the images `x` that get their label."""
    logits, _ = forward(weights, x.transpose(0, 2, 3, 1), {})
    return float((logits.argmax(1) == y).mean())


# ONNX ---------------------------------------------------------------------------------------------


def to_onnx(weights: Weights) -> onnx.ModelProto:
    """Return the trained network as a float ONNX model, images as N x C x H x W."""
    constants = {name: w for name, w in weights.items() if w.ndim < 3}
    for name, w in weights.items():
        if w.ndim >= 3:
            w = w[..., None, :] if w.ndim == 3 else w
            constants[name] = np.ascontiguousarray(w.transpose(3, 2, 0, 1))
    values = ["image"]
    nodes: list[onnx.NodeProto] = []

    def add(op: str, *parameters: str, **attributes: Any) -> None:
        values.append("probabilities" if op == "Softmax" else f"{op.lower()}_{len(nodes)}")
        nodes.append(helper.make_node(op, [values[-2], *parameters], [values[-1]], **attributes))
        nodes[-1].name = values[-1]

    same: dict[str, Any] = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    add("Conv", "conv1", "conv1_bias", **same)
    add("Relu")
    add("Conv", "depthwise", "depthwise_bias", **same, group=12)
    add("Relu")
    add("Conv", "pointwise", "pointwise_bias", kernel_shape=[1, 1])
    add("Relu")
    add("MaxPool", kernel_shape=[2, 2], strides=[2, 2])
    add("Conv", "conv2", "conv2_bias", **same)
    add("Relu")
    add("GlobalAveragePool")
    add("Flatten")
    add("Gemm", "dense", "dense_bias")
    add("Softmax", axis=1)
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, 8, 8])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", 10])],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    model.producer_name = "glowmcu demo"
    onnx.checker.check_model(model, full_check=True)
    return model


def main() -> None:
    """Train, and write the network, the held-out digits and the calibration data."""
    x, y, held_out, labels = load_digits()
    weights = train(x, y)
    print(f"{100 * accuracy(weights, held_out, labels):.2f} % of the held-out digits are right")
    folder = Path(__file__).parent
    onnx.save(to_onnx(weights), folder / "digits.onnx")
    np.savez_compressed(folder / "digits_test.npz", image=held_out, label=labels)
    np.savez_compressed(folder / "digits_calibration.npz", image=x[:128])


if __name__ == "__main__":
    main()
