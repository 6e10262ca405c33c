"""Shared by dense and the convolutions: folding offline everything that is known offline."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.dtypes import DType
from glowmcu.core.fixedpoint import multiplier_of, requantize
from glowmcu.core.types import Array, Quant, TensorType
from glowmcu.errors import DoesNotFitError, UnsupportedError
from glowmcu.graph.graph import Value
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder
from glowmcu.ops._program import Input, Literal, Step, Temp
from glowmcu.ops.map import Map
from glowmcu.targets.kernel import Kernel


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

    @property
    def is_wide(self) -> bool:
        """True where sums have 64 bits."""
        return self.bias.type.dtype is dtypes.I64

    def attributes(self) -> dict[str, Any]:
        """Return the fields of an instruction that computes the layer."""
        return {
            "w": self.weights,
            "bias": self.bias,
            "multiplier": self.multiplier,
            "shift": self.shift,
            "zero_point": self.zero_point,
        }


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
    reach: int = 0,
) -> FoldedLinear:
    """Fold input zero point, bias scale and output scale of a layer; prove the accumulator's bound.

    `reach` is the largest magnitude of what a kernel multiplies with weights, 0: that of x as
    it is stored.
    bias' = bias - zx * sum(w); scale of channel c = sx * sw[c] / sy. The accumulator of an int16
    layer that could pass 2^31 has 64 bits, and so has its bias; an int8 layer raises
    DoesNotFitError.
    """
    assert x.quant and w.type.quant and y.quant
    reach = reach or -x.dtype.low
    data = _constant_weights(b, w)
    channels = w.type.shape[channel_axis]
    weights = np.moveaxis(data, channel_axis, 0).reshape(channels, -1).astype(np.int64)
    sw = np.broadcast_to(np.asarray(w.type.quant.scale, np.float64), (channels,))
    sx, zx = x.quant.scale[0], x.quant.zero_point[0]
    acc_bias = np.zeros(channels, np.int64)
    if bias is not None:
        acc_bias = _bias_in_accumulator_units(bias, sx * sw)
    acc_bias = acc_bias - zx * weights.sum(axis=1)
    scales = sx * sw / y.quant.scale[0]
    bound = int((np.abs(weights).sum(axis=1) * reach + np.abs(acc_bias)).max(initial=0))
    multiplier, shift = multipliers_of(scales)
    if bound << shift >= 1 << 31:
        if x.dtype is not dtypes.I16:
            reached = bound << shift
            raise DoesNotFitError(f"the accumulator of '{b.name}' could reach {reached}, over 2^31")
        return _fold_wide(b, w, acc_bias, scales, bound, y)
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


def _constant_weights(b: Builder, w: Buffer) -> Array:
    data = data_of(w)
    if data is None:
        raise UnsupportedError(
            f"the int8 weights '{w.name}' of '{b.name}' are computed at run time",
            why="integer layers fold constants of their weights at compile time",
        )
    assert w.type.quant is not None
    if any(w.type.quant.zero_point):
        raise DoesNotFitError(f"weights '{w.name}' have a zero point that was not folded")
    return data


def multipliers_of(scales: Array) -> tuple[Array, int]:
    """Return the multipliers of real scales and the shift that they share."""
    pairs = [multiplier_of(float(s)) for s in scales]
    shift = max((s for _, s in pairs), default=0)
    return np.asarray([m >> (shift - s) for m, s in pairs], np.int64) & ~1, shift


def _fold_wide(
    b: Builder, w: Buffer, bias: Array, scales: Array, bound: int, y: TensorType
) -> FoldedLinear:
    """Return the constants of a layer whose sums have 64 bits: they are shifted right first."""
    assert y.quant is not None
    right = bound.bit_length() - 31 + 1
    multiplier, left = multipliers_of(scales * 2.0**right)
    if left:
        raise DoesNotFitError(
            f"the sums of '{b.name}' reach {bound} and its results are as fine as they are",
            hint="quantize the layer with a coarser output, or keep it in float",
        )
    return FoldedLinear(
        w if w.data is not None else b.constant(_constant_weights(b, w), w.name, w.type),
        b.constant(bias, f"{b.name}.bias"),
        b.constant(multiplier.astype(np.int32), f"{b.name}.multiplier"),
        -right,
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
    """Tell whether x, w, optional b -> y are types that integer layers compute with.

    x and y are int8 or int16 per tensor, w is symmetric int8, per tensor or per output channel.
    """
    x, w, y = inputs[0], inputs[1], outputs[0]
    if x is None or w is None or w.dtype != dtypes.I8 or w.quant is None:
        return False
    return (
        is_stored(x) and is_stored(y) and w.quant.axis in (None, 0) and not any(w.quant.zero_point)
    )


def is_stored(type_: TensorType) -> bool:
    """Tell whether a type is int8 or int16 with one scale."""
    stored = type_.dtype in (dtypes.I8, dtypes.I16)
    return stored and type_.quant is not None and type_.quant.axis is None


def for_type(dtype: DType, *kernels: Kernel) -> tuple[Kernel, ...]:
    """Return kernels that take x and y of this type only."""

    def limited(kernel: Kernel) -> Kernel:
        def accepts(i: Any) -> str:
            same = i.y.type.dtype is dtype
            return kernel.accepts(i) if same else f"is for elements of type {dtype}"

        return replace(kernel, accepts=accepts)

    return tuple(map(limited, kernels))


@dataclass(frozen=True)
class OneType:
    """Operands of one type, and how far x reaches from its zero point, see fold_linear."""

    x: Buffer
    y: Buffer
    reach: int


def of_one_type(b: Builder, x: Buffer, y: Buffer) -> OneType:
    """Return x and y as int16 where one of them is int8 and one int16.

    What is written to another y than this one goes there by `narrowed`.
    """
    if x.type.dtype is y.type.dtype:
        return OneType(x, y, 0)
    return OneType(widened(b, x), wide_result(b, y), 0 if x.type.dtype is dtypes.I16 else 255)


def widened(b: Builder, x: Buffer) -> Buffer:
    """Return int8 x as int16 with zero point 0; x itself where it is int16."""
    if x.type.dtype is dtypes.I16:
        return x
    assert x.type.quant is not None
    symmetric = Quant.per_tensor(x.type.quant.scale[0])
    wide = b.activation(TensorType(dtypes.I16, x.type.shape, symmetric), f"{x.name}.wide")
    zero = Literal(x.type.quant.zero_point[0], dtypes.I16)
    steps = (Step("cast_i16", (Input(0),)), Step("sub", (Temp(0), zero)))
    b.emit(Map(y=wide, xs=(x,), program=steps))
    return wide


def wide_result(b: Builder, y: Buffer) -> Buffer:
    """Return where to write int16 that `narrowed` brings to y: y itself where it is int16."""
    if y.type.dtype is dtypes.I16:
        return y
    return b.activation(replace(y.type, dtype=dtypes.I16), f"{y.name}.wide")


def narrowed(b: Builder, y: Buffer, wide: Buffer) -> None:
    """Bring int16 that lie in the range of int8 y there."""
    if wide is not y:
        b.emit(Map(y=y, xs=(wide,), program=(Step("cast_i8", (Input(0),)),)))


def requantize_channels(i: Any, acc: Array, bias: Array, multiplier: Array) -> Array:
    """Return the stored values of accumulators (exact integers as float64), channels last."""
    total = acc.astype(np.int64) + bias
    found = requantize(total, multiplier, i.shift, i.zero_point, i.low, i.high)
    return found.astype(i.y.type.dtype.numpy)


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
