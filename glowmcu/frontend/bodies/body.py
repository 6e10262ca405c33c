"""Body: writes a function body node by node, with numpy arrays as constants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from glowmcu.core import dtypes
from glowmcu.core.types import Array
from glowmcu.frontend.tensors import ELEM_TYPES
from glowmcu.ops.base import INNER
from glowmcu.ops.onnx_node import OnnxNode

OPSET = min(25, onnx.defs.onnx_opset_version())
Results = str | tuple[str, ...]
Make = Callable[["Body", OnnxNode], Results | None]
BODIES: dict[tuple[str, str], Make] = {}
"""(domain, op_type) -> function that writes the nodes and returns the names of the outputs."""
Operand = str | Array | float | int | Sequence[int] | None


def body(*names: str, domain: str = "") -> Callable[[Make], Make]:
    """Register a function as the definition of ONNX operators."""

    def register(make: Make) -> Make:
        for name in names:
            BODIES[domain, name] = make
        return make

    return register


class Body:
    """The nodes written so far; the inputs of the function are called x0, x1, ..."""

    def __init__(self, node: OnnxNode) -> None:
        self._node = node
        self._nodes: list[onnx.NodeProto] = []
        self._count = 0

    def input(self, index: int) -> str:
        """Return the name of an input."""
        self._node.value(index)
        return f"x{index}"

    def real(self, index: int) -> str:
        """Return an input as float32."""
        name = self.input(index)
        return (
            name
            if self._node.value(index).type.dtype is dtypes.F32
            else self.cast(name, dtypes.F32)
        )

    def cast(self, value: Operand, dtype: dtypes.DType) -> str:
        """Return a value as elements of another type."""
        return self("Cast", value, to=ELEM_TYPES[dtype])

    def like(self, value: Operand, index: int) -> str:
        """Return a value in the element type of an input."""
        return self.cast(value, self._node.value(index).type.dtype)

    def __call__(
        self, op_type: str, *operands: Operand, domain: str = "", **attributes: Any
    ) -> str:
        """Write a node with one output; return its name."""
        return self.many(op_type, *operands, outputs=1, domain=domain, **attributes)[0]

    def many(
        self, op_type: str, *operands: Operand, outputs: int, domain: str = "", **attributes: Any
    ) -> tuple[str, ...]:
        """Write a node; return the names of its outputs. Numbers and arrays become constants."""
        names = [self._name(o) for o in operands]
        self._count += 1
        results = tuple(f"t{self._count}" + (f"_{i}" if i else "") for i in range(outputs))
        made = helper.make_node(
            op_type, names, results, name=results[0], domain=domain, **attributes
        )
        self._nodes.append(made)
        return results

    def inner(self, op_type: str, *operands: Operand, **attributes: Any) -> str:
        """Write a node of an operator of glowmcu's own."""
        return self(op_type, *operands, domain=INNER, **attributes)

    def inner_many(
        self, op_type: str, *operands: Operand, outputs: int, **attributes: Any
    ) -> tuple[str, ...]:
        """Write a node of glowmcu's own with several outputs."""
        return self.many(op_type, *operands, outputs=outputs, domain=INNER, **attributes)

    def reshape(self, value: Operand, *shape: int) -> str:
        """Return a value in another shape."""
        return self("Reshape", value, np.asarray(shape, np.int64), allowzero=1)

    def transpose(self, value: Operand, *perm: int) -> str:
        """Return a value with its dimensions in another order."""
        return self("Transpose", value, perm=list(perm))

    def part(self, value: Operand, axis: int, start: int, stop: int) -> str:
        """Return a range of one dimension."""
        ends = (np.asarray([n], np.int64) for n in (start, stop, axis))
        return self("Slice", value, *ends)

    def _name(self, operand: Operand) -> str:
        if operand is None or isinstance(operand, str):
            return operand or ""
        array = np.asarray(operand)
        if isinstance(operand, float):
            array = array.astype(np.float32)
        self._count += 1
        name = f"c{self._count}"
        tensor = numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)
        self._nodes.append(helper.make_node("Constant", [], [name], value=tensor))
        return name

    def function(self, results: tuple[str, ...]) -> onnx.FunctionProto:
        """Return the body; a result made by a node of it is called what the caller calls it."""
        made = {name for n in self._nodes if n.op_type != "Constant" for name in n.output}
        called: dict[str, str] = {}
        outputs = [f"y{number}" for number in range(len(results))]
        for result, output in zip(results, outputs, strict=True):
            if result not in made or result in called:
                self._nodes.append(helper.make_node("Identity", [result], [output]))
            else:
                called[result] = output
        for node in self._nodes:
            for names in (node.input, node.output):
                names[:] = [called.get(n, n) for n in names]
        return helper.make_function(
            INNER,
            self._node.op_type,
            [f"x{i}" for i in range(len(self._node.inputs))],
            outputs,
            self._nodes,
            [helper.make_opsetid("", OPSET), helper.make_opsetid(INNER, 1)],
        )
