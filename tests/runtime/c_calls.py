"""Run instructions in C on blocks of exactly the size of their operands; return the results."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Any

import jinja2
import numpy as np

from glowmcu.core.types import Array
from glowmcu.emit.literals import attribute
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.evaluate import in_memory
from glowmcu.instr.instruction import Instruction, arrays_of
from glowmcu.resources import folder
from glowmcu.targets.kernel import Kernel
from glowmcu.targets.select import select
from glowmcu.targets.target import target

STRICT = (
    "-std=c99 -O2 -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow "
    "-Wdouble-promotion -Wundef -Werror -ffp-contract=off"
).split()
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g"]
_MAIN = """
GM_INLINE void *block(size_t size)
{
    void *p = malloc(size ? size : 1);
    if (size && fread(p, 1, size, stdin) != size) {
        exit(2);
    }
    return p;
}
"""
_JINJA = jinja2.Environment(
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    loader=jinja2.FileSystemLoader(folder("templates")),
)


def portable(instruction: Instruction) -> Kernel:
    """Return the kernel in C for the instruction."""
    return select(instruction, target("host"))


def render(instruction: Instruction, function: str = "kernel") -> str:
    kernel = portable(instruction)
    assert kernel.template is not None and kernel.view is not None
    template = _JINJA.get_template(f"instr/{kernel.template}")
    return template.render(function=function, **kernel.view(instruction))


def random_memory(instruction: Instruction, seed: int) -> dict[Buffer, Array]:
    """Return arrays for the operands: random inputs, the data of constants, zeros elsewhere."""
    rng = np.random.default_rng(seed)
    memory: dict[Buffer, Array] = {}
    for operand in instruction.operands():
        type_ = operand.buffer.type
        if operand.buffer.data is not None:
            memory[operand.buffer] = operand.buffer.data
        elif operand.role == "out":
            memory[operand.buffer] = np.zeros(type_.shape, type_.dtype.numpy)
        elif type_.dtype.is_float:
            memory[operand.buffer] = rng.normal(0, 3, type_.shape).astype(type_.dtype.numpy)
        else:
            low, high = max(type_.dtype.low, -(1 << 62)), min(type_.dtype.high, 1 << 62)
            high = 1 if type_.dtype.kind == "bool" else high
            found = rng.integers(low, high, type_.shape, endpoint=True)
            memory[operand.buffer] = found.astype(type_.dtype.numpy)
    return {b: in_memory(array, b) for b, array in memory.items()}


def expected(instruction: Instruction, memory: dict[Buffer, Array]) -> list[Array]:
    """Return the outputs that the numpy reference gives."""
    found = instruction.reference(*arrays_of(instruction, memory))
    results = found if isinstance(found, tuple) else (found,)
    return [
        np.asarray(r).reshape(o.type.memory_shape).astype(_element(o))
        for r, o in zip(results, instruction.outputs(), strict=True)
    ]


def _element(buffer: Buffer) -> np.dtype[Any]:
    """Return the type of the elements of a buffer's array in memory."""
    return np.dtype(np.uint8) if buffer.type.packed else buffer.type.dtype.numpy


def _stored(buffer: Buffer) -> np.dtype[Any]:
    """Return the type of these elements in C."""
    return np.dtype(np.uint8) if buffer.type.packed else buffer.type.dtype.storage


def run(
    cases: list[tuple[Instruction, dict[Buffer, Array]]], cc: str, flags: tuple[str, ...] = ()
) -> list[list[Array]]:
    """Compile one program that runs all cases; return the outputs of each."""
    heads = ["<stdio.h>", "<stdlib.h>"]
    functions: list[str] = []
    body: list[str] = []
    sources: set[str] = set()
    data = b""
    for number, (instruction, memory) in enumerate(cases):
        operands = [o for o in instruction.operands() if o.role != "in"]
        operands += [o for o in instruction.operands() if o.role == "in"]
        body.append("    {")
        for index, operand in enumerate(operands):
            array = np.ascontiguousarray(memory[operand.buffer])
            array = array.astype(_stored(operand.buffer), copy=False)
            data += array.tobytes()
            body.append(f"        void *p{index} = block({array.nbytes});")
        arguments = [f"p{index}" for index in range(len(operands))]
        kernel = portable(instruction)
        if kernel.template:
            lines = render(instruction, f"case{number}").splitlines()
            heads += [line.split()[1] for line in lines if line.startswith("#include")]
            functions += [line for line in lines if not line.startswith("#include")]
            body.append(f"        case{number}({', '.join(arguments)});")
        else:
            heads.append(f'"{kernel.symbol}.h"')
            sources.add(str(folder("runtime_c") / "src" / "c99" / f"{kernel.symbol}.c"))
            members = ", ".join(attribute(v) for v in instruction.attributes().values())
            body.append(f"        static const {kernel.symbol}_t p = {{{members}}};")
            body.append(f"        {kernel.symbol}({', '.join(['&p', *arguments])});")
        for index, operand in enumerate(operands):
            if operand.role != "in":
                body.append(f"        fwrite(p{index}, 1, {operand.buffer.nbytes}, stdout);")
            body.append(f"        free(p{index});")
        body.append("    }")
    text = "\n".join(
        [f"#include {h}" for h in ('"gm_types.h"', *dict.fromkeys(heads))]
        + [_MAIN, *functions, "int main(void)", "{", *body, "    return 0;", "}", ""]
    )
    return _split(cases, _execute(text, sorted(sources), cc, flags, data))


def _execute(text: str, sources: list[str], cc: str, flags: tuple[str, ...], data: bytes) -> bytes:
    with tempfile.TemporaryDirectory() as place:
        source = Path(place) / "cases.c"
        source.write_text(text)
        include = f"-I{folder('runtime_c') / 'core'}"
        command = [cc, *STRICT, *flags, include, str(source), *sources, "-o", f"{place}/cases"]
        made = subprocess.run([*command, "-lm"], capture_output=True, text=True)
        assert made.returncode == 0, made.stderr
        ran = subprocess.run([f"{place}/cases"], input=data, capture_output=True)
        assert ran.returncode == 0, ran.stderr.decode()
        return ran.stdout


def _split(cases: list[Any], raw: bytes) -> list[list[Array]]:
    results: list[list[Array]] = []
    offset = 0
    for instruction, _ in cases:
        outputs = []
        for buffer in instruction.outputs():
            piece = np.frombuffer(raw[offset : offset + buffer.nbytes], _stored(buffer))
            outputs.append(piece.reshape(buffer.type.memory_shape).astype(_element(buffer)))
            offset += buffer.nbytes
        results.append(outputs)
    assert offset == len(raw)
    return results
