"""Reductions over any axes: sums, means, extremes, norms, and the place of an extreme."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.fixedpoint import multiplier_of
from glowmcu.core.types import Array, TensorType, dequantize, quantize
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder
from glowmcu.ops._linear import is_stored
from glowmcu.ops._program import Input, Step, Temp
from glowmcu.ops.base import Example, Op, f32, i8, i16
from glowmcu.ops.elementwise import emit_map
from glowmcu.ops.lut import emit_lut, every_value
from glowmcu.ops.reduction import NUMPY, Reduction, Scaling, reduce_array


class Reduce(Op):
    """Combine the elements along `axes` (not negative; none: each element by itself).

    kind  sum, mean, max, min, prod, l1, l2, sum_square, log_sum, log_sum_exp; argmax, argmin take
          one axis and give int64 indices, of the first extreme unless `select_last`
    """

    floats = (dtypes.F32, dtypes.F64)

    kind: str
    axes: tuple[int, ...]
    keepdims: bool = True
    select_last: bool = False

    @property
    def gives_index(self) -> bool:
        """True for argmax and argmin."""
        return self.kind in ("argmax", "argmin")

    def infer(self, x: TensorType) -> TensorType:
        if any(not 0 <= a < x.rank for a in self.axes) or len(set(self.axes)) < len(self.axes):
            raise TypeError(f"axes {self.axes} do not fit {x}")
        if self.gives_index and len(self.axes) != 1:
            raise TypeError(f"{self.kind} takes one axis")
        shape = tuple(
            1 if axis in self.axes else size
            for axis, size in enumerate(x.shape)
            if self.keepdims or axis not in self.axes
        )
        return TensorType(dtypes.I64 if self.gives_index else x.dtype, shape)

    def reference(self, x: Array) -> Array:
        y = reduce_array(self.kind, self.axes, self.select_last, x)
        return y if self.keepdims else np.squeeze(y, self.axes)

    def integer(self, inputs: Any, outputs: Any) -> bool:
        x, y = inputs[0], outputs[0]
        if not is_stored(x):
            return False
        if self.gives_index:
            return y.quant is None
        if not is_stored(y):
            return False
        if self.kind in ("sum", "mean"):
            return self._sum_constants(x, y) is not None
        return self.kind in ("max", "min")

    def _sum_constants(self, x: TensorType, y: TensorType) -> tuple[int, int] | None:
        """Return (multiplier, shift) of an integer sum, None where it does not fit 32 bits."""
        assert x.quant and y.quant
        count = self._count(x)
        scale = x.quant.scale[0] / y.quant.scale[0] / (count if self.kind == "mean" else 1)
        if scale >= 2.0**14:
            return None
        multiplier, shift = multiplier_of(scale)
        return (multiplier, shift) if (count << x.dtype.bits) << shift < 1 << 31 else None

    def _count(self, x: TensorType) -> int:
        return max(1, math.prod(x.shape[a] for a in self.axes))

    def lower(self, b: Builder, x: Buffer) -> Buffer:
        y = b.result()
        if self.kind == "log_sum_exp":
            self._lower_log_sum_exp(b, y, x)
        elif x.type.quant is None or self.gives_index:
            self._loop(b, y, x, self.kind)
        elif self.kind in ("sum", "mean"):
            self._lower_sum(b, y, x)
        elif (x.type.quant, x.type.dtype) == (y.type.quant, y.type.dtype):
            self._loop(b, y, x, self.kind)
        else:
            assert y.type.quant is not None
            extreme = b.activation(x.type.with_shape(y.type.shape))
            self._loop(b, extreme, x, self.kind)
            table = quantize(
                dequantize(every_value(extreme.type.dtype), x.type.quant),
                y.type.quant,
                y.type.dtype,
            )
            emit_lut(b, y, extreme, table)
        return y

    def _loop(self, b: Builder, y: Buffer, x: Buffer, kind: str) -> None:
        b.emit(Reduction(y=y, x=x, kind=kind, axes=self.axes, select_last=self.select_last))

    def _lower_sum(self, b: Builder, y: Buffer, x: Buffer) -> None:
        found = self._sum_constants(x.type, y.type)
        assert found and x.type.quant and y.type.quant
        b.emit(
            Reduction(
                y=y,
                x=x,
                kind="sum",
                axes=self.axes,
                scaling=Scaling(
                    offset=-self._count(x.type) * x.type.quant.zero_point[0],
                    multiplier=found[0],
                    shift=found[1],
                    zero_point=y.type.quant.zero_point[0],
                ),
            )
        )

    def _lower_log_sum_exp(self, b: Builder, y: Buffer, x: Buffer) -> None:
        """log(sum(exp(x - max))) + max."""
        kept = tuple(1 if a in self.axes else n for a, n in enumerate(x.type.shape))
        small = x.type.with_shape(kept)
        highest, powers, total = b.activation(small), b.activation(x.type), b.activation(small)
        self._loop(b, highest, x, "max")
        shifted = (Step("sub", (Input(0), Input(1))), Step("exp", (Temp(0),)))
        emit_map(b, powers, (x, highest), shifted)
        self._loop(b, total, powers, "sum")
        whole = b.view(y, small) if y.type.shape != kept else y
        emit_map(
            b,
            whole,
            (total, highest),
            (Step("log", (Input(0),)), Step("add", (Temp(0), Input(1)))),
        )

    examples = (
        *(
            Example((f32(2, 3, 4),), {"kind": k, "axes": (1,)}, low=0.1, tolerance=1e-5)
            for k in NUMPY
        ),
        Example((f32(2, 3, 4, 5),), {"kind": "sum", "axes": (1, 3)}, tolerance=1e-5),
        Example(
            (f32(2, 3, 4),),
            {"kind": "log_sum_exp", "axes": (0, 2), "keepdims": False},
            tolerance=1e-5,
        ),
        Example((f32(2, 3),), {"kind": "l1", "axes": ()}),
        Example((f32(2, 0, 3),), {"kind": "max", "axes": (1,)}),
        Example((TensorType(dtypes.I32, (3, 5)),), {"kind": "sum", "axes": (0,)}, low=-9, high=9),
        Example((TensorType(dtypes.I64, (3, 5)),), {"kind": "mean", "axes": (1,)}, low=-9, high=9),
        Example((TensorType(dtypes.U8, (3, 5)),), {"kind": "min", "axes": (1,)}, low=0, high=9),
        Example((f32(4, 6),), {"kind": "argmax", "axes": (1,)}),
        Example((TensorType(dtypes.I32, (4, 6)),), {"kind": "argmin", "axes": (0,)}, low=0, high=3),
        Example(
            (TensorType(dtypes.I32, (4, 6)),),
            {"kind": "argmax", "axes": (1,), "keepdims": False, "select_last": True},
            low=0,
            high=3,
        ),
        Example(
            (i8(1, 7, 7, 5),), {"kind": "mean", "axes": (1, 2)}, (), i8(1, 1, 1, 5), tolerance=1
        ),
        Example(
            (i8(3, 9),),
            {"kind": "sum", "axes": (1,), "keepdims": False},
            (),
            i8(3, scale=0.31, zero_point=20),
            tolerance=1,
        ),
        Example((i8(3, 9),), {"kind": "max", "axes": (0,)}, (), i8(1, 9)),
        Example((i8(3, 9),), {"kind": "min", "axes": (1,)}, (), i8(3, 1, scale=0.06)),
        *(
            Example((x,), {"kind": kind, "axes": (1,)}, (), y, tolerance=1)
            for kind in ("mean", "sum", "max", "min")
            for x, y in (
                (i16(3, 9), i16(3, 1, scale=4e-4)),
                (i16(3, 9, zero_point=20), i16(3, 1, scale=1e-4, zero_point=-9)),
                (i16(3, 9), i8(3, 1)),
                (i8(3, 9), i16(3, 1)),
            )
        ),
        Example((i16(3, 9),), {"kind": "argmax", "axes": (1,)}, (), TensorType(dtypes.I64, (3, 1))),
        Example((i8(3, 9),), {"kind": "argmax", "axes": (1,)}, (), TensorType(dtypes.I64, (3, 1))),
    )
