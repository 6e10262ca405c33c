"""Run networks' C under the address and undefined-behaviour sanitizers, as one program."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from glowmcu.core.packing import loaded
from glowmcu.core.types import Array
from glowmcu.emit.unit import CodeUnit
from glowmcu.errors import VerificationError
from glowmcu.verify.host import compile_files, find_compiler, fitting

_SANITIZE = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
_HEAD = """\
#include <stdio.h>
#include <stdlib.h>
{includes}

static void *block(size_t size)
{{
    void *found = malloc(size ? size : 1);
    if (found == NULL) {{
        abort();
    }}
    return found;
}}
"""
_NETWORK = """
static int network{number}(FILE *in, FILE *out)
{{
    {name}_arena *arena = aligned_alloc({align}, sizeof(*arena));
    int status = arena == NULL;
    if (status == 0) {{
        {name}_init(arena);
    }}
    for (long sample = 0; status == 0 && sample < {samples}; sample++) {{
{body}
    }}
    free(arena);
    return status;
}}
"""
_MAIN = """
int main(int argc, char **argv)
{{
    FILE *in = fopen(argv[argc - 2], "rb");
    FILE *out = fopen(argv[argc - 1], "wb");
    int status = in == NULL || out == NULL;
{calls}
    return status != 0 || fclose(out) != 0 || fclose(in) != 0;
}}
"""
Samples = Sequence[Mapping[str, Array]]


def run_sanitized(
    unit: CodeUnit, feeds: Samples, *, compiler: str = "", optimize: str = "-O2"
) -> list[dict[str, Array]]:
    """Run samples with sanitizers, every tensor in a heap block of exactly its size.

    Raises VerificationError with the sanitizer's words for the first fault.
    """
    return run_all_sanitized([(unit, feeds)], compiler=compiler, optimize=optimize)[0]


def run_all_sanitized(
    networks: Sequence[tuple[CodeUnit, Samples]], *, compiler: str = "", optimize: str = "-O2"
) -> list[list[dict[str, Array]]]:
    """Run networks of different names one after the other in one program, as `run_sanitized`."""
    with tempfile.TemporaryDirectory(prefix="glowmcu-") as name:
        folder = Path(name)
        files = {
            n: text
            for unit, _ in networks
            for n, text in unit.files.items()
            if n.endswith((".c", ".h"))
        }
        files["sanitized_main.c"] = _program(networks)
        sources = [n for n in files if n.endswith(".c")]
        flags = ["-std=c11", optimize, "-ffp-contract=off", *_SANITIZE]
        compile_files(find_compiler(compiler), flags, files, sources, folder / "program")
        with (folder / "in").open("wb") as stream:
            for unit, feeds in networks:
                for sample in feeds:
                    for slot in unit.inputs:
                        stream.write(fitting(sample, slot).tobytes())
        done = subprocess.run(
            ["./program", "in", "out"], cwd=folder, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise _fault(networks, done.stderr, done.returncode)
        data = memoryview((folder / "out").read_bytes())
        return _read(networks, data)


def _fault(
    networks: Sequence[tuple[CodeUnit, Samples]], text: str, status: int
) -> VerificationError:
    """Return what the sanitizers say, of the network that said last that it starts."""
    started = [n.removeprefix("running ") for n in text.splitlines() if n.startswith("running ")]
    unit = networks[int(started[-1])][0].name if started else networks[0][0].name
    lines = [n for n in text.splitlines() if "ERROR" in n or "error" in n]
    return VerificationError(
        f"the network {unit} failed under the sanitizers",
        why="\n         ".join(lines[:3]) or f"status {status}",
    )


def _program(networks: Sequence[tuple[CodeUnit, Samples]]) -> str:
    includes = "\n".join(f'#include "{unit.name}.h"' for unit, _ in networks)
    parts = [_HEAD.format(includes=includes)]
    parts += [_network(number, *pair) for number, pair in enumerate(networks)]
    calls = [
        line
        for number in range(len(networks))
        for line in (
            f'    fputs("running {number}\\n", stderr);',
            f"    status = status != 0 || network{number}(in, out) != 0;",
        )
    ]
    return "".join([*parts, _MAIN.format(calls="\n".join(calls))])


def _network(number: int, unit: CodeUnit, feeds: Samples) -> str:
    lines = []
    for slot in unit.inputs:
        size = slot.type.nbytes
        lines += [f"{slot.type.c} *{slot.id} = block({size});"]
        lines += [f"status |= fread({slot.id}, 1, {size}, in) != {size};"]
    lines += [f"{s.type.c} *{s.id} = block({s.type.nbytes});" for s in (*unit.outputs, *unit.work)]
    names = "".join(f", {s.id}" for s in unit.passed)
    lines.append(f"status |= {unit.name}_run(arena{names}) != 0;")
    for slot in unit.outputs:
        size = slot.type.nbytes
        lines += [f"status |= fwrite({slot.id}, 1, {size}, out) != {size};"]
    lines += [f"free({s.id});" for s in unit.passed]
    body = "\n".join(f"        {line}" for line in lines)
    return _NETWORK.format(
        number=number, name=unit.name, align=unit.arena_align, samples=len(feeds), body=body
    )


def _read(
    networks: Sequence[tuple[CodeUnit, Samples]], data: memoryview
) -> list[list[dict[str, Array]]]:
    found: list[list[dict[str, Array]]] = []
    start = 0
    for unit, feeds in networks:
        found.append([{} for _ in feeds])
        for outputs in found[-1]:
            for slot in unit.outputs:
                piece = np.frombuffer(data, np.uint8, slot.type.nbytes, start)
                outputs[slot.name] = loaded(piece.copy(), slot.type)
                start += slot.type.nbytes
    return found
