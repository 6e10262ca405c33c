"""Instruction: an operation on buffers that declares the facts which memory passes need."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, dataclass_transform

import numpy as np

from glowmcu.core.types import Array
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.loop import Loop
from glowmcu.targets.kernel import Kernel, Overlap

In = Annotated[Buffer, "in"]
Out = Annotated[Buffer, "out"]
InOut = Annotated[Buffer, "inout"]
Ins = Annotated[tuple[Buffer, ...], "in"]
Flag = Annotated[bool, "flag"]
"""An attribute that the choice of the kernel settles: it is no member of its struct."""


@dataclass(frozen=True)
class Operand:
    """A buffer in its role: `role` is in, out or inout; `field` the instruction's field."""

    field: str
    role: str
    buffer: Buffer


@dataclass(frozen=True)
class Guard:
    """An instruction is skipped unless `condition`, one bool, is `when`."""

    condition: Buffer
    when: bool


@dataclass(frozen=True)
class RowWindow:
    """Output row r reads input rows r // repeat * stride - pad + k * dilation, 0 <= k < kernel.

    step  of a window over all rows (stride 0): bytes by which what is read moves from row to row
    """

    kernel: int = 1
    stride: int = 1
    dilation: int = 1
    pad: int = 0
    repeat: int = 1
    step: int = 0

    def first(self, row: int) -> int:
        """Return the first row that an output row reads, negative in the padding."""
        return row // self.repeat * self.stride - self.pad


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Instruction:
    """Base class. A subclass annotates operands (Out, In, InOut, Ins, `In | None`) and int, float
    or tuple attributes; it becomes a frozen keyword-only dataclass.

    The C call of a kernel is `symbol(&params, outputs, inputs, constants, scratch)`, each group in
    the order of the fields; `params` is a struct SYMBOL_t of the attributes in the order of the
    fields (no struct when there are none). An attribute that is None is absent: it means nothing
    for these types, and the struct of a kernel for them has no such member.
    """

    name: str = ""
    origin: tuple[str, ...] = ()
    kernel: Kernel | None = None
    scratch: Buffer | None = None
    guard: Guard | None = None
    loop: Loop | None = None

    kernels: ClassVar[tuple[Kernel, ...]] = ()
    may_share: ClassVar[tuple[tuple[str, str], ...]] = ()
    """(output field, input field) pairs that may lie at the same address."""
    takes_packed: ClassVar[bool] = False
    """True: operands may be packed tensors, whose elements share bytes."""
    is_copy: ClassVar[bool] = False
    """True: the one output equals the one input byte for byte; nothing to do at one address."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, eq=False, kw_only=True)(cls)

    def reference(self, *arrays: Any) -> Any:
        """Return the outputs (array or tuple), bit-exact for integers.

        `arrays` are the inputs in the order of the fields, None for an absent one; an Ins field
        gives a list.
        """
        raise NotImplementedError

    def run(self, memory: Mapping[Buffer, Array]) -> None:
        """Compute the outputs in memory, where every buffer is an array."""
        found = self.reference(*arrays_of(self, memory))
        results = found if isinstance(found, tuple) else (found,)
        for buffer, result in zip(self.outputs(), results, strict=True):
            memory[buffer][...] = np.asarray(result).reshape(memory[buffer].shape)

    @property
    def macs(self) -> int:
        """Multiply-accumulates; 0 for instructions that have none."""
        return 0

    @property
    def turns(self) -> int:
        """How often it is run at most: once, or once in every iteration of the loops around."""
        return 1 if self.loop is None else self.loop.turns

    def windows(self) -> Mapping[str, RowWindow]:
        """For each spatial input, the input rows that an output row needs; empty: not row-wise.

        The inputs are named as in `numbered`.
        """
        return {}

    def by_rows(self) -> Instruction:
        """The same on the rows of its operands' images, where it takes several for one."""
        return self

    def at_row(self, row: int) -> Instruction | None:
        """The same for one row of the output: x is then only the rows inside its window.

        None where the instruction does not work on rows. Only attributes change, no operand.
        """
        return None

    def partial(self, sums: Array, x: Array, row: int, *constants: Any) -> Array:
        """Return the sums of an output of one row, int32 or float, with row `row` of x added."""
        raise NotImplementedError

    def complete(self, sums: Array, *constants: Any) -> Array:
        """Return the output for the sums of all rows."""
        raise NotImplementedError

    def keeps(self) -> tuple[Buffer, ...]:
        """Return what it writes that must stay to the end of the function, though not a result."""
        return ()

    def choices(self) -> Mapping[Buffer, Guard]:
        """Return the operands whose values matter only where a condition holds."""
        return {}

    def shares(self) -> tuple[tuple[str, str], ...]:
        """The may_share pairs that hold for this instruction with its kernel."""
        return self.may_share + (self.kernel.in_place(self) if self.kernel else ())

    def overlaps(self) -> tuple[Overlap, ...]:
        """How the kernel lets outputs lie over inputs."""
        return self.kernel.overlap(self) if self.kernel else ()

    def turned(self) -> Instruction | None:
        """The same with a kernel that goes through memory the other way, None if it cannot."""
        found = self.kernel.turned(self) if self.kernel else None
        return typing.cast("Instruction | None", found)

    def roles(self) -> dict[str, str]:
        """Return {operand field: in, out or inout} in order, absent operands included.

        An instruction that writes a part of an output in some cases says so by overriding this,
        as does one with an operand that kernels take no pointer for where it is absent.
        """
        return _roles(type(self))

    def operands(self) -> Iterator[Operand]:
        """Yield every operand that is present, in the order of the fields."""
        for field, role in self.roles().items():
            found = getattr(self, field)
            if found is not None:
                for buffer in found if isinstance(found, tuple) else (found,):
                    yield Operand(field, role, buffer)

    def numbered(self) -> dict[str, Buffer]:
        """Return the operands by field; those of an Ins field `xs` are xs0, xs1 and so on."""
        found: dict[str, Buffer] = {}
        for field in _roles(type(self)):
            held = getattr(self, field)
            if isinstance(held, tuple):
                found |= {f"{field}{n}": buffer for n, buffer in enumerate(held)}
            elif held is not None:
                found[field] = held
        return found

    def outputs(self) -> tuple[Buffer, ...]:
        """Buffers that are written (out and inout)."""
        return tuple(o.buffer for o in self.operands() if o.role != "in")

    def inputs(self) -> tuple[Buffer, ...]:
        """Buffers that are read (in and inout), constants included."""
        return tuple(o.buffer for o in self.operands() if o.role != "out")

    def attributes(self) -> dict[str, Any]:
        """Attributes that are present in the order of the fields: the members of the C struct."""
        skip = {*_BASE_FIELDS, *_marks(type(self))}
        found = {f.name: getattr(self, f.name) for f in _fields(self) if f.name not in skip}
        return {name: value for name, value in found.items() if value is not None}

    def with_buffers(self, mapping: Mapping[Buffer, Buffer]) -> Instruction:
        """Return the instruction with operands replaced."""
        changes: dict[str, Any] = {}
        for field in (*_roles(type(self)), "scratch"):
            found = getattr(self, field)
            if isinstance(found, tuple):
                changes[field] = tuple(mapping.get(b, b) for b in found)
            elif found is not None:
                changes[field] = mapping.get(found, found)
        if self.guard is not None:
            condition = self.guard.condition
            changes["guard"] = Guard(mapping.get(condition, condition), self.guard.when)
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]


_BASE_FIELDS = ("name", "origin", "kernel", "scratch", "guard", "loop")
dataclass(frozen=True, eq=False, kw_only=True)(Instruction)
_MARKS: dict[type, dict[str, str]] = {}


def _fields(instruction: Instruction) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(instruction)  # type: ignore[arg-type]


def _roles(cls: type) -> dict[str, str]:
    """Return {field: role} of a class's operands."""
    return {field: mark for field, mark in _marks(cls).items() if mark != "flag"}


def _marks(cls: type) -> dict[str, str]:
    """Return {field: role or flag} of a class, found from its annotations."""
    if cls not in _MARKS:
        hints = typing.get_type_hints(cls, include_extras=True)
        found: dict[str, str] = {}
        for field in dataclasses.fields(cls):
            if field.name in _BASE_FIELDS:
                continue
            hint = hints[field.name]
            for part in (hint, *typing.get_args(hint)):
                marks = getattr(part, "__metadata__", ())
                if marks and marks[0] in ("in", "out", "inout", "flag"):
                    found[field.name] = marks[0]
        _MARKS[cls] = found
    return _MARKS[cls]


def arrays_of(instruction: Instruction, load: Mapping[Buffer, Array]) -> list[Any]:
    """Return the arguments of `reference`: arrays of the in and inout fields in order."""
    arguments: list[Any] = []
    for field, role in instruction.roles().items():
        if role == "out":
            continue
        found = getattr(instruction, field)
        if isinstance(found, tuple):
            arguments.append([load[b] for b in found])
        else:
            arguments.append(None if found is None else load[found])
    return arguments
