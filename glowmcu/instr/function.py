"""Function: instructions in execution order, and the Builder that lowering writes them with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from glowmcu.core.types import Array, TensorType, type_of
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.instruction import Instruction
from glowmcu.instr.loop import Loop


@dataclass(frozen=True, eq=False)
class Function:
    """A network as a straight list of instructions over buffers, some of them in loops.

    Outputs are buffers that must hold their values at the end; any buffer in the arena will do, an
    input or a view as well. States hold at the start of a call what they held at the end of the
    last one, at first zeros.
    """

    name: str
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    output_names: tuple[str, ...]
    instructions: tuple[Instruction, ...]
    states: tuple[Buffer, ...] = ()
    fed: tuple[Buffer, ...] = ()

    @property
    def given(self) -> tuple[Buffer, ...]:
        """What holds something before the first instruction."""
        return (*self.inputs, *self.states)

    @property
    def kept(self) -> tuple[Buffer, ...]:
        """What must hold its value after the last instruction."""
        further = (b for instruction in self.instructions for b in instruction.keeps())
        return (*self.outputs, *self.states, *further)

    def buffers(self) -> tuple[Buffer, ...]:
        """Every buffer in order of first appearance: inputs, operands, scratch, outputs, bases."""
        seen: dict[Buffer, None] = {}

        def add(buffer: Buffer | None) -> None:
            while buffer is not None:
                seen.setdefault(buffer)
                buffer = buffer.base

        for item in self._all():
            add(item)
        return tuple(seen)

    def _all(self) -> Iterator[Buffer | None]:
        yield from self.given
        for instruction in self.instructions:
            yield from (o.buffer for o in instruction.operands())
            yield instruction.scratch
            yield instruction.guard.condition if instruction.guard else None
        yield from self.outputs

    def with_buffers(self, mapping: dict[Buffer, Buffer]) -> Function:
        """Return the function with buffers replaced everywhere."""
        return replace(
            self,
            inputs=tuple(mapping.get(b, b) for b in self.inputs),
            outputs=tuple(mapping.get(b, b) for b in self.outputs),
            instructions=tuple(i.with_buffers(mapping) for i in self.instructions),
            states=tuple(mapping.get(b, b) for b in self.states),
        )


LowerBody = Callable[[Any, tuple[Buffer, ...]], tuple[Buffer, ...]]
"""Emits the instructions of a graph on buffers for its inputs; returns those of its outputs."""


@dataclass
class Builder:
    """Collects the instructions of one function; cards call `constant`, `activation` and `emit`.

    lower_body  for operators that have a graph inside
    """

    name: str = ""
    origin: tuple[str, ...] = ()
    results: tuple[Buffer, ...] = ()
    instructions: list[Instruction] = field(default_factory=list)
    lower_body: LowerBody | None = None
    loop: Loop | None = None
    _counter: int = 0

    def result(self, index: int = 0) -> Buffer:
        """Return the buffer to write output `index` of the node being lowered into."""
        return self.results[index]

    def constant(self, data: Array, name: str, type_: TensorType | None = None) -> Buffer:
        """Make a constant buffer."""
        return Buffer(name, type_ or type_of(data), "constant", data)

    def activation(self, type_: TensorType, name: str = "") -> Buffer:
        """Make a buffer in the arena; without a name it gets one from the node being lowered."""
        self._counter += 1
        return Buffer(name or f"{self.name}.t{self._counter}", type_, "activation")

    def view(self, base: Buffer, type_: TensorType, offset: int = 0, name: str = "") -> Buffer:
        """Make a view of `base`, `offset` bytes in."""
        kind = "constant" if base.kind == "constant" else "activation"
        return Buffer(name or f"{base.name}.view", type_, kind, None, base, offset)  # type: ignore[arg-type]

    def emit(self, instruction: Instruction, **changes: Any) -> None:
        """Append an instruction, labelled with the node being lowered."""
        changes = {"name": self.name, "origin": self.origin, "loop": self.loop, **changes}
        self.instructions.append(replace(instruction, **changes))  # type: ignore[type-var]

    @contextmanager
    def looped(self, count: int) -> Iterator[Loop]:
        """Emit into a loop of at most `count` iterations, inside of the loop that there is."""
        outer = self.loop
        self.loop = Loop(self.name, count, outer)
        try:
            yield self.loop
        finally:
            self.loop = outer
