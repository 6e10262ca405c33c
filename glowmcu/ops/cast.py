"""Cast: the same numbers as elements of another type."""

from __future__ import annotations

import onnx

from glowmcu.core import dtypes
from glowmcu.core.dtypes import DType
from glowmcu.core.types import Array, TensorType
from glowmcu.graph.graph import Value
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder
from glowmcu.ops._functions import FUNCTIONS, STORED
from glowmcu.ops._program import Input, Step, run
from glowmcu.ops.base import Example, Op, f32, onnx_op
from glowmcu.ops.elementwise import Elementwise
from glowmcu.ops.onnx_node import OnnxNode


class Cast(Op):
    """x as elements of `dtype`: integers wrap, real numbers are cut and saturate.

    saturate    False: what an 8-bit float cannot hold becomes infinity or NaN
    round_mode  of powers of two (e8m0): up, down or nearest
    """

    dtype: DType
    saturate: bool = True
    round_mode: str = "up"

    @property
    def fn(self) -> str:
        """Name of the function in the table."""
        rounding = "" if self.round_mode == "up" else f"_{self.round_mode}"
        return f"cast_{self.dtype}{rounding}{'' if self.saturate else '_unbounded'}"

    def infer(self, x: TensorType) -> TensorType:
        return TensorType(self.dtype, x.shape)

    def reference(self, x: Array) -> Array:
        return run((Step(self.fn, (Input(0),)),), FUNCTIONS, (x,))

    def lower(self, b: Builder, x: Buffer) -> Buffer:
        return Elementwise(self.fn).lower(b, x)

    examples = (
        Example((f32(3, 5),), {"dtype": dtypes.I8}, low=-200.0, high=200.0),
        Example((f32(17),), {"dtype": dtypes.U8}, low=-9.0, high=300.0),
        Example((f32(17),), {"dtype": dtypes.I64}, low=-1e19, high=1e19),
        Example((f32(17),), {"dtype": dtypes.BOOL}),
        Example((f32(17),), {"dtype": dtypes.F64}),
        Example((f32(33),), {"dtype": dtypes.F16}, low=-1e-4, high=1e-4),
        Example((f32(33),), {"dtype": dtypes.F16}, low=-7e4, high=7e4),
        Example((TensorType(dtypes.F16, (9,)),), {"dtype": dtypes.F32}, low=-1e-4, high=1e-4),
        Example((TensorType(dtypes.F16, (9,)),), {"dtype": dtypes.F32}, low=-1e4, high=1e4),
        Example((f32(9),), {"dtype": dtypes.BF16}),
        Example((TensorType(dtypes.BF16, (9,)),), {"dtype": dtypes.F32}),
        Example((TensorType(dtypes.I64, (9,)),), {"dtype": dtypes.I8}, low=-999, high=999),
        Example((TensorType(dtypes.I32, (9,)),), {"dtype": dtypes.F32}, low=-999, high=999),
        Example((TensorType(dtypes.BOOL, (9,)),), {"dtype": dtypes.I64}, low=0, high=2),
        *(
            Example((f32(3, 5),), {"dtype": t}, low=t.low, high=t.high)
            for t in dtypes.SMALL_INTEGERS
        ),
        Example((f32(3, 5),), {"dtype": dtypes.E2M1}, low=-9, high=9),
        *(
            Example((TensorType(t, (3, 7)),), {"dtype": dtypes.F32}, low=-9, high=9)
            for t in (*dtypes.SMALL_INTEGERS, dtypes.E2M1)
        ),
    )


@onnx_op("Cast")
def import_cast(node: OnnxNode) -> Value:
    """Among floats of 4 to 64 bits, integers of 2 to 64 bits, and bool; integers saturate."""
    return _cast(node, _dtype(node, int(node.attr("to"))))


@onnx_op("CastLike")
def import_cast_like(node: OnnxNode) -> Value:
    """As Cast, to the type of the second input."""
    return _cast(node, node.value(1).type.dtype)


def _cast(node: OnnxNode, dtype: DType) -> Value:
    x = node.value(0)
    if x.type.dtype is dtype and x.type.quant is None:
        return x
    if {dtype, x.type.dtype} & set(STORED) and dtypes.F32 not in (dtype, x.type.dtype):
        x = node.apply(Cast(dtypes.F32), x, suffix="f32").output
    saturate, mode = bool(node.attr("saturate", 1)), str(node.attr("round_mode", "up"))
    if dtype not in dtypes.SMALL_FLOATS or dtype is dtypes.E2M1:
        saturate = True
    return node.apply(Cast(dtype, saturate, mode if dtype is dtypes.E8M0 else "up"), x).output


def _dtype(node: OnnxNode, number: int) -> DType:
    try:
        return dtypes.of(onnx.helper.tensor_dtype_to_np_dtype(number))
    except (TypeError, KeyError, ValueError):
        name = onnx.TensorProto.DataType.Name(number) if number else "undefined"
        node.fail(f"elements of type {name.lower()}", hint="convert the model to float32")
