"""Compare the levels of one compilation, layer by layer, and name the first that differs.

A layer is judged on the reference's own inputs: wherever ONNX Runtime has the tensor that a buffer
holds, the comparison continues from ONNX Runtime's value, so errors do not add up over layers. The
network's outputs are compared as well, end to end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from glowmcu.core.types import Array, TensorType, dequantize
from glowmcu.graph.evaluate import evaluate_node
from glowmcu.graph.graph import Node, Value
from glowmcu.instr import evaluate as instr
from glowmcu.instr.instruction import Instruction
from glowmcu.instr.striped import unrolled
from glowmcu.verify.extent import cropped

if TYPE_CHECKING:
    from glowmcu.graph.graph import Graph
    from glowmcu.instr.function import Function

LSB_PER_LAYER = 1
FLOAT_TOLERANCE = 1e-4
_MOST = (1 << 63) - 1
_NONE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Difference:
    """How far two arrays of one layer are apart.

    lsb       largest difference of stored integers, None for floats
    relative  largest difference of real values by the range of the expected ones
    snr       signal to noise ratio in dB, infinite for equal arrays
    """

    lsb: int | None
    relative: float
    snr: float

    def within(self, lsb: int = LSB_PER_LAYER, relative: float = FLOAT_TOLERANCE) -> bool:
        """Tell whether the difference is tolerable."""
        return self.lsb <= lsb if self.lsb is not None else self.relative <= relative

    def merge(self, other: Difference) -> Difference:
        """Return the worse of two differences of the same layer."""
        lsb = None if self.lsb is None or other.lsb is None else max(self.lsb, other.lsb)
        return Difference(lsb, max(self.relative, other.relative), min(self.snr, other.snr))


def difference(expected: Array, got: Array, type_: TensorType) -> Difference:
    """Compare stored arrays of one type; those of different shapes differ as much as can be."""
    lsb = None
    if expected.shape != got.shape:
        return Difference(_MOST if type_.dtype.is_integer else None, np.inf, -np.inf)
    if type_.dtype.is_integer or type_.dtype.kind == "bool":
        deltas = expected.astype(np.int64) - got.astype(np.int64)
        lsb = int(np.abs(deltas).max(initial=0))
    if type_.quant is not None:
        expected, got = dequantize(expected, type_.quant), dequantize(got, type_.quant)
    a, b = expected.astype(np.float64), got.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    delta = np.where(same, 0.0, a - b)
    delta = np.nan_to_num(delta, nan=np.inf, posinf=np.inf, neginf=-np.inf)
    finite = a[np.isfinite(a)]
    span = float(np.ptp(finite)) if finite.size else 0.0
    span = span or float(np.abs(finite).max(initial=0.0)) or 1.0
    noise, signal = float((delta**2).sum()), float((finite**2).sum())
    snr = np.inf if noise == 0 else 10 * float(np.log10(signal / noise)) if signal else -np.inf
    return Difference(lsb, float(np.abs(delta).max(initial=0.0)) / span, snr)


@dataclass
class Comparison:
    """Two levels compared over samples: worst difference per layer, in execution order."""

    title: str
    exact: bool = False
    judged: bool = True
    layers: dict[str, Difference] = field(default_factory=dict)
    outputs: dict[str, Difference] = field(default_factory=dict)

    def add(self, layer: str, found: Difference, *, output: bool = False) -> None:
        """Take the worse of what is known of a layer and a new sample's difference."""
        table = self.outputs if output else self.layers
        table[layer] = table[layer].merge(found) if layer in table else found

    @property
    def first(self) -> str | None:
        """The first layer that differs more than it may, None if there is none."""
        lsb, relative = (0, 1e-5) if self.exact else (LSB_PER_LAYER, FLOAT_TOLERANCE)
        for layer, found in self.layers.items():
            if not found.within(lsb, relative):
                return layer
        for layer, found in self.outputs.items():
            if self.exact and not found.within(lsb, relative):
                return layer
        return None

    @property
    def passed(self) -> bool:
        """True when no layer differs more than it may (or nothing is judged)."""
        return not self.judged or self.first is None


def _aligned(
    tensors: Mapping[str, Array], name: str, perm: tuple[int, ...] | None, type_: TensorType
) -> Array | None:
    """Return the reference's tensor in the layout and type that a value has, None if it differs."""
    found = tensors.get(name)
    if found is None or found.dtype != type_.dtype.numpy:
        return None
    if perm is not None:
        if found.ndim != len(perm):
            return None
        found = found.transpose(perm)
    return found if found.shape == type_.shape else None


def compare_graph(
    graph: Graph,
    tensors: Mapping[str, Array],
    result: Comparison,
    extents: Mapping[str, str] = _NONE,
) -> None:
    """Compare every node of a graph with the reference, given the reference's inputs.

    extents  see verify.extent.cropped; such outputs are compared as they leave the network
    """
    arrays: dict[Value, Array] = {v: tensors[v.name] for v in graph.inputs}
    for node in graph.nodes():
        inputs = [
            None if v is None else v.data if v.data is not None else arrays[v] for v in node.inputs
        ]
        for value, got in zip(node.outputs, evaluate_node(node, inputs), strict=True):
            expected = _aligned(tensors, value.name, value.perm, value.type)
            arrays[value] = got if expected is None else expected
            if expected is not None:
                result.add(_label(node), difference(expected, got, value.type))
    outputs = dict(zip(graph.output_names, graph.outputs, strict=True))
    found = {n: v.data if v.data is not None else arrays[v] for n, v in outputs.items()}
    types = {n: v.type for n, v in outputs.items()}
    _compare_cropped(found, types, tensors, extents, result)


def _compare_cropped(
    found: Mapping[str, Array],
    types: Mapping[str, TensorType],
    tensors: Mapping[str, Array],
    extents: Mapping[str, str],
    result: Comparison,
) -> None:
    meant = cropped(found, extents)
    for name in extents:
        result.add(f"output {name}", difference(tensors[name], meant[name], types[name]))


def _label(node: Node) -> str:
    return f"{type(node.op).__name__} {node.outputs[0].name}"


def compare_instructions(
    function: Function,
    tensors: Mapping[str, Array],
    result: Comparison,
    extents: Mapping[str, str] = _NONE,
) -> None:
    """Compare every instruction with the reference, given the reference's inputs.

    Those of chains that run row by row are compared one by one.
    """
    function = unrolled(function)
    offsets, size = instr.layout_without_reuse(function)
    memory = instr.memory_of(function, offsets, np.zeros(max(size, 1), np.uint8))
    for buffer in function.given:
        memory[buffer][...] = instr.in_memory(tensors[buffer.name], buffer)
    for step in instr.execution(function, memory):
        instruction = step.instruction
        step.run(memory, guarded=False)
        if instruction.loop is not None:
            continue  # ONNX Runtime does not show what is inside
        for buffer in instruction.outputs():
            expected = _aligned(tensors, buffer.tensor, buffer.perm, buffer.type)
            if expected is not None:
                got = instr.value_of(memory[buffer], buffer)
                found = difference(expected, got, buffer.type)
                result.add(instruction_label(instruction), found)
                memory[buffer][...] = instr.in_memory(expected, buffer)
    outputs = dict(zip(function.output_names, function.outputs, strict=True))
    arrays = {n: instr.value_of(memory[b], b) for n, b in outputs.items()}
    _compare_cropped(arrays, {n: b.type for n, b in outputs.items()}, tensors, extents, result)


def instruction_label(instruction: Instruction) -> str:
    """Return the name that reports use for an instruction."""
    return f"{type(instruction).__name__} {instruction.outputs()[0].name}"
