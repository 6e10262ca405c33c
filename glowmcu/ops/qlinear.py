"""Importers of element-wise operators on stored integers, the QOperator format of ONNX Runtime.

Each one means dequantize, compute, quantize, and is imported as that.
"""

from __future__ import annotations

from glowmcu.core.types import Quant
from glowmcu.graph.graph import Value
from glowmcu.ops.base import onnx_op
from glowmcu.ops.elementwise_onnx import elementwise, scalar
from glowmcu.ops.onnx_node import OnnxNode
from glowmcu.ops.quant import AsQuant, Dequantize, Quantize
from glowmcu.ops.softmax import Softmax
from glowmcu.ops.transpose import Transpose

_MICROSOFT = "com.microsoft"


def quant_at(node: OnnxNode, index: int) -> Quant:
    """Return the quantization whose constant scale is input `index` and zero point the next."""
    scale, zero = node.const(index, "a scale"), node.const(index + 1, "a zero point")
    if scale is None or scale.size != 1 or (zero is not None and zero.size != 1):
        node.fail("more than one scale for a tensor", hint="quantize activations per tensor")
    point = 0 if zero is None else int(zero.reshape(-1)[0])
    return Quant.per_tensor(float(scale.reshape(-1)[0]), point)


def real_operand(node: OnnxNode, index: int) -> Value:
    """Return the real numbers of input `index`, whose scale and zero point are the next inputs."""
    x, quant = node.value(index), quant_at(node, index + 1)
    if x.type.quant != quant:
        x = node.apply(AsQuant(quant), x, suffix=f"stored{index}").output
    return node.apply(Dequantize(), x, suffix=f"real{index}").output


def stored_result(node: OnnxNode, y: Value, index: int) -> Value:
    """Return the node's output: y quantized by the scale at `index`, of the first input's type."""
    dtype = node.value(0).type.dtype
    return node.apply(Quantize(dtype, quant_at(node, index)), y).output


@onnx_op("QLinearAdd", "QLinearMul", domain=_MICROSOFT)
def import_qlinear_binary(node: OnnxNode) -> Value:
    """Two stored tensors with broadcasting."""
    fn = node.op_type.removeprefix("QLinear").lower()
    a, b = real_operand(node, 0), real_operand(node, 3)
    return stored_result(node, elementwise(node, fn, a, b, suffix="real"), 6)


@onnx_op("QLinearSigmoid", domain=_MICROSOFT)
def import_qlinear_sigmoid(node: OnnxNode) -> Value:
    """Sigmoid of a stored tensor."""
    y = elementwise(node, "sigmoid", real_operand(node, 0), suffix="real")
    return stored_result(node, y, 3)


@onnx_op("QLinearLeakyRelu", domain=_MICROSOFT)
def import_qlinear_leaky_relu(node: OnnxNode) -> Value:
    """LeakyRelu of a stored tensor."""
    x = real_operand(node, 0)
    alpha = scalar(node, float(node.attr("alpha", 0.01)), x, "alpha")
    return stored_result(node, elementwise(node, "leaky_relu", x, alpha, suffix="real"), 3)


@onnx_op("QLinearSoftmax", domain=_MICROSOFT)
def import_qlinear_softmax(node: OnnxNode) -> Value:
    """Softmax of a stored tensor along one axis, as from opset 13."""
    x = real_operand(node, 0)
    if int(node.attr("opset", 13)) < 13:
        node.fail("the softmax of opset 12 and older", hint="convert the model to opset 13")
    axis = int(node.attr("axis", -1)) % x.type.rank
    order = list(range(x.type.rank))
    order[axis], order[-1] = order[-1], order[axis]
    if axis != x.type.rank - 1:
        x = node.apply(Transpose(tuple(order)), x, suffix="moved").output
    y = node.apply(Softmax(), x, suffix="rows").output
    if axis != x.type.rank - 1:
        y = node.apply(Transpose(tuple(order)), y, suffix="real").output
    return stored_result(node, y, 3)
