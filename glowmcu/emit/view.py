"""Typed records that templates print: constants, parameters, calls and slots of one network."""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.packing import stored
from glowmcu.core.types import Array, TensorType, compact
from glowmcu.emit import literals
from glowmcu.emit.memory import Memory, address
from glowmcu.emit.names import distinct, identifier, short
from glowmcu.emit.unit import Plan, Slot
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.instruction import Instruction
from glowmcu.instr.loop import nest_of
from glowmcu.targets.kernel import Kernel, Packed, no_scratch


@dataclass(frozen=True)
class ArrayView:
    """A constant in flash: `data` has one dimension."""

    name: str
    c_type: str
    data: Array = field(compare=False)
    comment: str
    aligned: bool
    crc: int

    @property
    def count(self) -> int:
        """Number of elements."""
        return self.data.size

    @property
    def nbytes(self) -> int:
        """Bytes in flash."""
        return self.data.nbytes

    @property
    def lines(self) -> list[str]:
        """The lines of its initialiser."""
        return literals.array_lines(self.data)

    @property
    def is_finite(self) -> bool:
        """False where its initialiser has macros of math.h."""
        real = self.data.dtype in (np.float32, np.float64)
        return not real or bool(np.isfinite(self.data).all())

    @property
    def declarator(self) -> str:
        """Type, name and length, as in a declaration."""
        return f"const {self.c_type} {self.name}[{self.count}]"


@dataclass(frozen=True)
class StructView:
    """A constant parameter struct: `members` are (field, literal)."""

    name: str
    c_type: str
    members: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class FunctionView:
    """A static function of the network's own: its text, where its algorithm comes from."""

    name: str
    text: str
    symbol: str


@dataclass(frozen=True)
class LayerView:
    """One call in NAME_run.

    opening  what begins a loop at this layer; `tests` end it after the layer's own statement
    closing  the ends of the loops of which it is the last layer
    """

    index: int
    comment: str
    call: str
    instruction: Instruction
    kernel: Kernel
    function: str
    results: tuple[Slot, ...]
    opening: str = ""
    tests: str = ""
    closing: tuple[str, ...] = ()

    @property
    def margin(self) -> str:
        """The spaces before the layer's own statement."""
        return " " * margin(self.instruction)


@dataclass(frozen=True)
class Code:
    """Everything that the C files say, before it is laid out."""

    arrays: tuple[ArrayView, ...]
    structs: tuple[StructView, ...]
    functions: tuple[FunctionView, ...]
    layers: tuple[LayerView, ...]
    kernels: tuple[Kernel, ...]
    """Kernels called out of line, in order of first use."""
    includes: tuple[str, ...]


def margin(instruction: Instruction) -> int:
    """Return the columns before a layer's statement in NAME_run: four, four more in every loop."""
    return 4 + 4 * len(nest_of(instruction.loop))


Place = int | tuple[int, int]
"""A layer, or (layer, member) of a chain that runs row by row."""
Render = Callable[[Kernel, Instruction, str], str]
"""Renders a template kernel: (kernel, instruction, C name) -> text of a static function."""


def shape_text(type_: TensorType) -> str:
    """Return a type as in C: i8[1][25][5][64]."""
    return str(type_.dtype) + "".join(f"[{d}]" for d in type_.shape)


@dataclass
class Constants:
    """The arrays of a network; equal contents are stored once."""

    prefix: str
    arrays: list[ArrayView] = field(default_factory=list)
    _names: dict[tuple[str, int, bytes], str] = field(default_factory=dict)

    def add(self, data: Array, label: str, comment: str) -> str:
        """Return the C expression of an array's address; NULL for an empty one."""
        if data.size == 0:
            return "NULL"
        dtype = dtypes.of(data.dtype)
        flat = np.ascontiguousarray(data).reshape(-1)
        content = memoryview(flat.view(np.uint8))  # type: ignore[arg-type]
        key = (dtype.c, flat.size, hashlib.sha256(content).digest())
        if key not in self._names:
            name = f"{self.prefix}_{label}"
            self._names[key] = name
            small, crc = dtype.nbytes < 4, zlib.crc32(content)
            self.arrays.append(ArrayView(name, dtype.c, compact(flat), comment, small, crc))
        return self._names[key]

    def buffer(self, buffer: Buffer, label: str, comment: str) -> str:
        """Return the expression of a constant buffer, which may be a view into another."""
        root = buffer.root
        assert root.data is not None
        if buffer.nbytes == 0:
            return "NULL"
        data = stored(root.data, root.type) if root.type.packed else root.data
        name, offset = self.add(data, label, comment), buffer.root_offset
        if offset == 0:
            return name
        return f"(const void *)((const uint8_t *)(const void *){name} + {offset})"


@dataclass(frozen=True)
class Argument:
    """One pointer that a kernel gets: a buffer, a packed constant, or NULL for an absent one."""

    name: str
    item: Buffer | Packed | None
    written: bool = False


def arguments(instruction: Instruction, kernel: Kernel) -> tuple[Argument, ...]:
    """Return the pointers of a kernel's C prototype: outputs, inputs, constants, scratch.

    Inputs come in the order of the fields; without packing, constants are inputs like others.
    """
    outputs: list[Argument] = []
    inputs: list[Argument] = []
    for field_name, role in instruction.roles().items():
        found = getattr(instruction, field_name)
        group = inputs if role == "in" else outputs
        if found is None and not kernel.pack:
            group.append(Argument(field_name, None, role != "in"))
        elif isinstance(found, tuple):
            group += [Argument(f"{field_name}{n}", b, role != "in") for n, b in enumerate(found)]
        elif found is not None:
            group.append(Argument(field_name, found, role != "in"))
    if kernel.pack:
        inputs = [a for a in inputs if not _is_constant(a)]
        inputs += [Argument(p.name, p) for p in kernel.pack(instruction)]
    if kernel.scratch is not no_scratch:
        inputs.append(Argument("scratch", instruction.scratch, True))
    return (*outputs, *inputs)


def _is_constant(argument: Argument) -> bool:
    return isinstance(argument.item, Buffer) and argument.item.root.kind == "constant"


@dataclass
class Assembler:
    """Turns the instructions of one function into C records, one after the other."""

    name: str
    memory: Memory
    render: Render
    specialised: frozenset[Place]
    constants: Constants = field(init=False)
    structs: dict[tuple[str, tuple[tuple[str, str], ...]], StructView] = field(default_factory=dict)
    functions: dict[str, FunctionView] = field(default_factory=dict)
    kernels: dict[str, Kernel] = field(default_factory=dict)
    includes: dict[str, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.constants = Constants(self.name)

    def layer(self, index: int, instruction: Instruction) -> LayerView:
        """Return one layer; its constants, parameters and functions are added to the lists."""
        kernel = instruction.kernel
        assert kernel is not None, f"{instruction.name} has no kernel"
        if not any(b.nbytes for b in instruction.outputs()):
            comment = literals.block(
                f"{index}: {instruction.name} has no elements", margin(instruction)
            )
            written = results(instruction, self.memory)
            return LayerView(index, comment, "", instruction, kernel, "", written)
        operands = tuple(
            self.argument(index, instruction, a) for a in arguments(instruction, kernel)
        )
        if kernel.template:
            function, passed = self.template(index, instruction, kernel), operands
        else:
            self.includes.setdefault(f"{kernel.symbol}.h")
            params = self.params(index, instruction, kernel)
            if index in self.specialised:
                function = self._specialised(index, instruction, kernel, params)
                passed = operands
            else:
                self.kernels.setdefault(kernel.symbol, kernel)
                function, passed = kernel.symbol, (*params, *operands)
        return LayerView(
            index,
            literals.block(layer_comment(index, instruction, kernel), margin(instruction)),
            literals.call(function, passed, margin(instruction)),
            instruction,
            kernel,
            function,
            results(instruction, self.memory),
        )

    def argument(self, index: int | str, instruction: Instruction, operand: Argument) -> str:
        """Return the C expression of one operand."""
        item = operand.item
        if item is None:
            return "NULL"
        label = f"layer{index}_{operand.name}"
        if isinstance(item, Packed):
            size = f"{dtypes.of(item.data.dtype)}[{item.data.size}]"
            text = short(item.comment or instruction.name, 80 - len(size))
            comment = f"layer {index} {item.name}: {text} {size}"
            return self.constants.add(item.data, label, comment)
        if item.root.kind != "constant":
            return self.memory.pointer(item)
        return self.constants.buffer(
            item, label, _constant_comment(index, instruction, operand.name, item)
        )

    def params(self, index: int | str, instruction: Instruction, kernel: Kernel) -> tuple[str, ...]:
        """Return the pointer to the struct of an instruction's attributes, if it has any."""
        attributes = instruction.attributes()
        if not attributes:
            return ()
        members = tuple((n, literals.attribute(v)) for n, v in attributes.items())
        c_type = f"{kernel.symbol}_t"
        view = self.structs.setdefault(
            (c_type, members), StructView(f"{self.name}_params{index}", c_type, members)
        )
        return (f"&{view.name}",)

    def _specialised(
        self, index: int, instruction: Instruction, kernel: Kernel, params: tuple[str, ...]
    ) -> str:
        found = arguments(instruction, kernel)
        typed = tuple(f"{'' if a.written else 'const '}void *{a.name}" for a in found)
        return self.constant_copy(index, kernel.symbol, params, typed)

    def constant_copy(
        self, index: int | str, symbol: str, params: tuple[str, ...], typed: tuple[str, ...]
    ) -> str:
        """Return a function that is a kernel's core with constant parameters.

        typed  declarations of its own parameters, which it hands on
        """
        key = f"{symbol} {params}"
        if key not in self.functions:
            function = f"{self.name}_{symbol.removeprefix('gm_')}_{index}"
            names = (re.split(r"[ *]", one)[-1] for one in typed)
            head = literals.call(f"static GM_NOINLINE void {function}", typed, 0).rstrip(";")
            core = literals.call(f"{symbol}_core", (*params, *names), 4)
            self.functions[key] = FunctionView(function, f"{head}\n{{\n{core}\n}}", symbol)
        return self.functions[key].name

    def template(self, index: int | str, instruction: Instruction, kernel: Kernel) -> str:
        """Return a rendered function; instructions that render alike share one."""
        placeholder = "GM_THIS_FUNCTION"
        text = self.render(kernel, instruction, placeholder)
        lines = text.strip("\n").split("\n")
        for line in lines:
            found = re.fullmatch(r"\s*#\s*include\s*[<\"](.+)[>\"]\s*", line)
            if found:
                self.includes.setdefault(found[1])
        text = "\n".join(n for n in lines if not n.lstrip().startswith("#include")).strip("\n")
        if text not in self.functions:
            function = f"{self.name}_{kernel.symbol.removeprefix('gm_')}_{index}"
            named = _named(text, placeholder, function)
            self.functions[text] = FunctionView(function, named, kernel.symbol)
        return self.functions[text].name


def _named(text: str, placeholder: str, function: str) -> str:
    """Return rendered functions under their names, heads wrapped for the length of the names."""

    def wrapped(head: re.Match[str]) -> str:
        parameters = tuple(re.split(r",\s+", head[2]))
        return literals.call(head[1], parameters, 0).removesuffix(";")

    heads = re.compile(rf"^(\w.*\b{function}\w*)\(([^()]*)\)(?=\n\{{)", re.MULTILINE)
    return heads.sub(wrapped, text.replace(placeholder, function))


def slots(buffers: Iterable[Buffer], names: Iterable[str], plan: Plan) -> tuple[Slot, ...]:
    """Return the slots of buffers; identifiers are made distinct by `identify` afterwards."""
    return tuple(
        Slot(name, "", b.type, 0, b.tensor, b.perm, name, plan.outside[b])
        if b.is_outside
        else Slot(name, "", b.type, address(b, plan), b.tensor, b.perm)
        for b, name in zip(buffers, names, strict=True)
    )


def identify(
    inputs: tuple[Slot, ...], outputs: tuple[Slot, ...]
) -> tuple[tuple[Slot, ...], tuple[Slot, ...]]:
    """Return inputs and outputs with C identifiers that differ from each other.

    The only input is also called `input`, so that no other tensor may have that identifier; the
    only output likewise.
    """
    every = (*inputs, *outputs)
    taken = [
        role
        for role, group in (("input", inputs), ("output", outputs))
        if len(group) == 1 and identifier(group[0].name) != role
    ]
    ids = distinct([*taken, *(s.name for s in every)])[len(taken) :]
    named = tuple(
        replace(s, id=i, memory=i if s.memory else "") for s, i in zip(every, ids, strict=True)
    )
    return named[: len(inputs)], named[len(inputs) :]


def results(instruction: Instruction, memory: Memory) -> tuple[Slot, ...]:
    """Return the slots that an instruction writes."""
    found = []
    for buffer in instruction.outputs():
        parameter, offset = memory.home(buffer)
        place = (buffer.type, offset, buffer.tensor, buffer.perm)
        found.append(Slot(buffer.name, "", *place, parameter))
    return tuple(found)


def layer_comment(index: int, instruction: Instruction, kernel: Kernel) -> str:
    """Return what stands above a layer: what it is, its name, its types, its kernel."""
    ins = [shape_text(b.type) for b in instruction.inputs() if b.root.kind != "constant"]
    outs = [shape_text(b.type) for b in instruction.outputs()]
    types = f"{', '.join(ins) or '-'} -> {', '.join(outs)}"
    op = type(instruction).__name__
    return f"{index}: {op}  {short(instruction.name)}  {types}  {kernel.symbol}"


def _constant_comment(index: int | str, instruction: Instruction, part: str, buffer: Buffer) -> str:
    root = buffer.root
    names = f"{short(instruction.name, 40)}, {short(root.name, 40)}"
    return f"layer {index} {part}: {names} {shape_text(root.type)}"
