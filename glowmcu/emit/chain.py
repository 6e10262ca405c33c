"""A chain that runs row by row as C: a function with a table of steps and one case per layer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from glowmcu.emit import literals
from glowmcu.emit.names import short
from glowmcu.emit.specialize import called_symbol, member_view
from glowmcu.emit.view import (
    Argument,
    Assembler,
    FunctionView,
    LayerView,
    arguments,
    results,
    shape_text,
)
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.instruction import RowWindow
from glowmcu.instr.striped import Feed, Member, Striped, height, row_bytes
from glowmcu.targets.kernel import Kernel, RowKernel, no_scratch


def striped_layer(state: Assembler, index: int, striped: Striped) -> LayerView:
    """Return the call of a chain; its function, tables and constants are added to the lists."""
    assert striped.kernel is not None
    function = f"{state.name}_chain{index}"
    chain = _Chain(state, index, striped)
    text = chain.text(function)
    state.functions[function] = FunctionView(function, text, striped.kernel.symbol)
    state.includes.setdefault("gm_rows.h")
    return LayerView(
        index,
        literals.block(_comment(index, striped), 4),
        literals.call(function, chain.passed()),
        striped,
        striped.kernel,
        function,
        results(striped, state.memory),
    )


@dataclass
class _Chain:
    """The text of one chain's function."""

    state: Assembler
    index: int
    striped: Striped
    tables: dict[Buffer, str] = field(default_factory=dict)
    places: list[int] = field(default_factory=list)
    outside: dict[str, str] = field(default_factory=dict)

    def text(self, function: str) -> str:
        """Return the table of tensors and the function."""
        cases = [self._case(number, m) for number, m in enumerate(self.striped.members)]
        tensors = f"{self.state.name}_tensors{self.index}"
        places = self._constant("places", np.array(self.places, np.uint8), "places of rows")
        members, rows = np.array(self.striped.steps).T
        steps = self._constant("steps", members.astype(np.uint8), "member that makes each step")
        wide = np.uint8 if rows.max() < 256 else np.uint16
        numbers = self._constant("rows", rows.astype(wide), "row that each step makes")
        pointers = max((w.kernel for m in self.striped.members for w in _by_pointer(m)), default=0)
        declared = f"        const void *rows[{pointers}];\n" if pointers else ""
        entries = "\n".join(f"    {e.replace('PLACES', places)}," for e in self.tables.values())
        what = literals.block(
            f"Layers {self.index}, row by row: step n makes row {numbers}[n] of one of them."
        )
        count = len(self.striped.steps)
        if self.striped.counter is not None:
            start, stop = self._resumed(function, steps, count)
        else:
            head = literals.call(f"static void {function}", self._parameters(), 0)
            unused = "    (void)arena;\n" if self.outside else ""  # all may lie outside
            start = (
                f"{head.removesuffix(';')}\n{{\n{unused}"
                f"    const gm_rows_t *const t = {tensors};\n"
                f"    for (int32_t n = 0; n < {count}; n++) {{\n"
            )
            stop = "    }\n}"
        return (
            f"static const gm_rows_t {tensors}[{len(self.tables)}] = {{\n{entries}\n}};\n\n"
            f"{what}\n"
            f"{start}"
            f"        const int32_t r = {numbers}[n];\n"
            f"{declared}"
            f"        switch ({steps}[n]) {{\n" + "".join(cases) + "        }\n" + stop
        )

    def _resumed(self, function: str, steps: str, count: int) -> tuple[str, str]:
        """Return head and end of a function that goes on until it needs the next row of input."""
        assert self.striped.counter is not None
        counter = self._pointer(self.striped.counter)
        tensors = f"{self.state.name}_tensors{self.index}"
        parameters = (*self._parameters(), "const void *row")
        head = literals.call(f"static int32_t {function}", parameters, 0).removesuffix(";")
        start = (
            f"{head}\n{{\n"
            f"    const gm_rows_t *const t = {tensors};\n"
            f"    int32_t n = *(const int32_t *){counter};\n"
            f"    if (n < 0 || n >= {count}) {{\n"
            f"        return -1; /* nothing was begun */\n"
            f"    }}\n"
            f"    do {{\n"
        )
        stop = (
            f"        n++;\n"
            f"    }} while (n < {count} && {steps}[n] != 0);\n"
            f"    *(int32_t *){counter} = n;\n"
            f"    return n == {count};\n}}"
        )
        return start, stop

    def passed(self) -> tuple[str, ...]:
        """Return what NAME_run passes to the function: the arena, and the caller's tensors."""
        return ("arena", *self.outside)

    def _parameters(self) -> tuple[str, ...]:
        """Return their declarations; the names cannot clash with those of the function."""
        tensors = (f"{kind}void *outside{n}" for n, kind in enumerate(self.outside.values()))
        return (f"{self.state.name}_arena *arena", *tensors)

    def _constant(self, label: str, data: np.ndarray, what: str) -> str:
        comment = f"layer {self.index}: {what}, {data.dtype.name}[{data.size}]"
        return self.state.constants.add(data, f"layer{self.index}_{label}", comment)

    def _tensor(self, buffer: Buffer) -> int:
        """Return the index of a tensor in the table of tensors."""
        key = buffer.root if buffer.root in self.striped.places else buffer
        if key not in self.tables:
            pooled = self.striped.places.get(key)
            if pooled is None:
                place, slots, pitch = buffer, "NULL", row_bytes(buffer)
            else:
                place, slots, pitch = pooled.pool, f"PLACES + {len(self.places)}", pooled.pitch
                self.places += pooled.places
            offset = self.state.memory.home(place)[1]
            self.tables[key] = f"{{{slots}, {offset}, {pitch}, {height(buffer)}}}"
        return list(self.tables).index(key)

    def _base(self, buffer: Buffer) -> str:
        """Return the start of the memory in which a tensor lies; no row of an input is written."""
        pooled = self.striped.places.get(buffer.root)
        parameter = self.state.memory.home(buffer if pooled is None else pooled.pool)[0]
        if not parameter:
            return "arena->bytes"
        self.outside.setdefault(parameter, "const " if buffer.root.kind == "argument" else "")
        return f"(uint8_t *)outside{list(self.outside).index(parameter)}"

    def _pointer(self, buffer: Buffer) -> str:
        """Return the address of scratch."""
        parameter, offset = self.state.memory.home(buffer)
        if not parameter:
            return self.state.memory.pointer(buffer)
        return f"(void *)({self._base(buffer)} + {offset})"

    def _row(self, buffer: Buffer, row: str) -> str:
        return f"gm_rows_at({self._base(buffer)}, &t[{self._tensor(buffer)}], {row})"

    def _case(self, number: int, member: Member) -> str:
        label = "default" if number == len(self.striped.members) - 1 else f"case {number}"
        name = f"{type(member.instruction).__name__} {short(member.instruction.name)}"
        lines = [f"        {label}:", literals.block(name, 12)]
        if isinstance(member.instruction, Feed):
            row = self._row(member.y, "r")
            copy = literals.call("memcpy", (row, "row", str(row_bytes(member.y))), 12)
            return "\n".join([*lines, copy, "            break;"]) + "\n"
        kernel = member.instruction.kernel
        assert kernel is not None
        called = Kernel(called_symbol(member), folder=kernel.folder)
        rendered = _rendered(member, kernel)
        label = f"{self.index}_{number}"
        params: tuple[str, ...] = ()
        if rendered is None:
            self.state.includes.setdefault(f"{called.symbol}.h")
            params = self.state.params(label, member_view(member), kernel)
        if member.form == "call":
            found = self._call(label, member, kernel)
        elif member.form == "row":
            assert kernel.row is not None
            ((x, w),) = member.fields.values()
            lines.append(self._window(x, w))
            found = self._row_call(label, member, kernel.row, ("const void *const *rows", "rows"))
        else:
            assert kernel.scan is not None
            row = self._row(member.scanned, "r")
            found = self._row_call(label, member, kernel.scan, ("const void *x", row))
        typed, passed = zip(*found, strict=True)
        if rendered is not None:
            function = self.state.template(label, member_view(member), rendered)
        elif (self.index, number) in self.state.specialised:
            function = self.state.constant_copy(label, called.symbol, params, typed)
        else:
            self.state.kernels.setdefault(called.symbol, called)
            function, passed = called.symbol, (*params, *passed)
        lines += [literals.call(function, passed, 12), "            break;"]
        return "\n".join(lines) + "\n"

    def _window(self, x: Buffer, w: RowWindow) -> str:
        first = "r" if w.stride == 1 else f"r * {w.stride}"
        first += f" - {w.pad}" if w.pad else ""
        passed = (f"&t[{self._tensor(x)}]", first, str(w.kernel), str(w.dilation), "rows")
        return literals.call("gm_rows_window", (self._base(x), *passed), 12)

    def _call(self, label: str, member: Member, kernel: Kernel) -> Iterator[tuple[str, str]]:
        """Yield (declaration, expression) of each argument of a kernel that makes a row."""
        windows = dict(member.fields.values())
        for one in arguments(member.small, kernel):
            expression = self._constant_argument(label, member, one)
            if isinstance(one.item, Buffer) and one.item.root.kind != "constant":
                w = RowWindow() if one.written else windows[one.item]
                row = "r" if w.repeat == 1 else f"r / {w.repeat}"
                row = {0: "0", 1: row}.get(w.stride, f"{row} * {w.stride}")
                expression = self._row(one.item, row)
                if w.step:
                    expression = f"(const void *)((const uint8_t *){expression} + r * {w.step})"
            yield f"{'' if one.written else 'const '}void *{one.name}", expression

    def _row_call(
        self, label: str, member: Member, kernel: RowKernel, x: tuple[str, str]
    ) -> Iterator[tuple[str, str]]:
        """Yield the same of a function that makes or takes one row."""
        bound = member.instruction.kernel
        assert bound is not None
        yield "void *y", self._row(member.y, "0" if member.form == "scan" else "r")
        yield "int32_t r", "r"
        yield x
        for one in arguments(member.instruction, bound):
            is_constant = not isinstance(one.item, Buffer) or one.item.root.kind == "constant"
            if is_constant and one.name != "scratch":
                yield f"const void *{one.name}", self._constant_argument(label, member, one)
        if kernel.scratch is not no_scratch:
            yield "void *scratch", self._scratch(member)

    def _constant_argument(self, label: str, member: Member, one: Argument) -> str:
        if one.name == "scratch":
            return self._scratch(member)
        if isinstance(one.item, Buffer) and one.item.root.kind != "constant":
            return ""
        return self.state.argument(label, member.instruction, one)

    def _scratch(self, member: Member) -> str:
        if member.scratch is None:
            return "NULL"
        return self._pointer(member.scratch)


def _rendered(member: Member, kernel: Kernel) -> Kernel | None:
    """Return the kernel whose template renders what a member's steps call, if one does."""
    if member.form == "call":
        return kernel if kernel.template else None
    row = kernel.row if member.form == "row" else None
    if row is None or row.template is None:
        return None
    return Kernel(row.symbol, folder=kernel.folder, template=row.template, view=row.view)


def _by_pointer(member: Member) -> list[RowWindow]:
    return [w for _, w in member.fields.values()] if member.form == "row" else []


def _comment(index: int, striped: Striped) -> str:
    ins = [shape_text(b.type) for b in striped.inputs() if b.root.kind != "constant"]
    outs = [shape_text(b.type) for b in striped.outputs()]
    kinds = ", ".join(type(m.instruction).__name__ for m in striped.members)
    types = f"{', '.join(ins)} -> {', '.join(outs)}"
    return f"{index}: {striped.name}  {types}  {len(striped.steps)} rows of {kinds}"
