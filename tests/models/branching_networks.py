"""Small networks whose branches meet again side by side, as float ONNX models."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper


class Network:
    """Collects the nodes of one network; every method returns the name of a result."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"{kind.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def constant(self, value: NDArray[Any]) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(value.astype(np.float32), name))
        return name

    def conv(self, x: str, inputs: int, outputs: int, size: int, stride: int = 1) -> str:
        shape = (outputs, inputs, size, size)
        w = self.rng.standard_normal(shape) / np.sqrt(inputs * size * size)
        b = 0.1 * self.rng.standard_normal(outputs)
        window = {"kernel_shape": [size, size], "strides": [stride] * 2, "pads": [size // 2] * 4}
        return self.op("Relu", self.op("Conv", x, self.constant(w), self.constant(b), **window))

    def beside(self, *inputs: str) -> str:
        return self.op("Concat", *inputs, axis=1)

    def pool(self, x: str) -> str:
        return self.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])

    def twice(self, x: str) -> str:
        scales = self.constant(np.array([1, 1, 2, 2]))
        how = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        return self.op("Resize", x, "", scales, mode="nearest", **how)

    def model(self, y: str, channels: int, size: int) -> onnx.ModelProto:
        shape = [1, channels, size, size]
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
        out = helper.make_tensor_value_info(y, TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, "branches", [x], [out], self.constants)
        opsets = [helper.make_opsetid("", 13)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
        return onnx.shape_inference.infer_shapes(model)


def squeeze() -> onnx.ModelProto:
    """Return a network of fire modules, as SqueezeNet has them."""
    net = Network(1)
    x, channels = net.pool(net.conv("x", 3, 16, 3, 2)), 16
    for narrow, wide in ((8, 32), (8, 32), (16, 64), (16, 64)):
        if narrow == 16 and channels == 64:
            x = net.pool(x)
        small = net.conv(x, channels, narrow, 1)
        x = net.beside(net.conv(small, narrow, wide, 1), net.conv(small, narrow, wide, 3))
        channels = 2 * wide
    y = net.op("Flatten", net.op("GlobalAveragePool", net.conv(x, channels, 10, 1)))
    return net.model(y, 3, 64)


def u_net() -> onnx.ModelProto:
    """Return an encoder and a decoder that sees the encoder's results."""
    net = Network(3)
    a = net.conv("x", 1, 8, 3)
    b = net.conv(net.pool(a), 8, 16, 3)
    c = net.conv(net.pool(b), 16, 32, 3)
    d = net.conv(net.beside(b, net.twice(c)), 48, 16, 3)
    return net.model(net.conv(net.beside(a, net.twice(d)), 24, 2, 3), 1, 48)
