"""Shared by dense and the convolutions: folding offline everything that is known offline."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.dtypes import DType
from glowmcu.core.fixedpoint import multiplier_of, requantize
from glowmcu.core.types import Array, TensorType
from glowmcu.errors import DoesNotFitError, UnsupportedError
from glowmcu.graph.graph import Value
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder


def data_of(buffer: Buffer) -> Array | None:
    """Return the data of a constant buffer or of a view of one, None for any other."""
    if buffer.root.data is None:
        return None
    stored = np.ascontiguousarray(buffer.root.data).reshape(-1).view(np.uint8)
    part = stored[buffer.root_offset : buffer.root_offset + buffer.nbytes]
    return part.view(buffer.type.dtype.numpy).reshape(buffer.type.shape)


@dataclass(frozen=True)
class FoldedLinear:
    """Constants of an integer layer: y = requantize(bias + sum x * w)."""

    weights: Buffer
    bias: Buffer
    multiplier: Buffer
    shift: int
    zero_point: int


def clamp_range(clamp: tuple[float, float] | None, y: TensorType) -> tuple[int, int]:
    """Return the stored integers between which a real clamp keeps y, ONNX rounding."""
    assert y.quant is not None
    low, high = y.dtype.low, y.dtype.high
    if clamp is None:
        return low, high
    scale, zero = np.float32(y.quant.scale[0]), y.quant.zero_point[0]

    def stored(real: float) -> int:
        if math.isinf(real):
            return low if real < 0 else high
        return int(np.clip(np.rint(np.float32(real) / scale) + zero, low, high))

    return stored(clamp[0]), stored(clamp[1])


def fold_linear(
    b: Builder,
    x: TensorType,
    w: Buffer,
    bias: Buffer | None,
    y: TensorType,
    channel_axis: int,
    reach: int = 128,
) -> FoldedLinear:
    """Fold input zero point, bias scale and output scale of a layer; prove the accumulator's bound.

    `reach` is the largest magnitude of what a kernel multiplies with weights.
    bias' = bias - zx * sum(w); scale of channel c = sx * sw[c] / sy. Raises DoesNotFitError when
    the accumulator could pass 2^31.
    """
    assert x.quant and w.type.quant and y.quant
    data = data_of(w)
    if data is None:
        raise UnsupportedError(
            f"the int8 weights '{w.name}' of '{b.name}' are computed at run time",
            why="integer layers fold constants of their weights at compile time",
        )
    channels = w.type.shape[channel_axis]
    weights = np.moveaxis(data, channel_axis, 0).reshape(channels, -1).astype(np.int64)
    zw = np.broadcast_to(np.asarray(w.type.quant.zero_point, np.int64), (channels,))
    if np.any(zw):
        raise DoesNotFitError(f"weights '{w.name}' have a zero point that was not folded")
    sw = np.broadcast_to(np.asarray(w.type.quant.scale, np.float64), (channels,))
    sx, zx = x.quant.scale[0], x.quant.zero_point[0]
    acc_bias = np.zeros(channels, np.int64)
    if bias is not None:
        acc_bias = _bias_in_accumulator_units(bias, sx * sw)
    acc_bias = acc_bias - zx * weights.sum(axis=1)
    pairs = [multiplier_of(float(s)) for s in sx * sw / y.quant.scale[0]]
    shift = max((s for _, s in pairs), default=0)
    multiplier = np.asarray([m >> (shift - s) for m, s in pairs], np.int64) & ~1
    bound = int((np.abs(weights).sum(axis=1) * reach + np.abs(acc_bias)).max(initial=0)) << shift
    if bound >= 1 << 31:
        raise DoesNotFitError(f"the accumulator of '{b.name}' could reach {bound}, beyond 2^31")
    dead = _settle_constants(weights, acc_bias, multiplier, shift, y, reach)
    changed = bool(weights[dead].any())
    if changed:
        data = data.copy()
        np.moveaxis(data, channel_axis, 0)[dead] = 0
    return FoldedLinear(
        b.constant(data, w.name, w.type) if changed or w.data is None else w,
        b.constant(acc_bias.astype(np.int32), f"{b.name}.bias"),
        b.constant(multiplier.astype(np.int32), f"{b.name}.multiplier"),
        shift,
        y.quant.zero_point[0],
    )


def _settle_constants(
    weights: Array, bias: Array, multiplier: Array, shift: int, y: TensorType, reach: int
) -> Array:
    """Return which channels give one value whatever x is; give these a small bias, in place.

    Training leaves such channels, and their bias may be as large as an accumulator, which would
    keep a whole layer from kernels that need smaller sums.
    """
    assert y.quant is not None
    zero, swing = y.quant.zero_point[0], np.abs(weights).sum(axis=1) * reach
    least, most = (
        requantize(acc, multiplier, shift, zero, y.dtype.low, y.dtype.high)
        for acc in (bias - swing, bias + swing)
    )
    dead: Array = least == most
    bias[dead] = (least[dead].astype(np.int64) - zero) * 4  # 4 v * 2^shift * 2^(30 - shift) / 2^32
    multiplier[dead] = 1 << (30 - shift)
    return dead


def _bias_in_accumulator_units(bias: Buffer, unit: Array) -> Array:
    data = data_of(bias)
    if data is None:
        raise UnsupportedError(f"the bias '{bias.name}' of an int8 layer is computed at run time")
    quant = bias.type.quant
    if quant is None:
        return np.rint(data.astype(np.float64) / unit).astype(np.int64)
    scale = np.asarray(quant.scale, np.float64)
    real = (data.astype(np.int64) - np.asarray(quant.zero_point, np.int64)) * scale
    return np.rint(real / unit).astype(np.int64)


def require_real(node: Any, *values: Value | None, also: tuple[DType, ...] = ()) -> None:
    """Fail at an ONNX node that computes with anything but float32, quantized values, `also`."""
    found = [v for v in values if v is not None]
    for value in found:
        if value.type.quant is None and value.type.dtype not in (dtypes.F32, *also):
            node.fail(
                f"elements of type {value.type.dtype} without quantization",
                why="the layer is implemented for float and quantized int8",
                hint="convert the model to float32",
            )


def integer_linear(inputs: tuple[TensorType | None, ...], outputs: tuple[TensorType, ...]) -> bool:
    """Tell whether x, w, optional b -> y are types that int8 layers compute with.

    x and y are int8 per tensor, w is symmetric int8, per tensor or per output channel.
    """
    x, w, y = inputs[0], inputs[1], outputs[0]
    for tensor in (x, w, y):
        if tensor is None or tensor.dtype != dtypes.I8 or tensor.quant is None:
            return False
    assert x and x.quant and w and w.quant and y.quant
    per_tensor = x.quant.axis is None and y.quant.axis is None
    return per_tensor and w.quant.axis in (None, 0) and not any(w.quant.zero_point)


def requantize_channels(i: Any, acc: Array, bias: Array, multiplier: Array) -> Array:
    """Return the int8 values of accumulators (exact integers as float64), channels last."""
    total = acc.astype(np.int64) + bias
    return requantize(total, multiplier, i.shift, i.zero_point, i.low, i.high).astype(np.int8)


def pad_to_four(values: Array, groups: int) -> Array:
    """Append zeros to each of `groups` equal parts until its length is a multiple of four."""
    parts = values.reshape(groups, -1)
    return np.pad(parts, ((0, 0), (0, -parts.shape[1] % 4))).reshape(-1)


def pack_by_four(weights: Array) -> Array:
    """Interleave rows of [N, K] by four, [ceil(N / 4)][K][4], missing rows as zeros."""
    rows, inner = weights.shape
    padded = np.zeros((math.ceil(rows / 4) * 4, inner), weights.dtype)
    padded[:rows] = weights
    return np.ascontiguousarray(padded.reshape(-1, 4, inner).transpose(0, 2, 1)).reshape(-1)
