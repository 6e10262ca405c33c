"""Kernels of Arm's DSP extension stay in their memory, and lie over their input where they may.

The intrinsics twin runs on the host, with intrinsics in portable C, under sanitizers; clang
assembles the other one.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import c_calls
import numpy as np
import pytest
from dsp_layers import LAYERS, expected_of, feeds_of, function_of, raw_kernels

from glowmcu.core.types import Array
from glowmcu.targets.kernel import Kernel, Packed, RowKernel, no_scratch

SUPPORT = Path(__file__).resolve().parent.parent / "support"
RUNTIME = SUPPORT.parent.parent / "runtime_c"
STRING_H = """
#include <stddef.h>
void *memcpy(void *to, const void *from, size_t count);
void *memset(void *to, int value, size_t count);
"""
MAIN = r"""
static void *block(size_t size)
{
    void *p = malloc(size);
    memset(p, 0xA5, size);
    return p;
}
static void load(void *p, size_t size)
{
    if (fread(p, 1, size, stdin) != size) {
        exit(2);
    }
}
"""


def calls_of_rows(n: int, i: Any) -> list[str]:
    """Return C that makes y one row after the other from pointers to rows of x."""
    row, out = i.width * i.channels, i.out_width * i.out_channels
    return [
        f"        for (int32_t r = 0; r < {i.out_height}; r++) {{",
        f"            const void *rows[{i.kernel_height}];",
        f"            for (int32_t k = 0; k < {i.kernel_height}; k++) {{",
        f"                const int32_t at = r * {i.stride_height} - {i.pad_top} + k;",
        f"                const int inside = at >= 0 && at < {i.height};",
        f"                rows[k] = inside ? (const int8_t *)x + at * {row} : NULL;",
        "            }",
        f"            k{n}((int8_t *)y + r * {out}, r, rows, w, scratch);",
        "        }",
    ]


@dataclass(frozen=True)
class Case:
    """One call. distance: bytes from x to y in one block, None for blocks of their own."""

    instruction: Any
    kernel: Kernel | RowKernel
    pack: Callable[[Any], tuple[Packed, ...]]
    x: Array
    want: Array
    distance: int | None = None


def cases() -> Iterator[Case]:
    """Yield every layer with every kernel and, where it says how, with y over x."""
    for number, layer in enumerate(LAYERS):
        function = function_of(layer, number)
        (i,) = function.instructions
        feed = feeds_of(layer, number)[0]
        want = expected_of(function, [feed])[0]
        for kernel in raw_kernels(function):
            assert kernel.pack
            yield Case(i, kernel, kernel.pack, feed["x"], want)
            if kernel.row and layer.x[0] == 1:
                yield Case(i, kernel.row, kernel.pack, feed["x"], want)
            for promise in kernel.overlap(i):
                yield Case(i, kernel, kernel.pack, feed["x"], want, promise.low)
            turned = kernel.turned(i)
            for promise in kernel.overlap(turned) if turned else ():
                yield Case(turned, kernel, kernel.pack, feed["x"], want, promise.high)


def blocks(case: Case, scratch: int | None, packed: int) -> tuple[list[str], list[str]]:
    """Return C that makes the operands, and the blocks to free."""
    x, y = case.x.nbytes, case.want.nbytes
    lines, owned = [], ["w"]
    if case.distance is None:
        lines += [f"void *x = block({x});", f"void *y = block({y});"]
        owned += ["x", "y"]
    else:
        distance = max(min(case.distance, x), -y)
        size = max(x, distance + y) - min(0, distance)
        lines.append(f"char *both = block({size});")
        lines.append(f"void *x = both + {max(0, -distance)};")
        lines.append(f"void *y = both + {max(0, distance)};")
        owned.append("both")
    lines += [f"load(x, {x});", f"void *w = block({packed});", f"load(w, {packed});"]
    if scratch is not None:
        lines.append(f"void *scratch = block({scratch});")
        owned.append("scratch")
    return lines, owned


def program(every: list[Case]) -> str:
    """Return C that runs every case on blocks of exactly the sizes that it may touch."""
    texts, body = [], []
    for n, case in enumerate(every):
        kernel = case.kernel
        assert kernel.view
        template = c_calls._JINJA.get_template(f"instr/{kernel.template}")
        text = template.render(function=f"k{n}", **kernel.view(case.instruction))
        texts.append(re.sub(r'#include "gm_\w+\.h"', "", text))
        (packed,) = case.pack(case.instruction)
        scratch = None
        if kernel.scratch is not no_scratch:
            scratch = kernel.scratch(case.instruction)
        lines, owned = blocks(case, scratch, packed.data.nbytes)
        operands = "y, x, w" + (", scratch" if scratch is not None else "")
        call = [f"        k{n}({operands});"]
        body += ["    {", *(f"        {line}" for line in lines)]
        body += calls_of_rows(n, case.instruction) if isinstance(kernel, RowKernel) else call
        body.append(f"        fwrite(y, 1, {case.want.nbytes}, stdout);")
        body += [*(f"        free({k});" for k in owned), "    }"]
    heads = ["<stdio.h>", "<stdlib.h>", '"gm_raw_product.h"']
    includes = [f"#include {h}" for h in heads]
    lines = [*includes, MAIN, *texts, "int main(void)", "{", *body, "    return 0;", "}", ""]
    return "\n".join(lines)


@pytest.mark.cc
def test_kernels_stay_in_their_memory(need: Any, tmp_path: Path) -> None:
    need("gcc")
    every = list(cases())
    data = b"".join(c.x.tobytes() + c.pack(c.instruction)[0].data.tobytes() for c in every)
    (tmp_path / "main.c").write_text(program(every))
    folders = [RUNTIME / "core", RUNTIME / "src" / "arm_dsp", SUPPORT / "fake_acle"]
    flags = [*c_calls.STRICT, *c_calls.SANITIZE, "-O0", "-D__ARM_FEATURE_DSP=1", "-DGM_NO_ASM"]
    command = ["gcc", *flags, *(f"-I{f}" for f in folders), "main.c", "-o", "run"]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr[:4000]
    ran = subprocess.run(["./run"], cwd=tmp_path, input=data, capture_output=True)
    assert ran.returncode == 0, ran.stderr.decode()[:4000]
    place = 0
    for case in every:
        found = np.frombuffer(ran.stdout, np.int8, case.want.size, place)
        wrong = np.flatnonzero(found != case.want.reshape(-1))
        assert not wrong.size, (case.kernel.symbol, case.distance, case.instruction.attributes())
        place += case.want.size


@pytest.mark.cross
def test_clang_assembles_every_kernel(need: Any, tmp_path: Path) -> None:
    need("clang")
    text = program([c for c in cases() if c.distance is None]).partition("int main(void)")[0]
    text = text.replace(MAIN, "")
    text = re.sub(r"#include <std(io|lib)\.h>\n", "", text)
    text = re.sub(r"^static (?:GM_NOINLINE )?void (k\d+)\(", r"void \1(", text, flags=re.MULTILINE)
    (tmp_path / "kernels.c").write_text(text)
    (tmp_path / "string.h").write_text(STRING_H)
    folders = [RUNTIME / "core", RUNTIME / "src" / "arm_dsp", tmp_path]
    flags = "--target=arm-none-eabi -mcpu=cortex-m4 -mfloat-abi=hard -mfpu=fpv4-sp-d16".split()
    flags += ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-ffreestanding", "-c"]
    for extra in (["-O0"], ["-O3", "-fPIC"]):
        command = ["clang", *flags, *extra, *(f"-I{f}" for f in folders), "kernels.c"]
        made = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert made.returncode == 0, made.stderr[:4000]
