"""Code and stack of a network: estimated from the C text, or measured with a compiler."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.elffile import ELFFile

from glowmcu.emit.unit import CodeUnit
from glowmcu.emit.view import Code
from glowmcu.errors import ToolMissingError, VerificationError
from glowmcu.targets.target import Target

_BYTES_PER_CHARACTER = 0.55
_BYTES_PER_CHARACTER_SPECIALISED = 0.42
_RUN_BYTES, _CALL_BYTES = 160, 44
_RUN_FRAME, _FRAME, _FRAME_PER_CHARACTER = 48, 64, 0.09
_HOST_CODE, _HOST_FRAME = 1.5, 2.5
"""A 64-bit machine has longer instructions, wider registers to spill, and vectorises."""


def code_estimate(code: Code, runtime: dict[str, str], target: Target) -> int:
    """Return about how many bytes of code the network's own functions and kernels take.

    The estimate goes by the length of the C text of each function there is; it is meant to lie
    above what -Os gives, by a half to three times. `measure` knows exactly.
    """
    own, general = _texts(code, runtime)
    size = sum(len(_without_comments(t)) for t in own) * _BYTES_PER_CHARACTER_SPECIALISED
    size += sum(len(_without_comments(t)) for t in general) * _BYTES_PER_CHARACTER
    size += _RUN_BYTES + _CALL_BYTES * len(code.layers)
    return int(size * (1.0 if target.compiler else _HOST_CODE))


def stack_estimate(code: Code, runtime: dict[str, str], target: Target) -> int:
    """Return a bound of the stack: the frames of NAME_run and of one kernel, its arrays too.

    Frames grow with the length of a function; calls into the C library are not counted.
    """
    factor = 1.0 if target.compiler else _HOST_FRAME
    own, general = _texts(code, runtime)
    frames = [
        (_FRAME + len(_without_comments(t)) * _FRAME_PER_CHARACTER) * factor + _local_arrays(t)
        for t in (*own, *general)
    ]
    return -(-int(_RUN_FRAME * factor + max(frames, default=0.0)) // 8) * 8


def _texts(code: Code, runtime: dict[str, str]) -> tuple[list[str], list[str]]:
    """Return the C texts of the functions made for this network, and of general kernels."""
    specialised = [runtime[f"{f.symbol}.h"] for f in code.functions if f"{f.symbol}.h" in runtime]
    rendered = [f.text for f in code.functions if f"{f.symbol}.h" not in runtime]
    kernels = [runtime[f"{k.symbol}.h"] + runtime[f"{k.symbol}.c"] for k in code.kernels]
    return specialised, [*rendered, *kernels]


def _without_comments(text: str) -> str:
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return re.sub(r"\s+", " ", text)


_SIZES = {"int8_t": 1, "uint8_t": 1, "int16_t": 2, "uint16_t": 2, "int64_t": 8, "double": 8}
_LOCAL = re.compile(r"^\s+(?:const )?(\w+) (?:\*(?:const )?)?\w+((?:\[\d+\])+)", re.MULTILINE)


def _local_arrays(text: str) -> int:
    total = 0
    for found in _LOCAL.finditer(text):
        count = 1
        for dimension in re.findall(r"\d+", found[2]):
            count *= int(dimension)
        total += count * _SIZES.get(found[1], 4)
    return total


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
        command = [compiler, *unit.target.flags, *library, "-std=c99", optimize, "-fstack-usage"]
        command += ["-ffp-contract=off", "-c", *unit.sources]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise VerificationError("the C code does not compile", why=done.stderr[:800])
        sizes = [_sections(folder / f"{Path(s).stem}.o") for s in unit.sources]
        frames = {}
        for source in unit.sources:
            for line in (folder / f"{Path(source).stem}.su").read_text().splitlines():
                where, size, _kind = line.split("\t")
                frames[where.rsplit(":", 1)[1]] = int(size)
    run = frames.pop(f"{unit.name}_run")
    return Measured(
        sum(s[0] for s in sizes), sum(s[1] for s in sizes), run + max(frames.values(), default=0)
    )


def _sections(path: Path) -> tuple[int, int]:
    code = data = 0
    with path.open("rb") as stream:
        for section in ELFFile(stream).iter_sections():
            if section.name.startswith(".text"):
                code += section.data_size
            elif section.name.startswith((".rodata", ".srodata")):
                data += section.data_size
    return code, data
