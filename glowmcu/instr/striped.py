"""Striped: a chain of instructions that runs row by row, its inner tensors being pools of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

from glowmcu.core.types import Array
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Function
from glowmcu.instr.instruction import In, Ins, Instruction, Out, RowWindow, arrays_of
from glowmcu.targets.kernel import Kernel


class Feed(Instruction):
    """y = x, a row at a time, as the caller hands it over: the first member of a chain."""

    y: Out
    x: In

    kernels = (Kernel("gm_feed"),)

    def windows(self) -> dict[str, RowWindow]:
        """One row makes one row."""
        return {"x": RowWindow()}

    def at_row(self, row: int) -> Feed:
        """Any row is like the others."""
        return self

    def reference(self, x: Array) -> Array:
        """Return the row as it is."""
        return x


Outs = Annotated[tuple[Buffer, ...], "out"]
Form = Literal["call", "row", "scan"]
Interval = tuple[int, int]
"""An open interval of a distance between two addresses."""


def height(buffer: Buffer) -> int:
    """Return the rows of an NHWC image."""
    return buffer.type.shape[1]


@lru_cache(maxsize=4096)
def row_bytes(buffer: Buffer) -> int:
    """Return the bytes of a row of an image."""
    return buffer.nbytes // height(buffer)


def spatial(instruction: Instruction) -> dict[str, tuple[Buffer, RowWindow]]:
    """Return the spatial inputs of an instruction and their windows, by field."""
    inputs = instruction.numbered()
    return {field: (inputs[field], w) for field, w in instruction.windows().items()}


@dataclass(frozen=True, eq=False)
class Member:
    """One instruction of a chain, and how its kernel is used.

    form     call: a row is a small tensor, the kernel itself makes it; row: kernel.row makes a row
             of the output from row pointers; scan: kernel.scan takes one row of the input after
             the other, the last one completes the only row of the output
    scratch  of one call; of a scan, the sums that it keeps from row to row
    """

    instruction: Instruction
    form: Form
    scratch: Buffer | None = None

    @cached_property
    def y(self) -> Buffer:
        """The one output."""
        (y,) = self.instruction.outputs()
        return y

    @cached_property
    def fields(self) -> dict[str, tuple[Buffer, RowWindow]]:
        """The spatial inputs and their windows."""
        return spatial(self.instruction)

    @property
    def count(self) -> int:
        """How many steps it takes."""
        return height(self.scanned if self.form == "scan" else self.y)

    @property
    def scanned(self) -> Buffer:
        """The input that a scan goes through."""
        ((x, _),) = self.fields.values()
        return x

    def reads(self, row: int) -> tuple[tuple[str, Buffer, tuple[int, ...]], ...]:
        """Return (field, input, its rows) that step `row` reads."""
        return self._reads[row]

    @cached_property
    def _reads(self) -> tuple[tuple[tuple[str, Buffer, tuple[int, ...]], ...], ...]:
        return tuple(
            tuple((field, x, self._rows(x, w, row)) for field, (x, w) in self.fields.items())
            for row in range(self.count)
        )

    def _rows(self, x: Buffer, w: RowWindow, row: int) -> tuple[int, ...]:
        if self.form == "scan":
            return (row,)
        first = w.first(row)
        rows = range(first, first + w.kernel * w.dilation, w.dilation)
        return tuple(r for r in rows if 0 <= r < height(x))

    def lines(self, field: str, row: int) -> range:
        """Return the rows of an input that `instruction.at_row(row)` sees as its image."""
        x, w = self.fields[field]
        if self.form == "scan":
            return range(row, row + 1)
        first = w.first(row)
        return range(max(first, 0), min(first + (w.kernel - 1) * w.dilation + 1, height(x)))

    @cached_property
    def small(self) -> Instruction:
        """The instruction for one row, for the form `call`."""
        found = self.instruction.at_row(0)
        assert found is not None
        return found

    @cached_property
    def promises(self) -> dict[str, tuple[Interval, ...]]:
        """For each input, where a row of the output must not begin: distances to a row of it that
        is read for the last time in the same step."""
        return {field: self._promise(field) for field in self.fields}

    def _promise(self, field: str) -> tuple[Interval, ...]:
        low, high = -row_bytes(self.y), row_bytes(self.fields[field][0])
        kernel = self.instruction.kernel
        if self.form == "scan" or kernel is None:
            return ((low, high),)
        exact = False
        if self.form == "row":
            assert kernel.row is not None
            overlaps = kernel.row.overlap(self.instruction)
        else:
            overlaps = self.small.overlaps()
            pairs = {i for _, i in self.small.shares()}
            is_declared = not pairs.isdisjoint((field, field.rstrip("0123456789")))
            exact = is_declared and row_bytes(self.y) <= row_bytes(self.fields[field][0])
        for promise in overlaps:
            if promise.input == field:
                low, high = max(low, promise.low), min(high, promise.high)
        if low >= high:
            return ()
        return ((low, 0), (0, high)) if exact and low < 0 < high else ((low, high),)

    def forbidden(self, tensor: Buffer) -> tuple[Interval, ...]:
        """Return the same for an input that may be read by more than one field."""
        found: list[Interval] = []
        for field, (x, _) in self.fields.items():
            if x.root is tensor:
                found += self.promises[field]
        return tuple(found)


@dataclass(frozen=True, eq=False)
class Pooled:
    """An inner tensor: row r lies in place `places[r]` of a pool, `pitch` bytes from the next."""

    pool: Buffer
    pitch: int
    places: tuple[int, ...]


class Access(NamedTuple):
    """A row (or scratch, or sums) that a step uses: `nbytes`, `offset` bytes into an operand.

    `tensor` and `row` say what it is; the tensor is a root.
    """

    role: Literal["in", "out", "scratch", "sums"]
    tensor: Buffer
    row: int
    holder: Buffer
    offset: int
    nbytes: int


_KERNEL = Kernel("gm_striped")


class Striped(Instruction):
    """A chain, run in `steps` of (member, row); ys and xs lie whole, everything else in pools.

    places   where the rows of inner tensors lie, by root
    counter  of a chain whose input is handed over row by row: 32 bits that count its steps
    """

    ys: Outs
    pools: Outs
    xs: Ins
    members: tuple[Member, ...]
    steps: tuple[tuple[int, int], ...]
    places: Mapping[Buffer, Pooled]
    descending: bool = False
    counter: Buffer | None = None

    kernels = (_KERNEL,)

    @property
    def fed(self) -> Buffer | None:
        """The tensor that the caller hands over row by row, which lies outside the arena."""
        first = self.members[0].instruction
        return first.x if isinstance(first, Feed) else None

    @property
    def macs(self) -> int:
        """Those of the members."""
        return sum(m.instruction.macs for m in self.members)

    def attributes(self) -> dict[str, Any]:
        """What a dump shows of the schedule; there is no struct of parameters."""
        forms = ", ".join(f"{type(m.instruction).__name__}:{m.form}" for m in self.members)
        return {"members": f"[{forms}]", "steps": len(self.steps), "descending": self.descending}

    def outputs(self) -> tuple[Buffer, ...]:
        """The tensors that leave the chain."""
        return self.ys

    def keeps(self) -> tuple[Buffer, ...]:
        """The counter of steps: a row that comes after the last one is refused by it."""
        return () if self.counter is None else (self.counter,)

    def with_buffers(self, mapping: Mapping[Buffer, Buffer]) -> Striped:
        """Return the chain with operands replaced, in its members too."""

        def member(m: Member) -> Member:
            scratch = mapping.get(m.scratch, m.scratch) if m.scratch else None
            return replace(m, instruction=m.instruction.with_buffers(mapping), scratch=scratch)

        def pooled(p: Pooled) -> Pooled:
            return replace(p, pool=mapping.get(p.pool, p.pool))

        return replace(
            self,
            counter=mapping.get(self.counter, self.counter) if self.counter else None,
            ys=tuple(mapping.get(b, b) for b in self.ys),
            pools=tuple(mapping.get(b, b) for b in self.pools),
            xs=tuple(mapping.get(b, b) for b in self.xs),
            members=tuple(map(member, self.members)),
            places={mapping.get(b, b): pooled(p) for b, p in self.places.items()},
        )

    def locate(self, buffer: Buffer, row: int) -> tuple[Buffer, int]:
        """Return the operand in which a row of a tensor lies, and the bytes from its start."""
        pooled = self.places.get(buffer.root)
        if pooled is None:
            return buffer, row * row_bytes(buffer)
        return pooled.pool, pooled.places[row] * pooled.pitch

    @cached_property
    def accesses(self) -> tuple[tuple[Access, ...], ...]:
        """What each step reads, then what it writes."""
        return tuple(tuple(self._accesses(number)) for number in range(len(self.steps)))

    def _accesses(self, number: int) -> Iterator[Access]:
        index, row = self.steps[number]
        member = self.members[index]

        def one(role: Literal["in", "out"], buffer: Buffer, r: int) -> Access:
            holder, offset = self.locate(buffer, r)
            return Access(role, buffer.root, r, holder, offset, row_bytes(buffer))

        if self.counter is not None:
            yield Access("sums", self.counter, 0, self.counter, 0, self.counter.nbytes)
        for _, x, rows in member.reads(row):
            if x is not self.fed:
                yield from (one("in", x, r) for r in rows)
        s = member.scratch
        if s is not None:
            yield Access("sums" if member.form == "scan" else "scratch", s, 0, s, 0, s.nbytes)
        if member.form != "scan":
            yield one("out", member.y, row)
        elif row == member.count - 1:
            yield one("out", member.y, 0)

    def run(self, memory: Mapping[Buffer, Array]) -> None:
        """Run step after step on bytes."""
        outside = () if self.fed is None else (self.fed,)
        raw = {b: _bytes(memory[b]) for b in (*self.ys, *self.pools, *self.xs, *outside)}

        def view(buffer: Buffer, row: int) -> Array:
            holder, offset = self.locate(buffer, row)
            return raw[holder][offset : offset + row_bytes(buffer)].view(buffer.type.dtype.numpy)

        def image(buffer: Buffer, rows: tuple[int, ...], lines: range) -> Array:
            w, c = buffer.type.shape[2:]
            zeros = np.zeros(w * c, buffer.type.dtype.numpy)
            found = [view(buffer, r) if r in rows else zeros for r in lines]
            return np.stack(found).reshape(1, len(lines), w, c)

        for index, row in self.steps:
            member = self.members[index]
            loaded: dict[Buffer, Array] = {}
            for b in member.instruction.inputs():
                if b.root.kind == "constant":
                    loaded[b] = memory[b]
            for field, x, rows in member.reads(row):
                loaded[x] = image(x, rows, member.lines(field, row))
            if member.form == "scan":
                _scan(member, row, loaded, raw, view)
            else:
                one = member.instruction.at_row(row)
                assert one is not None
                result = np.asarray(one.reference(*arrays_of(one, loaded)))
                view(member.y, row)[...] = result.reshape(-1)


def _scan(member: Member, row: int, loaded: dict[Buffer, Array], raw: Any, view: Any) -> None:
    i = member.instruction
    x, *constants = arrays_of(i, loaded)
    assert member.scratch is not None
    kind = np.float32 if member.y.type.dtype.is_float else np.int32
    sums = raw[member.scratch][: 4 * member.y.type.numel].view(kind).reshape(member.y.type.shape)
    sums[...] = i.partial(sums.copy() if row else np.zeros_like(sums), x, row, *constants)
    if row == member.count - 1:
        result = i.complete(sums, *constants)
        view(member.y, 0)[...] = np.asarray(result).reshape(-1)


def _bytes(array: Array) -> Array:
    return array.reshape(-1).view(np.uint8)


def unrolled(function: Function) -> Function:
    """Return the function with the members of chains as whole instructions, each tensor whole."""
    instructions: list[Instruction] = []
    for instruction in function.instructions:
        if isinstance(instruction, Striped):
            instructions += [m.instruction for m in instruction.members]
        else:
            instructions.append(instruction)
    feeds = [i for i in instructions if isinstance(i, Feed)]
    return replace(
        function,
        inputs=(*(f.y for f in feeds), *function.inputs),
        fed=(),
        instructions=tuple(i for i in instructions if not isinstance(i, Feed)),
    )
