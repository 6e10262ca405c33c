"""Run a network's C under the address and undefined-behaviour sanitizers, as a program."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from glowmcu.core.types import Array
from glowmcu.emit.unit import CodeUnit
from glowmcu.errors import VerificationError
from glowmcu.verify.host import FLAGS, compile_files, find_compiler, fitting

_SANITIZE = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
_MAIN = """\
#include "{name}.h"
#include <stdio.h>
#include <stdlib.h>

static void *block(size_t size)
{{
    void *found = malloc(size ? size : 1);
    if (found == NULL) {{
        abort();
    }}
    return found;
}}

int main(int argc, char **argv)
{{
    FILE *in = fopen(argv[argc - 2], "rb");
    FILE *out = fopen(argv[argc - 1], "wb");
    {name}_arena *arena = aligned_alloc({align}, sizeof(*arena));
    int status = in == NULL || out == NULL || arena == NULL;
    if (status == 0) {{
        {name}_init(arena);
    }}
    for (long sample = 0; status == 0 && sample < {samples}; sample++) {{
{body}
    }}
    free(arena);
    return status != 0 || fclose(out) != 0 || fclose(in) != 0;
}}
"""


def run_sanitized(
    unit: CodeUnit, feeds: Sequence[Mapping[str, Array]], *, compiler: str = ""
) -> list[dict[str, Array]]:
    """Run samples with sanitizers, every tensor in a heap block of exactly its size.

    Raises VerificationError with the sanitizer's words for the first fault.
    """
    with tempfile.TemporaryDirectory(prefix="glowmcu-") as name:
        folder = Path(name)
        files = {n: t for n, t in unit.files.items() if n.endswith((".c", ".h"))}
        files["sanitized_main.c"] = _program(unit, len(feeds))
        sources = [n for n in files if n.endswith(".c")]
        flags = [f for f in FLAGS if not f.startswith("-std")] + ["-std=c11", *_SANITIZE]
        compile_files(find_compiler(compiler), flags, files, sources, folder / "program")
        with (folder / "in").open("wb") as stream:
            for sample in feeds:
                for slot in unit.inputs:
                    stream.write(fitting(sample, slot).tobytes())
        done = subprocess.run(
            ["./program", "in", "out"], cwd=folder, capture_output=True, text=True, check=False
        )
        if done.returncode:
            lines = [n for n in done.stderr.splitlines() if "ERROR" in n or "error" in n]
            raise VerificationError(
                f"the network {unit.name} failed under the sanitizers",
                why="\n         ".join(lines[:3]) or f"status {done.returncode}",
            )
        return _read(unit, (folder / "out").read_bytes(), len(feeds))


def _program(unit: CodeUnit, samples: int) -> str:
    lines = []
    for slot in unit.inputs:
        size = slot.type.nbytes
        lines += [f"{slot.type.dtype.c} *{slot.id} = block({size});"]
        lines += [f"status |= fread({slot.id}, 1, {size}, in) != {size};"]
    lines += [f"{s.type.dtype.c} *{s.id} = block({s.type.nbytes});" for s in unit.outputs]
    names = ", ".join(s.id for s in (*unit.inputs, *unit.outputs))
    lines.append(f"status |= {unit.name}_run(arena, {names}) != 0;")
    for slot in unit.outputs:
        size = slot.type.nbytes
        lines += [f"status |= fwrite({slot.id}, 1, {size}, out) != {size};"]
    lines += [f"free({s.id});" for s in (*unit.inputs, *unit.outputs)]
    body = "\n".join(f"        {line}" for line in lines)
    return _MAIN.format(name=unit.name, align=unit.arena_align, samples=samples, body=body)


def _read(unit: CodeUnit, data: bytes, samples: int) -> list[dict[str, Array]]:
    found, start = [], 0
    for _ in range(samples):
        outputs = {}
        for slot in unit.outputs:
            piece = np.frombuffer(data, np.uint8, slot.type.nbytes, start)
            outputs[slot.name] = piece.view(slot.type.dtype.numpy).reshape(slot.type.shape).copy()
            start += slot.type.nbytes
        found.append(outputs)
    return found
