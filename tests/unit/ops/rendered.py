"""Compile what a template renders for an instruction and run it beside the numpy reference."""

from __future__ import annotations

import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import pytest

from glowmcu.instr.instruction import Instruction, arrays_of
from glowmcu.resources import folder
from glowmcu.targets.kernel import Kernel
from glowmcu.targets.select import select
from glowmcu.targets.target import target

STRICT = (
    "-std=c99 -O2 -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow "
    "-Wdouble-promotion -Wundef -Werror -ffp-contract=off"
).split()
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-O1"]


def portable(instruction: Instruction) -> Kernel:
    """Return the kernel in C for the instruction."""
    return select(instruction, target("host"))


@cache
def environment() -> jinja2.Environment:
    return jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        loader=jinja2.FileSystemLoader(folder("templates")),
    )


def render(instruction: Instruction, function: str = "kernel") -> str:
    kernel = portable(instruction)
    assert kernel.template is not None and kernel.view is not None
    template = environment().get_template(f"instr/{kernel.template}")
    return template.render(function=function, **kernel.view(instruction))


def formatted(text: str) -> str:
    return subprocess.run(
        ["clang-format", f"--style=file:{folder('runtime_c').parent / '.clang-format'}"],
        input=text,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def _literal(array: np.ndarray[Any, Any]) -> str:
    return ", ".join(map(str, np.ascontiguousarray(array).reshape(-1).view(np.uint8)))


def _number(value: Any) -> str:
    assert isinstance(value, int)
    return str(value)


def _program(cases: list[tuple[Instruction, list[Any], list[Any]]]) -> str:
    """Return a program that runs every case on heap blocks of exactly the operands' sizes."""
    plain = {k.symbol: k for i, _, _ in cases if not (k := portable(i)).template}
    lines = ["#include <stdio.h>", "#include <stdlib.h>", '#include "gm_types.h"']
    lines += [f'#include "../src/{k.folder}/{symbol}.c"' for symbol, k in plain.items()]
    body = []
    for number, (instruction, before, after) in enumerate(cases):
        kernel, arguments, function = portable(instruction), [], f"kernel{number}"
        body.append("    {")
        if kernel.template:
            lines.append(render(instruction, function))
        else:
            assert kernel.pack is None
            function = kernel.symbol
            values = ", ".join(_number(v) for v in instruction.attributes().values())
            body.append(f"        const {kernel.symbol}_t params = {{{values}}};")
            arguments.append("&params")
        for index, (operand, data) in enumerate(zip(instruction.operands(), before, strict=True)):
            size = data.nbytes
            const = "" if operand.role != "in" else "const "
            bytes_ = f"in{number}_{index}[{max(size, 1)}] = {{{_literal(data) or 0}}}"
            lines.append(f"static const uint8_t {bytes_};")
            body.append(f"        void *p{index} = malloc({max(size, 1)});")
            body.append(f"        memcpy(p{index}, in{number}_{index}, {size});")
            arguments.append(f"({const}{operand.buffer.type.dtype.c} *)p{index}")
        missing = [n for n in instruction.roles() if getattr(instruction, n) is None]
        arguments += ["NULL"] * len(missing)  # only the last operands are optional here
        body.append(f"        {function}({', '.join(arguments)});")
        for index, data in enumerate(after):
            lines.append(
                f"static const uint8_t out{number}_{index}[{data.nbytes}] = {{{_literal(data)}}};"
            )
            body.append(
                f"        if (memcmp(p{index}, out{number}_{index}, {data.nbytes}) != 0) {{"
            )
            body.append(f'            printf("case {number} output {index} differs\\n");')
            body.append("            failed = 1;")
            body.append("        }")
        body.extend(f"        free(p{i});" for i in range(len(before)))
        body.append("    }")
    lines += ["int main(void)", "{", "    int failed = 0;", *body, "    return failed;", "}", ""]
    return "\n".join(lines)


def check(
    instructions: list[Instruction],
    seed: int = 0,
    flags: tuple[str, ...] = (),
    cc: str = "gcc",
    run: bool = True,
) -> None:
    """Run instructions in C on random bytes and compare every output bit with the reference.

    With run=False they are only compiled, for another machine.
    """
    rng = np.random.default_rng(seed)
    cases = []
    for instruction in instructions:
        memory = {}
        for operand in instruction.operands():
            memory[operand.buffer] = sample(operand.buffer, rng)
        found = instruction.reference(*arrays_of(instruction, memory))
        results = found if isinstance(found, tuple) else (found,)
        before = [memory[o.buffer] for o in instruction.operands()]
        after = [
            np.asarray(r).astype(b.type.dtype.numpy)
            for r, b in zip(results, instruction.outputs(), strict=True)
        ]
        cases.append((instruction, before, after))
    if "-m32" in flags and not _has_32_bits(cc):
        pytest.skip(f"{cc} has no 32-bit library")
    build(_program(cases), cc, (*STRICT, *flags), run)


@cache
def _has_32_bits(cc: str) -> bool:
    """Tell whether a host compiler can link for 32 bits."""
    try:
        build("int main(void)\n{\n    return 0;\n}\n", cc, ("-m32",), True)
    except AssertionError:
        return False
    return True


def sample(buffer: Any, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    if buffer.data is not None:
        return np.asarray(buffer.data)
    dtype = buffer.type.dtype
    if dtype.kind == "float":
        return rng.standard_normal(buffer.type.shape).astype(dtype.numpy)
    low, high = (0, 2) if dtype.kind == "bool" else (max(dtype.low, -100), min(dtype.high, 100))
    return rng.integers(low, high, buffer.type.shape).astype(dtype.numpy)


def build(program: str, cc: str, flags: tuple[str, ...], run: bool) -> None:
    """Compile a program; with `run` it must also end with status 0."""
    with tempfile.TemporaryDirectory() as place:
        source = Path(place) / "program.c"
        source.write_text(program)
        binary = source.with_suffix("")
        include = f"-I{folder('runtime_c') / 'core'}"
        link = ["-lm"] if run else ["-c"]
        made = subprocess.run(
            [cc, *flags, include, str(source), "-o", str(binary), *link],
            capture_output=True,
            text=True,
        )
        assert made.returncode == 0, made.stderr
        if run:
            ran = subprocess.run([str(binary)], capture_output=True, text=True)
            assert ran.returncode == 0, ran.stdout + ran.stderr
