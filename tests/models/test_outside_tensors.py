"""Inputs and outputs in the caller's memory: whole networks, hosts and boards, the C interface."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import glowmcu
from glowmcu import demo
from glowmcu.core.types import Array
from glowmcu.driver import Compilation, compile_network
from glowmcu.emit.export import export
from glowmcu.emit.read import read_unit
from glowmcu.errors import DoesNotFitError, OptionError
from glowmcu.instr.evaluate import evaluate
from glowmcu.memory.check import check
from glowmcu.memory.draw import draw_svg, draw_text
from glowmcu.memory.lifetime import dead_ranges
from glowmcu.options import Options
from glowmcu.verify.board import board, run_on_board
from glowmcu.verify.deliver import deliver
from glowmcu.verify.host import HostLibrary
from glowmcu.verify.levels import verify_compilation
from glowmcu.verify.sanitize import run_sanitized

STRICT = (
    "-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wdouble-promotion "
    "-Wcast-align -Werror -ffp-contract=off -I."
).split()


def model(text: str, opset: int = 17) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> graph {text}')


SQUARE = ", ".join(map(str, range(25)))
SHAPES = {
    "input": "(float[1, 6] x) => (float[1, 6] y) { y = Identity(x) }",
    "view": "(float[2, 6] x) => (float[12] y) <int64[1] s = {12}> { y = Reshape(x, s) }",
    "part": "(float[4, 6] x) => (float[2, 6] y, float[2, 6] z) { t = Relu(x) "
    "y, z = Split<axis = 0>(t) }",
    "constant": "(float[3] x) => (float[3] y, float[2] c) <float[2] k = {1, -2}> "
    "{ y = Neg(x) c = Identity(k) }",
    "twice": "(float[3] x) => (float[3] y, float[3] z, float[3] t) "
    "{ y = Neg(x) z = Identity(y) t = Exp(y) }",
    "both": "(float[2, 3] x, float[2, 3] done, int64[2] row) => (float[4, 3] status, "
    "float[2, 3] r, int64[2] arena) { status = Concat<axis = 0>(x, done) s = Add(x, done) "
    "r = Sigmoid(s) arena = Neg(row) }",
    "deep": "(float[1, 5] x) => (float[1, 5] y) <float[5, 5] w = {" + SQUARE + "}> "
    "{ a = MatMul(x, w) b = MatMul(a, w) c = Softmax(b) y = LogSoftmax(c) }",
    "choice": "(float[3] x) => (float[3] y) <float[1] h = {0}, int64 zero = {0}> "
    "{ t = ReduceMean<keepdims = 0>(x) q = Squeeze(h) c = Less(t, q) y = If(c) <then_branch = g "
    "() => (float[3] a) { a = CumSum(x, zero) }, else_branch = e () => (float[3] b) "
    "{ b = Identity(x) }> }",
}


def outside(proto: Any, name: str = "net", **options: Any) -> Compilation:
    return compile_network(proto, Options(name=name, io="caller", **options))


def feeds_of(compilation: Compilation, seed: int = 0) -> dict[str, Array]:
    chance = np.random.default_rng(seed)
    return {
        s.name: chance.integers(-100, 100, s.type.shape).astype(s.type.dtype.numpy)
        if s.type.dtype.is_integer
        else chance.uniform(-2, 2, s.type.shape).astype(s.type.dtype.numpy)
        for s in compilation.unit.inputs
    }


def assert_sound(compilation: Compilation) -> None:
    """Check the plan; evaluate with garbage in dead bytes, inputs and unwritten outputs too."""
    function, layout = compilation.function, compilation.plan
    check(function, layout)

    def poison(index: int, memory: Array) -> None:
        for start, stop in dead_ranges(function, layout, index):
            memory[start:stop] = 0xA5

    feeds = feeds_of(compilation)
    expected = evaluate(function, feeds)
    got = evaluate(function, feeds, layout.offsets, layout.extent, before=poison)
    for name, array in expected.items():
        np.testing.assert_array_equal(got[name], array)


@pytest.mark.cc
@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("name", SHAPES)
def test_outputs_of_every_kind(name: str, share: bool) -> None:
    proto = model(SHAPES[name])
    compilation = outside(proto, share=share)
    assert_sound(compilation)
    feeds = feeds_of(compilation)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    right = dict(zip([o.name for o in proto.graph.output], session.run(None, feeds), strict=True))
    found = HostLibrary(compilation.unit).run(feeds)
    clean = run_sanitized(compilation.unit, [feeds])[0]
    for output, array in right.items():
        np.testing.assert_allclose(found[output], array, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(found[output], clean[output])
    feeds["x"] = np.abs(feeds["x"])  # the other side of a choice
    right = dict(zip(right, session.run(None, feeds), strict=True))
    for output, array in HostLibrary(compilation.unit).run(feeds).items():
        np.testing.assert_allclose(array, right[output], rtol=1e-5, atol=1e-6)


def test_the_last_layers_work_in_the_output() -> None:
    compilation = outside(model(SHAPES["deep"]))
    assert compilation.plan.size == 20  # a: the others lie in the output
    assert not any(i.is_copy for i in compilation.function.instructions)
    (y,) = compilation.function.outputs
    readers = [
        i for i in compilation.function.instructions if y.root in [b.root for b in i.inputs()]
    ]
    assert len(readers) == 2


@pytest.mark.parametrize(
    ("name", "most"), [("kws", 3456), ("vww", 10752), ("ic", 8960), ("ad", 256), ("ww", 2432)]
)
def test_arenas_without_inputs_and_outputs(shared: Path, name: str, most: int) -> None:
    path = shared / "mlperf_tiny" / "models" / f"{name}_int8.onnx"
    assert outside(path, name, target="cortex-m4", optimize="size").plan.size <= most


@pytest.mark.cc
@pytest.mark.parametrize("name", ["kws", "ad"])
@pytest.mark.parametrize("optimize", ["balanced", "size"])
def test_networks_give_the_same_bits(shared: Path, name: str, optimize: str) -> None:
    path = shared / "mlperf_tiny" / "models" / f"{name}_int8.onnx"
    compilation = outside(path, name, optimize=optimize)
    inside = compile_network(path, Options(name=name, optimize=optimize))  # type: ignore[arg-type]
    assert_sound(compilation)
    assert compilation.plan.size <= inside.plan.size
    feeds = feeds_of(compilation)
    expected = HostLibrary(inside.unit).run(feeds)
    for output, array in HostLibrary(compilation.unit).run(feeds).items():
        np.testing.assert_array_equal(array, expected[output])


@pytest.mark.cc
def test_rows_and_an_output_of_the_caller(shared: Path, cc: str, tmp_path: Path) -> None:
    path = shared / "mlperf_tiny" / "models" / "kws_int8.onnx"
    compilation = outside(path, input="rows", optimize="size", self_test=True)
    assert_sound(compilation)
    feeds = feeds_of(compilation)
    library = HostLibrary(compilation.unit, trace=True)
    found, _ = library.run_traced(feeds)
    for output, array in (
        HostLibrary(compile_network(path, Options(name="net")).unit).run(feeds).items()
    ):
        np.testing.assert_array_equal(found[output], array)
    compilation.unit.write(tmp_path)
    main = """\
#include "net.h"
#include "net_self_test.h"
static net_arena arena;
static NET_ALIGN(NET_OUTPUT_ALIGN) int8_t y[NET_OUTPUT_LEN];
static int8_t row[NET_ROW_LEN];
int main(void)
{
    net_status status = NET_MORE;
    unsigned rows = 0;
    net_begin(&arena);
    if (net_push_row(&arena, row, NULL) != NET_ERR_ARG) {
        return 1;
    }
    for (; status == NET_MORE; rows++) {
        status = net_push_row(&arena, row, y);
    }
    return rows != NET_ROWS || status != NET_OK || net_self_test(&arena) != 0;
}
"""
    assert run(tmp_path, cc, main) == ""


def run(folder: Path, cc: str, main: str, *flags: str) -> str:
    (folder / "main.c").write_text(main)
    sources = sorted(p.name for p in folder.glob("*.c"))
    command = [cc, "-std=c99", *STRICT, *flags, *sources, "-lm", "-o", "program"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    done = subprocess.run(["./program"], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


MAIN = """\
#include "net.h"
#include <stdio.h>
static net_arena arena;
static NET_ALIGN(NET_INPUT_ALIGN) float x[NET_INPUT_LEN + 1];
static NET_ALIGN(NET_OUTPUT_ALIGN) float y[NET_OUTPUT_LEN + 1];
int main(void)
{
    const float *crooked = (const float *)(const void *)((const char *)x + 2);
    net_init(&arena);
    printf("%d %d %d %d %d %d %d", net_run(&arena, x, y), net_run(NULL, x, y),
           net_run(&arena, NULL, y), net_run(&arena, x, NULL), net_run(&arena, crooked, y),
           (int)NET_INPUT_ALIGN, (int)NET_ARENA_SIZE);
    return 0;
}
"""


@pytest.mark.cc
def test_null_and_crooked_memory_are_refused(cc: str, tmp_path: Path) -> None:
    unit = outside(model(SHAPES["deep"])).unit
    unit.write(tmp_path)
    assert run(tmp_path, cc, MAIN) == (f"0 -1 -1 -1 -2 16 {unit.arena_size}")
    assert "net_input(" not in unit.files["net.h"]
    assert "net_output(" not in unit.files["net.h"]
    example = run(tmp_path, cc, unit.files["example_main.c.txt"])
    assert example.count("y[") == 5
    header = '#include "net.h"\nint f(const float *x, float *y);\n'
    header += "int f(const float *x, float *y) { static net_arena a; return net_run(&a, x, y); }\n"
    (tmp_path / "use.cpp").write_text(header)
    flags = ["-std=c++11", *[f for f in STRICT if f != "-Wcast-align"]]
    compiler = {"gcc": "g++", "clang": "clang++"}[cc]
    subprocess.run([compiler, *flags, "-c", "use.cpp"], cwd=tmp_path, check=True)


def test_the_drawing_says_what_is_not_counted() -> None:
    compilation = outside(model(SHAPES["deep"]))
    text = draw_text(compilation.function, compilation.plan, 120)
    assert "in the caller's memory, not counted: x (20 bytes), y (20 bytes)" in text
    assert "in the caller&#x27;s memory" in draw_svg(compilation.function, compilation.plan)
    assert '<td class="n">outside</td>' in compilation.unit.files["report.html"]
    assert re.search(r"caller's +20 +in\.\.\d+ +x", compilation.unit.files["net.c"])


def test_words_of_io() -> None:
    assert Options(io="float,caller").stored_io == "float"
    assert Options(io="caller").stored_io == "int8" and Options(io="caller").caller_io
    assert not Options().caller_io
    with pytest.raises(OptionError, match="there is no 'calller'"):
        glowmcu.compile(model(SHAPES["deep"]), io="calller")
    with pytest.raises(OptionError, match="either int8 or float"):
        glowmcu.compile(model(SHAPES["deep"]), io="int8,float")


def test_a_limit_that_nothing_meets_counts_the_arena_only() -> None:
    with pytest.raises(DoesNotFitError) as caught:
        outside(model(SHAPES["deep"]), ram_limit=4)
    text = str(caught.value)
    assert "smallest arena found has 20 bytes, the limit is 4" in text
    assert "'x' 20" not in text and "'y' 20" not in text


@cache
def digits(**options: Any) -> Compilation:
    found = glowmcu.compile(
        demo.model_path(),
        name="digits",
        quantize="int8",
        calibration=demo.calibration_path(),
        **options,
    )
    return found.compilation


@pytest.mark.cc
def test_real_numbers_in_the_memory_of_the_caller(tmp_path: Path) -> None:
    compilation = digits(io="float,caller")
    assert compilation.unit.inputs[0].type.dtype.is_float
    feeds = feeds_of(compilation)
    expected = HostLibrary(digits(io="float").unit).run(feeds)
    compilation.unit.write(tmp_path)
    for unit in (compilation.unit, read_unit(tmp_path)):
        for name, array in HostLibrary(unit).run(feeds).items():
            np.testing.assert_array_equal(array, expected[name])


@pytest.mark.cc
def test_every_level_and_export(tmp_path: Path) -> None:
    compilation = digits(io="caller", self_test=True)
    data = feeds_of(compilation)
    found = verify_compilation(compilation, {n: a[None] for n, a in data.items()})
    assert all(c.passed for c in found)
    for path, text in export(compilation.unit, "make").items():
        place = tmp_path / Path(path).name
        if place.suffix in (".c", ".h"):
            place.write_bytes(text)
    (tmp_path / "main.c").unlink(missing_ok=True)
    example = next(t for p, t in export(compilation.unit, "make").items() if p.endswith("main.c"))
    assert run(tmp_path, "gcc", example.decode()).startswith("self-test: 0\ndigits_run: 0\n")


@pytest.mark.qemu
@pytest.mark.usefixtures("qemu")
@pytest.mark.parametrize("name", ["mps2-an386", "mps3-an547"])
def test_boards(name: str, tmp_path: Path) -> None:
    on = board(name)
    compilation = digits(io="caller", self_test=True, target=on.target)
    feeds = [feeds_of(compilation, seed) for seed in range(2)]
    host = HostLibrary(digits(io="caller").unit)
    result = run_on_board(compilation.unit, on, feeds, trace=True)
    for sample, outputs in zip(feeds, result.outputs, strict=True):
        for output, array in host.run(sample).items():
            np.testing.assert_array_equal(outputs[output], array)
    elf = tmp_path / "digits.elf"
    deliver(compilation.unit, on, elf)
    config = ["-nographic", "-semihosting-config", "enable=on,target=native", "-kernel", str(elf)]
    done = subprocess.run([*on.qemu, *config], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "digits: passed" in done.stdout + done.stderr


@pytest.mark.cc
@pytest.mark.parametrize("cc", ["gcc", "clang"])
@pytest.mark.parametrize("precision", ["int8", "int16"])
def test_rows_that_are_picked_out_of_a_whole_tensor_have_its_type(precision: Any, cc: str) -> None:
    rng = np.random.default_rng(0)
    weights = ", ".join(f"{v:.2f}" for v in rng.normal(size=108))
    proto = model(
        "(float[1, 3, 16, 8] x) => (float[1, 4, 16, 8] y) "
        f"<float[4, 3, 3, 3] w = {{{weights}}}> {{ y = Conv<pads = [1, 1, 1, 1]>(x, w) }}"
    )
    samples = {"x": rng.normal(size=(4, 1, 3, 16, 8)).astype(np.float32)}
    options = Options(name="net", quantize=precision, io="float,caller", input="rows")
    compilation = compile_network(proto, options, samples)
    assert "const uint8_t *)gm_rows_at" in compilation.unit.files["net.c"]
    feeds = {"x": samples["x"][1]}
    right = evaluate(compilation.function, feeds)
    flags = ("-std=c99", "-O1", *(f for f in STRICT if f != "-I."))
    found = HostLibrary(compilation.unit, compiler=cc, flags=flags).run(feeds)
    np.testing.assert_array_equal(found["y"], right["y"])
