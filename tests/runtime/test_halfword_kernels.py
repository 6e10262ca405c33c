"""Kernels of Armv6-M compute what the instructions say, to the bit, and stay in their memory;
weights that would make them wrong are refused."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import c_calls
import numpy as np
import pytest
from dsp_layers import Layer, bound, conv, dense, expected_of, feeds_of, function_of, unit_of

from glowmcu.emit.unit import CodeUnit
from glowmcu.instr.function import Function
from glowmcu.targets.board import board
from glowmcu.targets.kernel import Kernel
from glowmcu.targets.select import select, verdicts
from glowmcu.targets.target import target
from glowmcu.verify.board import run_all_on_board

RUNTIME = Path(__file__).resolve().parents[2] / "runtime_c"
M0 = target("cortex-m0")
SAME = {"pads": (1, 1, 1, 1)}
LAYERS = [
    conv((5, 5, 16), 8),
    conv((1, 1, 3), 1),
    conv((1, 17, 13), 3),
    conv((2, 3, 2), 6),
    conv((2, 2, 66), 17),
    conv((3, 1, 100), 7, weights="extreme"),
    conv((3, 5, 16), 8, clamp=(0.0, 2.0)),
    conv((3, 3, 20), 8, weights="even"),
    conv((3, 3, 4), 4, batch=3),
    conv((6, 6, 3), 8, 3, **SAME),
    conv((7, 7, 3), 9, 3, strides=(2, 2)),
    conv((5, 7, 1), 4, (4, 3), pads=(2, 1, 1, 1)),
    conv((5, 5, 5), 6, 3, strides=(3, 3), pads=(2, 1, 0, 2)),
    conv((6, 6, 2), 5, 2, strides=(1, 2), batch=2),
    conv((7, 6, 6), 4, 3, pads=(2, 2, 2, 2), dilations=(2, 2), zero_point=127),
    conv((2, 2, 3), 5, 5, pads=(4, 4, 4, 4), zero_point=-128),
    dense(1, 64, 12),
    dense(3, 9, 7),
    dense(1, 1, 1),
    dense(2, 130, 2, weights="extreme"),
    dense(1, 67, 5, clamp=(-2.0, 2.0)),
]


def offered(function: Function) -> Iterator[Kernel]:
    (instruction,) = function.instructions
    for kernel in instruction.kernels:
        if kernel.folder == "armv6m" and not kernel.accepts(instruction):
            yield kernel


def every_unit() -> tuple[list[CodeUnit], list[Any], list[Any]]:
    units, feeds, expected = [], [], []
    for number, layer in enumerate(LAYERS):
        function = function_of(layer, number)
        kernels = list(offered(function))
        assert kernels, layer
        given = feeds_of(layer, number)
        for kernel in kernels:
            name = f"n{number}_{kernel.symbol}"
            units.append(unit_of(bound(function, kernel), name, number % 2 == 0, M0))
            feeds.append(given)
            expected.append(expected_of(function, given))
    return units, feeds, expected


@pytest.mark.qemu
@pytest.mark.parametrize("optimize", ["-O0", "-O3"])
def test_assembly_is_exact(optimize: str, qemu: None) -> None:
    units, feeds, expected = every_unit()
    runs = run_all_on_board(units, board("mps2-an385"), feeds, optimize=optimize, timeout=120)
    wrong = [
        unit.name
        for unit, run, wants in zip(units, runs, expected, strict=True)
        for found, want in zip(run.outputs, wants, strict=True)
        if not np.array_equal(found["y"], want)
    ]
    assert not wrong


@pytest.mark.cc
def test_kernels_stay_in_their_memory(cc: str, tmp_path: Path) -> None:
    """The same in C on the host, on blocks of exactly the sizes that it may touch."""
    body, data, expected, symbols = [], b"", [], set()
    for number, layer in enumerate(LAYERS):
        function = function_of(layer, number)
        (instruction,) = function.instructions
        feeds = feeds_of(layer, number)[:1]
        for kernel in offered(function):
            assert kernel.pack
            (packed,) = kernel.pack(instruction)
            members = ", ".join(str(v) for v in instruction.attributes().values())
            sizes = (instruction.x.nbytes, packed.data.nbytes)  # type: ignore[attr-defined]
            size = instruction.y.nbytes  # type: ignore[attr-defined]
            symbols.add(kernel.symbol)
            body.append(
                f"{{ static const {kernel.symbol}_t p = {{{members}}};\n"
                f"void *x = block({sizes[0]}, 1), *w = block({sizes[1]}, 1);\n"
                f"void *y = block({size}, 0), *s = block({kernel.scratch(instruction)}, 0);\n"
                f"{kernel.symbol}(&p, y, x, w, s); fwrite(y, 1, {size}, stdout);\n"
                "free(x); free(w); free(y); free(s); }"
            )
            data += feeds[0]["x"].tobytes() + packed.data.tobytes()
            expected.append(expected_of(function, feeds)[0])
    includes = [f'#include "{s}.h"' for s in sorted(symbols)]
    lines = ["#include <stdio.h>", "#include <stdlib.h>", *includes, BLOCK]
    lines += ["int main(void)", "{", *body, "return 0;", "}", ""]
    (tmp_path / "main.c").write_text("\n".join(lines))
    folder = RUNTIME / "src" / "armv6m"
    flags = [*c_calls.STRICT, *c_calls.SANITIZE, "-O1", f"-I{RUNTIME / 'core'}", f"-I{folder}"]
    sources = [str(folder / f"{s}.c") for s in sorted(symbols)]
    command = [cc, *flags, "main.c", *sources, "-o", "run"]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr[:4000]
    ran = subprocess.run(["./run"], cwd=tmp_path, input=data, capture_output=True)
    assert ran.returncode == 0, ran.stderr.decode()[:4000]
    place = 0
    for want in expected:
        found = np.frombuffer(ran.stdout, np.int8, want.size, place).reshape(want.shape)
        np.testing.assert_array_equal(found, want)
        place += want.size


BLOCK = """
static void *block(size_t size, int filled)
{
    void *p = malloc(size);
    if (filled && fread(p, 1, size, stdin) != size) {
        exit(2);
    }
    if (!filled) {
        memset(p, 0xA5, size);
    }
    return p;
}
"""


@pytest.mark.parametrize(
    ("layer", "reason"),
    [
        (conv((3, 3, 16), 8, weights="odd"), "-128"),
        (conv((3, 3, 600), 8, weights="extreme"), "2^23"),
        (dense(1, 16, 4, scale=2000.0), "scale"),
        (replace(conv((4, 4, 8), 8, groups=2), w=(8, 1, 1, 4)), "groups"),
    ],
)
def test_what_would_be_wrong_is_refused(layer: Layer, reason: str) -> None:
    function = function_of(layer, 1)
    assert not list(offered(function))
    chosen = select(function.instructions[0], M0)
    assert chosen.folder == "c99"
    assert reason in " ".join(
        why for _, why in verdicts(function.instructions[0], M0, "balanced", chosen)
    )
