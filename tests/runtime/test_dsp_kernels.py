"""Kernels of Arm's DSP extension compute what the instructions say, to the bit, and stay in their
memory; weights that would make them wrong are refused."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import c_calls
import numpy as np
import pytest
from dsp_layers import (
    M4,
    Layer,
    bound,
    conv,
    dense,
    expected_of,
    feeds_of,
    function_of,
    offered,
    unit_of,
)

from glowmcu.emit.unit import CodeUnit
from glowmcu.instr.function import Function
from glowmcu.targets.board import board
from glowmcu.targets.kernel import Kernel, RowKernel, no_scratch
from glowmcu.targets.select import select
from glowmcu.targets.target import Target
from glowmcu.verify.board import run_all_on_board

SUPPORT = Path(__file__).resolve().parent.parent / "support"
RUNTIME = SUPPORT.parent.parent / "runtime_c"
SAME = {"pads": (1, 1, 1, 1)}
TWO = {"strides": (2, 2)}
LAYERS = [
    # pointwise: chunks, odd pixels, tails, small and large K, weights in FPU registers
    conv((5, 5, 64), 64),
    conv((3, 3, 8), 16),
    conv((7, 9, 16), 32),
    conv((4, 5, 32), 12),
    conv((1, 1, 12), 8),
    conv((1, 2, 4), 4),
    conv((3, 3, 7), 5),
    conv((1, 17, 13), 3),
    conv((2, 3, 2), 1),
    conv((1, 3, 100), 6),
    conv((3, 1, 256), 7, weights="extreme"),
    conv((2, 2, 66), 17),
    conv((2, 3, 28), 8),
    conv((3, 3, 40), 9, clamp=(-1.0, 1.5)),
    conv((3, 5, 16), 8, clamp=(0.0, 2.0)),
    conv((3, 3, 20), 8, weights="even"),
    conv((3, 3, 21), 6, weights="odd"),
    conv((3, 3, 4), 4, batch=3),
    conv((3, 5, 8), 8, weights="small", scale=900.0),
    conv((3, 3, 10), 5, weights="small", scale=900.0),
    conv((4, 5, 3), 5, 2, weights="small", scale=900.0),
    dense(2, 11, 6, weights="small", scale=900.0),
    # windows: odd and even widths, strides, channels that make odd rows, tall windows, loops
    conv((6, 6, 3), 8, 3, **SAME),
    conv((7, 7, 3), 9, 3, **TWO),
    conv((5, 7, 1), 4, (4, 3), pads=(2, 1, 1, 1)),
    conv((12, 5, 1), 16, (10, 4), strides=(2, 2), pads=(4, 1, 5, 1)),
    conv((5, 5, 16), 8, 3, **SAME),
    conv((4, 6, 32), 7, 3, pads=(0, 1, 1, 0)),
    conv((4, 4, 56), 4, 3, **SAME, weights="extreme"),
    conv((5, 5, 5), 6, 3, strides=(3, 3), pads=(2, 1, 0, 2)),
    conv((6, 6, 2), 5, 2, strides=(1, 2), batch=2),
    conv((9, 9, 12), 8, 1, **TWO),
    conv((8, 9, 7), 4, 1, **TWO),
    conv((3, 1, 4), 4, 3, **SAME),
    conv((17, 2, 1), 3, (16, 1), pads=(0, 0, 3, 0)),
    conv((3, 4, 9), 3, 3, **SAME, weights="odd", clamp=(-3.0, 3.0), zero_point=-128),
    conv((6, 5, 6), 4, 5, pads=(2, 2, 2, 2), zero_point=127),
    conv((1, 20, 40), 6, (1, 3), pads=(0, 1, 0, 1)),
    conv((5, 5, 24), 4, 4),
    # dense
    dense(1, 64, 12),
    dense(1, 640, 10),
    dense(3, 9, 7),
    dense(1, 1, 1),
    dense(2, 130, 2, weights="extreme"),
    dense(1, 67, 5, clamp=(-2.0, 2.0)),
    dense(1, 128, 6, weights="even"),
]


@cache
def every_unit(processor: Target, step: int) -> tuple[list[CodeUnit], list[Any], list[Any]]:
    """Return C, inputs, expected outputs of layers with every kernel that accepts them."""
    units, feeds, expected = [], [], []
    for number, layer in list(enumerate(LAYERS))[::step]:
        function = function_of(layer, number)
        kernels = list(offered(function, processor))
        assert kernels, layer
        given = feeds_of(layer, number)
        for kernel in kernels:
            name = f"n{number}_{kernel.symbol}"
            share = number % 2 == 0
            units.append(unit_of(bound(function, kernel), name, share, processor))
            feeds.append(given)
            expected.append(expected_of(function, given))
    return units, feeds, expected


def with_first_line(unit: CodeUnit, line: str) -> CodeUnit:
    source = f"{unit.name}.c"
    return replace(unit, files={**unit.files, source: f"{line}\n{unit.files[source]}"})


def check_on_board(
    optimize: str, change: Any = lambda unit: unit, processor: Target = M4, step: int = 1
) -> None:
    units, feeds, expected = every_unit(processor, step)
    runs = run_all_on_board(
        [change(u) for u in units], board("mps2-an386"), feeds, optimize=optimize, timeout=120
    )
    wrong = [
        unit.name
        for unit, run, wants in zip(units, runs, expected, strict=True)
        for found, want in zip(run.outputs, wants, strict=True)
        if not np.array_equal(found["y"], want)
    ]
    assert not wrong


@pytest.mark.qemu
@pytest.mark.parametrize(("optimize", "step"), [("-O3", 1), ("-O0", 4)])
def test_assembly_is_exact(optimize: str, step: int, qemu: None) -> None:
    check_on_board(optimize, step=step)


@pytest.mark.qemu
def test_intrinsics_are_exact(qemu: None) -> None:
    check_on_board("-O1", lambda unit: with_first_line(unit, "#define GM_NO_ASM"), step=2)


@pytest.mark.qemu
def test_a_processor_without_fpu_keeps_its_values_on_the_stack(qemu: None) -> None:
    """The same assembly, compiled for software floating point."""
    flags = ("-mthumb", "-mcpu=cortex-m4", "-mfloat-abi=soft")
    soft = replace(M4, flags=flags, capabilities=frozenset({"arm-dsp"}))
    check_on_board("-O1", processor=soft, step=3)


STRING_H = """
#include <stddef.h>
void *memcpy(void *to, const void *from, size_t count);
void *memset(void *to, int value, size_t count);
"""
MAIN = r"""
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


def host_program(cases: list[tuple[Any, Any, Any]]) -> str:
    """Return C that runs every kernel on blocks of exactly the sizes that it may touch."""
    texts, body = [], []
    for n, (instruction, kernel, pack) in enumerate(cases):
        by_rows = isinstance(kernel, RowKernel)
        template = c_calls._JINJA.get_template(f"instr/{kernel.template}")
        text = template.render(function=f"k{n}", **kernel.view(instruction))
        texts.append(text.replace('#include "gm_raw_product.h"', ""))
        (packed,) = (pack or kernel.pack)(instruction)
        sizes = {
            "x": (instruction.x.nbytes, 1),
            "w": (packed.data.nbytes, 1),
            "y": (instruction.y.nbytes, 0),
        }
        if kernel.scratch is not no_scratch:
            sizes["scratch"] = (kernel.scratch(instruction), 0)
        body.append("    {")
        body += [f"        void *{k} = block({s}, {f});" for k, (s, f) in sizes.items()]
        whole = [f"        k{n}(y, {', '.join(k for k in sizes if k != 'y')});"]
        body += calls_of_rows(n, instruction) if by_rows else whole
        body.append(f"        fwrite(y, 1, {instruction.y.nbytes}, stdout);")
        body += [f"        free({k});" for k in sizes]
        body.append("    }")
    heads = ["<stdio.h>", "<stdlib.h>", '"gm_raw_product.h"']
    includes = [f"#include {h}" for h in heads]
    lines = [*includes, MAIN, *texts, "int main(void)", "{", *body, "    return 0;", "}", ""]
    return "\n".join(lines)


@pytest.mark.cc
def test_kernels_stay_in_their_memory(need: Any, tmp_path: Path) -> None:
    """The intrinsics twin on the host, with intrinsics in portable C, under sanitizers."""
    need("gcc")
    cases, data, expected = [], b"", []
    for number, layer in enumerate(LAYERS):
        function = function_of(layer, number)
        (instruction,) = function.instructions
        feeds = feeds_of(layer, number)[:1]
        for kernel in offered(function):
            assert kernel.pack
            both = [kernel, kernel.row] if kernel.row and layer.x[0] == 1 else [kernel]
            for one in both:
                cases.append((instruction, one, kernel.pack))
                data += feeds[0]["x"].tobytes() + kernel.pack(instruction)[0].data.tobytes()
                expected.append(expected_of(function, feeds)[0])
    (tmp_path / "main.c").write_text(host_program(cases))
    folders = [RUNTIME / "core", RUNTIME / "src" / "arm_dsp", SUPPORT / "fake_acle"]
    flags = [*c_calls.STRICT, *c_calls.SANITIZE, "-O0", "-D__ARM_FEATURE_DSP=1", "-DGM_NO_ASM"]
    flags += ["-Wno-builtin-macro-redefined", *(f"-I{f}" for f in folders)]
    command = ["gcc", *flags, "main.c", "-o", "run"]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr[:4000]
    ran = subprocess.run(["./run"], cwd=tmp_path, input=data, capture_output=True)
    assert ran.returncode == 0, ran.stderr.decode()[:4000]
    place = 0
    for (_, kernel, _), want in zip(cases, expected, strict=True):
        found = np.frombuffer(ran.stdout, np.int8, want.size, place).reshape(want.shape)
        np.testing.assert_array_equal(found, want, err_msg=kernel.symbol)
        place += want.size


def raw_kernels(function: Function) -> list[Kernel]:
    return [k for k in offered(function) if k.template and k.template.startswith("raw_")]


@pytest.mark.parametrize(
    "layer",
    [
        replace(conv((3, 3, 16), 8), weights="both"),
        conv((3, 3, 600), 8, weights="extreme"),
        conv((5, 5, 64), 8, 3, weights="extreme"),
        dense(1, 700, 12, weights="extreme"),
        dense(1, 16, 4, weights="both"),
    ],
)
def test_weights_that_could_be_wrong_are_refused(layer: Layer) -> None:
    function = function_of(layer, 1)
    assert not raw_kernels(function)
    (instruction,) = function.instructions
    choice = select(instruction, M4)
    assert choice.kernel.folder == "c99"
    assert "-128" in " ".join(reason for _, reason in choice.rejected)


def test_a_sum_just_below_the_bound_is_taken() -> None:
    """|A| < 2^23 is proved with the bias and the real range of x: 127 below, 128 above."""
    for inner, taken in ((500, True), (530, False)):
        assert bool(raw_kernels(function_of(dense(1, inner, 4, weights="extreme"), 3))) == taken


@pytest.mark.cross
def test_clang_assembles_every_kernel(need: Any, tmp_path: Path) -> None:
    need("clang")
    cases = []
    for number, layer in enumerate(LAYERS):
        function = function_of(layer, number)
        cases += [(function.instructions[0], kernel, None) for kernel in offered(function)]
    text = host_program(cases).partition("int main(void)")[0].replace(MAIN, "")
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
