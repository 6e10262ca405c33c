"""What a card is made of: Op (meaning), Example (its tests), onnx_op (its ONNX names)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, dataclass_transform

from glowmcu.core import dtypes
from glowmcu.core.types import Quant, TensorType
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder


@dataclass_transform(frozen_default=True)
class Op:
    """Meaning of an operator. Annotated fields are its attributes (hashable: tuples, not lists).

    Creating a subclass makes it a frozen dataclass and registers it: there is no list to edit.
    """

    raw: ClassVar[bool] = False
    """True: acts on stored integers whatever they mean (data movement)."""
    same_bytes: ClassVar[bool] = False
    """True: the result is the operand's bytes, also where its elements share bytes."""
    floats: ClassVar[tuple[dtypes.DType, ...]] = (*dtypes.ALL, *dtypes.SMALL_FLOATS)
    """Types of real numbers that it computes with; others are cast before and after it."""
    examples: ClassVar[tuple[Example, ...]] = ()
    registry: ClassVar[dict[str, type[Op]]] = {}

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)
        Op.registry[cls.__name__] = cls

    def infer(self, *types: Any) -> Any:
        """Return the output TensorType (or a tuple) of inputs of these types (None: absent)."""
        raise NotImplementedError

    def reference(self, *arrays: Any) -> Any:
        """Return the output (or a tuple) computed with numpy, ONNX semantics."""
        raise NotImplementedError

    def integer(
        self, inputs: tuple[TensorType | None, ...], outputs: tuple[TensorType, ...]
    ) -> bool:
        """Tell whether `lower` has integer arithmetic for these quantized types."""
        return False

    def lower(self, b: Builder, *inputs: Any) -> Buffer | tuple[Buffer, ...]:
        """Emit instructions that compute the outputs; write into b.result(i), or return views."""
        raise NotImplementedError


@dataclass(frozen=True)
class Example:
    """One test of a card at every level.

    inputs      a TensorType each; None is an absent optional input
    attributes  fields of the Op
    constants   indices of the inputs that are constants (weights)
    output      quantized output type where the example is quantized
    low, high   range of random real values
    tolerance   largest difference allowed between graph and instructions: LSB for integers,
                relative to the output's range for floats
    """

    inputs: tuple[TensorType | None, ...]
    attributes: dict[str, Any] = field(default_factory=dict)
    constants: tuple[int, ...] = ()
    output: TensorType | None = None
    low: float = -2.0
    high: float = 2.0
    tolerance: float | None = None


def f32(*shape: int) -> TensorType:
    """Return a float32 tensor type."""
    return TensorType(dtypes.F32, shape)


def f64(*shape: int) -> TensorType:
    """Return a float64 tensor type."""
    return TensorType(dtypes.F64, shape)


def i8(*shape: int, scale: float = 0.05, zero_point: int = -3) -> TensorType:
    """Return an int8 type quantized per tensor."""
    return TensorType(dtypes.I8, shape, Quant.per_tensor(scale, zero_point))


def i16(*shape: int, scale: float = 1e-4, zero_point: int = 0) -> TensorType:
    """Return an int16 type quantized per tensor."""
    return TensorType(dtypes.I16, shape, Quant.per_tensor(scale, zero_point))


def weights_i8(*shape: int, axis: int = 0, scale: float = 0.01) -> TensorType:
    """Return symmetric int8 weights with a different scale for each index of `axis`."""
    scales = tuple(float(scale * (1 + 0.1 * (i % 7))) for i in range(shape[axis]))
    return TensorType(dtypes.I8, shape, Quant(scales, (0,) * shape[axis], axis))


def bias_i32(x: TensorType, w: TensorType) -> TensorType:
    """Return the int32 bias type that goes with input type x and weight type w."""
    assert x.quant and w.quant
    scales = tuple(x.quant.scale[0] * s for s in w.quant.scale)
    count = w.shape[w.quant.axis or 0]
    scales = scales if len(scales) == count else scales * count
    return TensorType(dtypes.I32, (count,), Quant(scales, (0,) * count, 0))


INNER = "glowmcu"
"""Domain of operators that only glowmcu's own function bodies use."""
Importer = Callable[[Any], Any]
IMPORTERS: dict[tuple[str, str], Importer] = {}
"""(domain, op_type) -> function(OnnxNode) that returns the output Value or a tuple of Values."""


def onnx_op(*names: str, domain: str = "") -> Callable[[Importer], Importer]:
    """Register a function as the importer of ONNX operators; its docstring goes into the docs."""

    def register(function: Importer) -> Importer:
        for name in names:
            IMPORTERS[domain, name] = function
        return function

    return register
