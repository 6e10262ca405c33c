"""Code and stack of a network: estimated from the C text, or measured with a compiler."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from elftools.elf.elffile import ELFFile

from glowmcu import resources
from glowmcu.emit.specialize import is_hot
from glowmcu.emit.stack import without_comments
from glowmcu.emit.unit import CodeUnit
from glowmcu.emit.view import Code
from glowmcu.errors import ToolMissingError, VerificationError
from glowmcu.instr.function import Function
from glowmcu.instr.instruction import Instruction
from glowmcu.instr.striped import Striped
from glowmcu.options import Options
from glowmcu.targets.kernel import Kernel
from glowmcu.targets.target import Target

_BYTES_PER_CHARACTER = 0.55
_BYTES_PER_CHARACTER_SPECIALISED = 0.42
_RUN_BYTES, _CALL_BYTES = 160, 44
_HOST_CODE = 1.5
"""A 64-bit machine has longer instructions, wider registers to spill, and vectorises."""


def code_estimate(code: Code, runtime: dict[str, str], target: Target) -> int:
    """Return about how many bytes of code the network's own functions and kernels take.

    The estimate goes by what a kernel says of the code rendered for a layer (macros unroll), else
    by the length of the C text of each function there is; it is meant to lie above what -Os gives,
    by up to three times. `measure` knows exactly.
    """
    own, general = _texts(code, runtime)
    size = _declared_beyond_text(code)
    size += sum(len(without_comments(t)) for t in own) * _BYTES_PER_CHARACTER_SPECIALISED
    size += sum(len(without_comments(t)) for t in general) * _BYTES_PER_CHARACTER
    size += sum(len(without_comments(t)) for t in _chains(code)) * _BYTES_PER_CHARACTER
    size += _RUN_BYTES + _CALL_BYTES * len(code.layers)
    return int(size * (1.0 if target.compiler else _HOST_CODE))


def _declared_beyond_text(code: Code) -> float:
    """Return the bytes by which rendered kernels' own figures differ from what texts suggest."""
    texts = {f.name: f.text for f in code.functions}
    beyond: dict[str, float] = {}
    for layer in code.layers:
        kernel, instruction = layer.kernel, layer.instruction
        if not (kernel.template and kernel.flash and kernel.pack and layer.function in texts):
            continue
        text = len(without_comments(texts[layer.function])) * _BYTES_PER_CHARACTER
        beyond[layer.function] = _declared(kernel, instruction) - text
    return sum(beyond.values())


def _declared(kernel: Kernel, instruction: Instruction) -> int:
    """Return the bytes of code that a kernel says it takes for an instruction."""
    if kernel.flash is None:
        return 0
    packed = kernel.pack(instruction) if kernel.pack else ()
    return kernel.flash(instruction) - sum(p.data.nbytes for p in packed)


def kernel_code(
    function: Function, options: Options
) -> Callable[[Kernel, Instruction], tuple[str, int]]:
    """Return what identifies the code of a kernel for an instruction of a function, and its bytes.

    Layers with the same code share it: rendered alike, a copy with the same constant parameters,
    or a kernel that takes parameters.
    """
    total = sum(i.macs * i.turns for i in function.instructions)

    def code_of(kernel: Kernel, instruction: Instruction) -> tuple[str, int]:
        if kernel.template:
            view = repr(kernel.view(instruction)) if kernel.view else ""
            return f"{kernel.symbol} {view}", _declared(kernel, instruction)
        header, source = _kernel_texts(kernel.symbol, kernel.folder)
        if kernel.core and is_hot(
            instruction.macs * instruction.turns, total, options.specialize, options.optimize
        ):
            size = len(header) * _BYTES_PER_CHARACTER_SPECIALISED
            return f"{kernel.symbol} {instruction.attributes()}", int(size)
        return kernel.symbol, int(len(header + source) * _BYTES_PER_CHARACTER)

    return code_of


@cache
def _kernel_texts(symbol: str, folder: str) -> tuple[str, str]:
    """Return header and source of a kernel, without comments."""
    root = resources.folder("runtime_c")
    places = (root / "core", root / "src" / folder)

    def text(kind: str) -> str:
        found = (place / f"{symbol}.{kind}" for place in places)
        return "".join(f.read_text(encoding="utf-8") for f in found if f.is_file())

    return without_comments(text("h")), without_comments(text("c"))


def _chains(code: Code) -> list[str]:
    """Return the functions that run layers row by row: they call kernels, and little else."""
    return [f.text for f in code.functions if f.symbol == Striped.kernels[0].symbol]


def _texts(code: Code, runtime: dict[str, str]) -> tuple[list[str], list[str]]:
    """Return the C texts of the functions made for this network, and of general kernels.

    Chains of rows are not among them.
    """
    made = [f for f in code.functions if f.symbol != Striped.kernels[0].symbol]
    specialised = [runtime[f"{f.symbol}.h"] for f in made if f"{f.symbol}.h" in runtime]
    rendered = [f.text for f in made if f"{f.symbol}.h" not in runtime]
    kernels = [runtime[f"{k.symbol}.h"] + runtime[f"{k.symbol}.c"] for k in code.kernels]
    return specialised, [*rendered, *kernels]


@dataclass(frozen=True)
class Measured:
    """What a compiler made of a network: bytes of code and of read-only data, bytes of stack."""

    code: int
    data: int
    stack: int


def measure(unit: CodeUnit, optimize: str = "-Os") -> Measured:
    """Compile a network for its target and measure it.

    The stack is that of NAME_run and of the deepest function below it, without the C library.
    Raises ToolMissingError without the compiler.
    """
    compiler = shutil.which(f"{unit.target.compiler}gcc")
    if compiler is None:
        raise ToolMissingError(f"the compiler '{unit.target.compiler}gcc' is not installed")
    with tempfile.TemporaryDirectory(prefix="glowmcu-") as name:
        folder = Path(name)
        for file, text in unit.files.items():
            if file.endswith((".c", ".h")):
                (folder / file).write_text(text, encoding="utf-8")
        library = ("--specs=picolibc.specs",) if "riscv" in compiler else ()
        command = [compiler, *unit.target.flags, *library, "-std=c99", optimize]
        command += ["-fstack-usage", "-fcallgraph-info=su"]
        command += ["-ffp-contract=off", "-c", *unit.sources]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise VerificationError("the C code does not compile", why=done.stderr[:800])
        sizes = [_sections(folder / f"{Path(s).stem}.o") for s in unit.sources]
        graphs = [(folder / f"{Path(s).stem}.ci").read_text() for s in unit.sources]
    stack = _deepest(graphs, f"{unit.name}_run")
    return Measured(sum(s[0] for s in sizes), sum(s[1] for s in sizes), stack)


_NODE = re.compile(r'node: { title: "([^"]+)" label: "[^"]*?\\n(\d+) bytes')
_EDGE = re.compile(r'edge: { sourcename: "([^"]+)" targetname: "([^"]+)"')


def _deepest(graphs: list[str], start: str) -> int:
    """Return the bytes of stack from a function on, by the compiler's frames and call graph."""
    frames: dict[str, int] = {}
    calls: dict[str, set[str]] = {}
    for text in graphs:
        frames.update((title, int(size)) for title, size in _NODE.findall(text))
        for source, called in _EDGE.findall(text):
            calls.setdefault(source, set()).add(called)

    # a weak function is named with its file where it is defined, without where it is called
    defined = {title.rpartition(":")[2]: title for title in frames}

    def depth(function: str) -> int:
        title = function if function in frames else defined.get(function, function)
        below = max(map(depth, sorted(calls.get(title, ()))), default=0)
        return frames.get(title, 0) + below

    return depth(start)


def _sections(path: Path) -> tuple[int, int]:
    code = data = 0
    with path.open("rb") as stream:
        for section in ELFFile(stream).iter_sections():
            if section.name.startswith(".text"):
                code += section.data_size
            elif section.name.startswith((".rodata", ".srodata")):
                data += section.data_size
    return code, data
