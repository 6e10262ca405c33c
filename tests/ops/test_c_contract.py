"""The C side of every kernel, parsed: structs, prototypes and house rules."""

from __future__ import annotations

import re
import subprocess
import typing
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pycparser import c_ast, c_parser
from test_examples import CASES, compiled

import glowmcu.ops  # noqa: F401 - registers the cards
from glowmcu.core import dtypes
from glowmcu.emit.view import arguments
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.instruction import Instruction
from glowmcu.instr.loop_head import LoopHead
from glowmcu.targets.kernel import Kernel, Packed

ROOT = Path(__file__).resolve().parents[2]
RUNTIME = ROOT / "runtime_c"
FAKE = ROOT / "tests" / "support" / "fake_libc"
FILES = [
    path
    for path in sorted([*(RUNTIME / "core").glob("*.h"), *(RUNTIME / "src" / "c99").glob("*.c")])
    if "<arm_" not in path.read_text(encoding="utf-8")  # intrinsics need the compiler itself
]
FORBIDDEN = {"malloc", "calloc", "realloc", "free", "alloca", "printf", "setjmp", "longjmp"}
INTEGERS = {"int8_t", "int16_t", "int32_t", "int64_t", "uint8_t", "uint16_t", "uint32_t"}

pytestmark = pytest.mark.cc


def subclasses(cls: type[Instruction]) -> Iterator[type[Instruction]]:
    for child in cls.__subclasses__():
        if child.__module__.startswith("glowmcu.ops."):  # others have no kernel in a file
            yield child
        yield from subclasses(child)


KERNELS = [
    pytest.param(cls, kernel, id=f"{cls.__name__}-{kernel.symbol}")
    for cls in sorted(subclasses(Instruction), key=lambda c: c.__name__)
    for kernel in cls.kernels
    if not kernel.template
]


def parse(text: str, folder: Path) -> c_ast.FileAST:
    command = ["gcc", "-E", "-P", "-std=c99", "-nostdinc", "-U__GNUC__", "-"]
    command += ["-I", str(FAKE), "-I", str(folder), "-D__attribute__(x)="]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return c_parser.CParser().parse(done.stdout)


@cache
def parsed(path: Path) -> c_ast.FileAST:
    return parse(path.read_text(encoding="utf-8"), RUNTIME / "core")


@cache
def header_of(symbol: str, folder: str) -> c_ast.FileAST:
    path = RUNTIME / "core" / f"{symbol}.h"
    if path.exists():
        return parsed(path)
    # a twin: what it declares, without its functions and what only they need
    text = (RUNTIME / "src" / folder / path.name).read_text(encoding="utf-8")
    text = re.sub(r"^GM_INLINE .*?^}$", "", text, flags=re.MULTILINE | re.DOTALL)
    machine = "gm_mve|gm_halfword|gm_pair_product|gm_fpu|gm_avx2|gm_vector|arm_mve"
    text = re.sub(rf'#include ["<]({machine})\.h[">]', "", text)
    return parse(text, RUNTIME / "core")


def header(kernel: Kernel) -> c_ast.FileAST:
    return header_of(kernel.symbol, kernel.folder)


def base(node: Any) -> tuple[str, int]:
    """Return the name of the innermost type and how many arrays or pointers are around it."""
    depth = 0
    while not isinstance(node, c_ast.IdentifierType | c_ast.Struct | c_ast.Union | c_ast.Enum):
        depth += isinstance(node, c_ast.ArrayDecl | c_ast.PtrDecl)
        node = node.type
    return (" ".join(node.names) if isinstance(node, c_ast.IdentifierType) else ""), depth


def members(tree: c_ast.FileAST, name: str) -> list[tuple[str, str, int]] | None:
    for item in tree.ext:
        if isinstance(item, c_ast.Typedef) and item.name == name:
            if isinstance(item.type.type, c_ast.IdentifierType):
                return members(tree, item.type.type.names[0])
            return [(d.name, *base(d.type)) for d in item.type.type.decls]
    return None


def prototype(tree: c_ast.FileAST, name: str) -> list[tuple[str, int, bool]]:
    """Return (type, depth, const) of each parameter."""
    for item in tree.ext:
        if isinstance(item, c_ast.Decl) and item.name == name:
            parameters = item.type.args.params
            return [(*base(p.type), "const" in p.type.type.quals) for p in parameters]
    raise AssertionError(f"{name} has no prototype")


def attribute_hints(cls: type[Instruction]) -> dict[str, Any]:
    """Return the types of the attributes; that of an optional one as if it were present."""
    hints = typing.get_type_hints(cls)
    base_fields = typing.get_type_hints(Instruction)
    fields = [f for f in cls.__dataclass_fields__ if f not in base_fields]
    skipped = {
        f for f, hint in typing.get_type_hints(cls, include_extras=True).items() if _mark(hint)
    }
    return {f: present(hints[f]) for f in fields if f not in skipped}


def optional(cls: type[Instruction]) -> set[str]:
    hints = typing.get_type_hints(cls)
    return {f for f in attribute_hints(cls) if present(hints[f]) is not hints[f]}


def present(hint: Any) -> Any:
    """Return T for the type `T | None`."""
    parts = [part for part in typing.get_args(hint) if part is not type(None)]
    return parts[0] if type(None) in typing.get_args(hint) else hint


def _mark(hint: Any) -> bool:
    return any(
        getattr(part, "__metadata__", ("",))[0] in ("in", "out", "inout", "flag")
        for part in (hint, *typing.get_args(hint))
    )


def family(hint: Any) -> tuple[set[str], int]:
    if typing.get_origin(hint) is tuple:
        found, depth = family(typing.get_args(hint)[0])
        return found, depth + 1
    if hint is float:
        return {"float", "double"}, 0
    assert hint in (int, bool), hint
    return INTEGERS, 0


@pytest.mark.parametrize(("cls", "kernel"), KERNELS)
def test_struct_members_are_the_attributes(cls: type[Instruction], kernel: Kernel) -> None:
    hints = attribute_hints(cls)
    found = members(header(kernel), f"{kernel.symbol}_t")
    if not hints:
        assert found is None
        return
    assert found is not None
    names = [m[0] for m in found]
    assert names == [n for n in hints if n in names or n not in optional(cls)]
    for name, c_type, depth in found:
        types, levels = family(hints[name])
        assert c_type in types, f"{name} is {c_type}"
        assert depth == levels, f"{name} has {depth} dimensions"


@pytest.mark.parametrize(("name", "index"), CASES)
def test_prototypes_take_the_operands(name: str, index: int) -> None:
    for instruction in compiled(name, index).function.instructions:
        if isinstance(instruction, LoopHead):
            continue  # a statement of the network's own function
        for kernel in instruction.kernels:
            if not kernel.template and not kernel.accepts(instruction):
                check_prototype(instruction, kernel)


def check_prototype(instruction: Instruction, kernel: Kernel) -> None:
    parameters = prototype(header(kernel), kernel.symbol)
    attributes = list(instruction.attributes())
    struct = members(header(kernel), f"{kernel.symbol}_t") or []
    assert [member[0] for member in struct] == attributes
    if attributes:
        assert parameters.pop(0) == (f"{kernel.symbol}_t", 1, True)
    found = arguments(instruction, kernel)
    assert len(parameters) == len(found)
    for (c_type, depth, const), argument in zip(parameters, found, strict=True):
        assert depth == 1
        assert const != argument.written, argument.name
        item = argument.item
        if isinstance(item, Packed):
            assert c_type == dtypes.of(item.data.dtype).c, argument.name
        elif isinstance(item, Buffer) and item.kind != "scratch":
            assert c_type in (item.type.dtype.c, "void"), argument.name


class Calls(c_ast.NodeVisitor):
    """Functions called, and arrays whose length is not a constant."""

    def __init__(self) -> None:
        self.called: set[str] = set()
        self.variable: list[str] = []

    def visit_FuncCall(self, node: c_ast.FuncCall) -> None:
        assert isinstance(node.name, c_ast.ID), "a call through a pointer"
        self.called.add(node.name.name)
        self.generic_visit(node)

    def visit_ArrayDecl(self, node: c_ast.ArrayDecl) -> None:
        names = [n for n in _walk(node.dim) if isinstance(n, c_ast.ID)] if node.dim else []
        self.variable += [n.name for n in names]
        self.generic_visit(node)


def _walk(node: c_ast.Node) -> Iterator[c_ast.Node]:
    yield node
    for _, child in node.children():
        yield from _walk(child)


def calls(tree: c_ast.FileAST) -> dict[str, Calls]:
    found = {}
    for item in tree.ext:
        if isinstance(item, c_ast.FuncDef):
            found[item.decl.name] = Calls()
            found[item.decl.name].visit(item)
    return found


def check_house_rules(tree: c_ast.FileAST, prefixes: tuple[str, ...]) -> None:
    """No heap, no variable-length arrays, no recursion, no variables, prefixed names."""
    found = calls(tree)
    for name, facts in found.items():
        assert not facts.called & FORBIDDEN, name
        assert not facts.variable, f"{name}: length {facts.variable}"
    graph = {n: c.called & set(found) for n, c in found.items()}
    for name in graph:
        reached, pending = set(), list(graph[name])
        while pending:
            callee = pending.pop()
            if callee not in reached:
                reached.add(callee)
                pending += graph[callee]
        assert name not in reached, f"{name} is recursive"
    library = {t.name for t in parse("#include <stdint.h>\n#include <string.h>", FAKE).ext}
    library |= {"size_t", "ptrdiff_t"}
    for item in tree.ext:
        if isinstance(item, c_ast.FuncDef):
            assert item.decl.name.startswith(prefixes), item.decl.name
        elif isinstance(item, c_ast.Decl) and isinstance(item.type, c_ast.FuncDecl):
            assert item.name.startswith(prefixes) or item.name in library, item.name
        elif isinstance(item, c_ast.Typedef):
            assert item.name.startswith(prefixes) or item.name in library, item.name
        elif isinstance(item, c_ast.Decl):
            assert item.name.startswith(prefixes), item.name
            assert any("const" in quals for quals in _qualifiers(item.type)), item.name


def _qualifiers(node: Any) -> Iterator[list[str]]:
    while node is not None:
        yield getattr(node, "quals", None) or []
        node = getattr(node, "type", None)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_the_runtime_keeps_the_house_rules(path: Path) -> None:
    check_house_rules(parsed(path), ("gm_",))


def test_the_generated_code_keeps_the_house_rules(tmp_path: Path) -> None:
    for name, index in CASES[:: max(1, len(CASES) // 40)]:
        unit = compiled(name, index).unit
        folder = tmp_path / unit.name
        unit.write(folder)
        for source in (f"{unit.name}.c", f"{unit.name}_weights.c"):
            check_house_rules(parse(unit.files[source], folder), ("gm_", unit.name))


def signature(text: str, function: str) -> list[str]:
    """Return the parameters of a function's first declaration or definition as text."""
    found = re.search(rf"\b{function}\((.*?)\)", text, re.DOTALL)
    assert found, function
    return [p.strip() for p in found[1].split(",")]


@pytest.mark.parametrize(("name", "index"), CASES)
def test_operands_that_may_share_are_not_restrict(name: str, index: int) -> None:
    case = compiled(name, index)
    layers = case.unit.report["layers"]
    for instruction, layer in zip(case.function.instructions, layers, strict=True):
        kernel = instruction.kernel
        pairs = instruction.shares()
        if kernel is None or not pairs or not layer["function"]:
            continue
        names = [a.name for a in arguments(instruction, kernel)]
        if kernel.template:
            texts = [(case.unit.files[f"{case.unit.name}.c"], layer["function"])]
        else:
            text = case.unit.files[f"{kernel.symbol}.h"]
            texts = [(text, n) for n in (kernel.symbol, f"{kernel.symbol}_core")]
            texts = texts if kernel.core else texts[:1]
        for text, function in texts:
            parameters = signature(text, function)
            parameters = parameters[len(parameters) - len(names) :]
            for field in {f for pair in pairs for f in pair}:
                found = [p for n, p in zip(names, parameters, strict=True) if n == field]
                assert not [p for p in found if "RESTRICT" in p], f"{function}: {field}"
