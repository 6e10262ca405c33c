"""Pooling over images, NHWC: maximum (and where it lies) and average."""

from __future__ import annotations

from typing import Any

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.fixedpoint import multiplier_of
from glowmcu.core.types import Array, TensorType
from glowmcu.errors import DoesNotFitError
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder
from glowmcu.ops._linear import is_stored, narrowed, of_one_type
from glowmcu.ops._requantize import requantized
from glowmcu.ops._window import Pads, Pair, Window, taps
from glowmcu.ops.base import Example, Op, f32, i8, i16
from glowmcu.ops.lut import emit_lut
from glowmcu.ops.pool2d import (
    AveragePool,
    MaxPool,
    counts,
    max_and_places,
)


class Pool2D(Op):
    """x [N, H, W, C] -> [N, H', W', C]; kind is "max" or "average".

    `extra` is how far windows reach below and to the right of the padding (ONNX ceil_mode); what
    lies there never counts. Padding counts in averages where count_include_pad says so.
    """

    kind: str
    kernel: Pair
    strides: Pair = (1, 1)
    pads: Pads = (0, 0, 0, 0)
    dilations: Pair = (1, 1)
    count_include_pad: bool = False
    extra: Pair = (0, 0)

    def window(self, shape: tuple[int, ...]) -> Window:
        """Return how the window lies on an image of [N, H, W, C]."""
        top, left, bottom, right = self.pads
        reach = (top, left, bottom + self.extra[0], right + self.extra[1])
        size = (shape[1], shape[2])
        return Window.over(size, self.kernel, self.strides, self.dilations, reach)

    def infer(self, x: TensorType) -> TensorType:
        if x.rank != 4:
            raise TypeError(f"x must have four dimensions, not {x.rank}")
        shape = (x.shape[0], *self.window(x.shape).output, x.shape[3])
        return TensorType(x.dtype, shape, x.quant if self.kind == "max" else None)

    def reference(self, x: Array) -> Array:
        window = self.window(x.shape)
        if self.kind == "max":
            lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
            y: Array = np.maximum.reduce([v for _, _, v in taps(x, window, lowest)])
            return y
        total = np.sum([v for _, _, v in taps(x, window, 0)], axis=0, dtype=x.dtype)
        return (total / counts(window, self._counted())[..., None]).astype(x.dtype)

    def _counted(self) -> Pads:
        return self.pads if self.count_include_pad else (0, 0, 0, 0)

    def integer(self, inputs: Any, outputs: Any) -> bool:
        (x,), (y,) = inputs, outputs
        return is_stored(x) and is_stored(y)

    def lower(self, b: Builder, x: Buffer) -> Buffer:
        y = b.result()
        window = self.window(x.type.shape)
        if self.kind == "average" and counts(window, self._counted()).min() == 0:
            raise DoesNotFitError(f"'{b.name}' averages over windows that lie in the padding only")
        (h, w), whole = window.size, window.kernel == window.size and not any(window.pads)
        if whole and window.dilations == (1, 1):
            # a window over the whole plane is one long row
            window = Window((1, h * w), (1, 1), (1, h * w), (1, 1), (1, 1), (0, 0, 0, 0))
        geometry: dict[str, Any] = window.attributes(x.type.shape[0]) | {
            "channels": x.type.shape[3]
        }
        if self.kind == "max":
            return self._lower_max(b, x, geometry)
        top, left, bottom, right = self._counted()
        geometry |= {"count_top": top, "count_left": left}
        geometry |= {"count_bottom": bottom, "count_right": right}
        if x.type.quant is None:
            b.emit(AveragePool(y=y, x=x, **geometry))
        else:
            self._lower_average(b, x, window, geometry)
        return y

    def _lower_max(self, b: Builder, x: Buffer, geometry: dict[str, Any]) -> Buffer:
        y = b.result()
        if x.type.dtype == dtypes.U8:
            return self._lower_unsigned(b, x, geometry)
        if x.type == y.type.with_shape(x.type.shape):
            b.emit(MaxPool(y=y, x=x, **geometry))
            return y
        found = b.activation(x.type.with_shape(y.type.shape))
        b.emit(MaxPool(y=found, x=x, **geometry))
        return requantized(b, found, y.type)

    def _lower_unsigned(self, b: Builder, x: Buffer, geometry: dict[str, Any]) -> Buffer:
        """Emit the maximum of bytes: the order of uint8 is that of int8 with the top bit turned."""
        y = b.result()
        turned = np.arange(256, dtype=np.uint8) ^ 0x80
        signed = b.activation(TensorType(dtypes.I8, x.type.shape))
        found = b.activation(TensorType(dtypes.I8, y.type.shape))
        emit_lut(b, signed, x, turned)
        b.emit(MaxPool(y=found, x=signed, **geometry))
        emit_lut(b, y, found, turned)
        return y

    def _lower_average(
        self, b: Builder, x: Buffer, window: Window, geometry: dict[str, int]
    ) -> None:
        """Emit the integer average: one multiplier for each number of taps that can occur."""
        one = of_one_type(b, x, b.result())
        x, y = one.x, one.y
        assert x.type.quant and y.type.quant
        found = counts(window, self._counted())
        low, high = int(found.min()), int(found.max())
        divisors = [low] if low == high else list(range(1, high + 1))
        scale = x.type.quant.scale[0] / y.type.quant.scale[0]
        pairs = [multiplier_of(scale / n) for n in divisors]
        shift = max(s for _, s in pairs)
        if ((1 << x.type.dtype.bits) * high) << shift >= 1 << 31:
            raise DoesNotFitError(f"the sum of '{b.name}' could pass 2^31")
        multiplier = np.asarray([m >> (shift - s) for m, s in pairs], np.int64) & ~1
        b.emit(
            AveragePool(
                y=y,
                x=x,
                multiplier=b.constant(multiplier.astype(np.int32), f"{b.name}.multiplier"),
                **geometry,
                multipliers=len(divisors),
                fill=x.type.quant.zero_point[0],
                shift=shift,
                zero_point=y.type.quant.zero_point[0],
                low=b.result().type.dtype.low,
                high=b.result().type.dtype.high,
            )
        )
        narrowed(b, b.result(), y)

    examples = (
        Example((f32(1, 6, 5, 3),), {"kind": "max", "kernel": (2, 2), "strides": (2, 2)}),
        Example(
            (f32(2, 7, 5, 1),),
            {"kind": "max", "kernel": (3, 2), "pads": (1, 0, 1, 1), "dilations": (2, 1)},
        ),
        Example(
            (f32(1, 6, 5, 3),),
            {"kind": "average", "kernel": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1)},
        ),
        Example(
            (f32(1, 5, 5, 2),),
            {
                "kind": "average",
                "kernel": (3, 2),
                "strides": (2, 2),
                "pads": (1, 0, 0, 1),
                "count_include_pad": True,
                "extra": (1, 0),
            },
        ),
        Example((f32(1, 25, 5, 7),), {"kind": "average", "kernel": (25, 5)}),
        Example((f32(1, 20, 3, 2),), {"kind": "max", "kernel": (18, 2)}),
        Example(
            (i8(1, 6, 5, 3),),
            {"kind": "max", "kernel": (3, 3), "pads": (1, 1, 1, 1)},
            output=i8(1, 6, 5, 3),
        ),
        Example(
            (i8(1, 6, 5, 3),),
            {"kind": "max", "kernel": (2, 2), "strides": (2, 2)},
            output=i8(1, 3, 2, 3, scale=0.08, zero_point=9),
            tolerance=1,
        ),
        Example(
            (i8(1, 6, 5, 3),),
            {"kind": "average", "kernel": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1)},
            output=i8(1, 3, 3, 3),
            tolerance=1,
        ),
        Example(
            (i8(2, 25, 5, 7, zero_point=-128),),
            {"kind": "average", "kernel": (25, 5)},
            output=i8(2, 1, 1, 7, scale=0.01, zero_point=-128),
            tolerance=1,
        ),
        Example(
            (i8(1, 20, 5, 2),),
            {
                "kind": "average",
                "kernel": (17, 2),
                "strides": (2, 2),
                "pads": (1, 0, 0, 1),
                "count_include_pad": True,
                "extra": (1, 0),
            },
            output=i8(1, 3, 3, 2, scale=0.03),
            tolerance=1,
        ),
        *(
            Example(
                (x,),
                {"kind": kind, "kernel": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1)},
                output=y,
                tolerance=1,
            )
            for kind in ("max", "average")
            for x, y in (
                (i16(1, 6, 5, 3), i16(1, 3, 3, 3)),
                (i16(1, 6, 5, 3, zero_point=-70), i16(1, 3, 3, 3, scale=1.5e-4)),
                (i8(1, 6, 5, 3), i16(1, 3, 3, 3)),
                (i16(1, 6, 5, 3), i8(1, 3, 3, 3)),
            )
        ),
        Example(
            (i16(1, 25, 5, 7),), {"kind": "average", "kernel": (25, 5)}, output=i16(1, 1, 1, 7)
        ),
    )


class MaxPoolIndices2D(Op):
    """Maxima over windows of NHWC x, and their places (int64) in x as [N, C, H, W]."""

    pool: Pool2D
    column_major: bool = False

    def infer(self, x: TensorType) -> tuple[TensorType, TensorType]:
        y = self.pool.infer(x)
        return y, TensorType(dtypes.I64, y.shape)

    def reference(self, x: Array) -> tuple[Array, Array]:
        return max_and_places(x, self.pool.window(x.shape), column_major=self.column_major)

    def lower(self, b: Builder, x: Buffer) -> tuple[Buffer, Buffer]:
        y, indices = b.result(0), b.result(1)
        window = self.pool.window(x.type.shape)
        if counts(window, (0, 0, 0, 0)).min() == 0:
            raise DoesNotFitError(f"'{b.name}' looks at windows that lie in the padding only")
        geometry = window.attributes(x.type.shape[0]) | {"channels": x.type.shape[3]}
        order = int(self.column_major)
        b.emit(MaxPool(y=y, indices=indices, x=x, **geometry, column_major=order))
        return y, indices

    examples = (
        Example((f32(2, 5, 6, 3),), {"pool": Pool2D("max", (2, 2), (2, 2), (1, 0, 0, 0))}),
        Example(
            (f32(1, 7, 4, 2),),
            {"pool": Pool2D("max", (3, 2), dilations=(2, 1)), "column_major": True},
        ),
    )
