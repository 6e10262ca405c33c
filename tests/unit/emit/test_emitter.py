"""The emitter: what is written, that it is always the same, that compilers have nothing to say."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import dense_networks as networks
import numpy as np
import pytest

from glowmcu.core.passes import PassRecord
from glowmcu.emit.emitter import ModelInfo, emit
from glowmcu.emit.specialize import specialised_layers
from glowmcu.emit.unit import CodeUnit
from glowmcu.errors import OptionError
from glowmcu.instr.function import Function
from glowmcu.options import Options, Specialize
from glowmcu.targets.target import TARGETS, target

ROOT = Path(__file__).resolve().parents[3]
STRICT = (
    "-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wdouble-promotion -Wundef "
    "-Wcast-align -Wstrict-prototypes -Wmissing-prototypes -Werror -ffp-contract=off"
).split()
HOSTILE = '*/ int x; /* ??/ \\ \n " 你好 ??) //'


def unit_of(
    function: Function,
    machine: str = "host",
    specialize: Specialize = "hot",
    name: str = "net",
    info: ModelInfo | None = None,
) -> CodeUnit:
    return emit(
        function,
        networks.plan_without_reuse(function),
        target(machine),
        Options(name=name, target=machine, specialize=specialize),
        info or ModelInfo("net.onnx", "ab" * 32, ("a note",), (PassRecord("p", {}, 3, 2, 0.1),)),
    )


def hostile(function: Function) -> Function:
    """Return the function with names that try to break out of comments and identifiers."""
    mapping = {b: replace(b, name=f"{b.name}{HOSTILE}") for b in function.buffers()}
    renamed = function.with_buffers(mapping)
    instructions = tuple(
        replace(i, name=f"{HOSTILE}{i.name}")
        for i in renamed.instructions  # type: ignore[type-var]
    )
    return replace(renamed, instructions=instructions, output_names=(HOSTILE,))


@pytest.fixture(params=["int8", "float"])
def function(request: pytest.FixtureRequest) -> Function:
    return networks.dense_chain((10, 20, 7, 7, 60, 5), request.param == "int8")


def test_the_folder_is_flat_and_complete(function: Function) -> None:
    files = unit_of(function).files
    assert {"net.h", "net.c", "net_weights.c", "CMakeLists.txt", "example_main.c.txt"} < set(files)
    assert {"report.json", "report.html", "gm_types.h"} < set(files)
    for text in (t for n, t in files.items() if n.endswith((".c", ".h"))):
        assert set(re.findall(r'#include "(.+)"', text)) <= set(files)
    assert all("/" not in name for name in files)


@pytest.mark.parametrize(("mode", "sources", "cores"), [("none", 1, 0), ("all", 0, 5)])
def test_layers_are_specialised_as_asked(mode: Specialize, sources: int, cores: int) -> None:
    files = unit_of(networks.dense_chain((10, 20, 7, 7, 60, 5), True), specialize=mode).files
    assert sum(1 for n in files if n.startswith("gm_") and n.endswith(".c")) == sources
    assert files["net.c"].count("_core(") == cores


def specialised(widths: tuple[int, ...], optimize: str = "balanced") -> list[int]:
    function = networks.dense_chain(widths, True)
    return sorted(specialised_layers(function, "hot", optimize))  # type: ignore[arg-type]


def test_hot_layers_are_specialised() -> None:
    assert specialised((100, 100, 2, 2, 2, 2)) == [0]


def test_few_cold_layers_are_specialised_to_save_the_general_kernel() -> None:
    assert specialised((100, 100, 2, 2)) == [0, 1, 2]
    assert specialised((100, 100), "size") == [0]


def test_hot_layers_are_not_specialised_for_size() -> None:
    assert specialised((100, 100, 100, 100), "size") == []


def test_equal_layers_share_one_copy_and_one_constant() -> None:
    function = networks.dense_chain((8, 8), True)
    (layer,) = function.instructions
    y2 = replace(function.outputs[0], name="second")
    twin = layer.with_buffers({function.outputs[0]: y2})
    both = replace(
        function,
        instructions=(layer, twin),
        outputs=(*function.outputs, y2),
        output_names=("a", "b"),
    )
    text = unit_of(both).files["net.c"]
    assert text.count("gm_dense_s8_core(") == 1
    assert text.count("extern const int8_t") == 1


def test_the_report_has_what_it_promises(function: Function) -> None:
    unit = unit_of(function)
    report = json.loads(unit.files["report.json"])
    assert report == json.loads(json.dumps(unit.report))
    assert report["arena_bytes"] == unit.arena_size
    assert report["macs"] == sum(layer["macs"] for layer in report["layers"]) > 0
    (x,), (y,) = report["inputs"], report["outputs"]
    assert (x["name"], x["shape"], y["name"]) == ("input", [2, 10], "scores")
    quantized = x["dtype"] == "int8"
    assert (x["scale"] is not None) == quantized
    for key in ("name", "op", "kernel", "macs", "output_bytes", "lifetime", "offset"):
        assert all(key in layer for layer in report["layers"])
    for key in ("weights_bytes", "code_bytes_estimate", "stack_bytes", "lower_bound_bytes"):
        assert report[key] > 0
    assert report["notes"] == ["a note"]
    assert report["weights_bytes"] >= sum(layer["weights_bytes"] for layer in report["layers"]) > 0


def test_the_report_page_is_self_contained_and_safe() -> None:
    function = networks.dense_chain((4, 4), False)
    name = "<script>alert(1)</script>"
    text = unit_of(function, info=ModelInfo(name)).files["report.html"]
    assert "<script" not in text
    assert "http://" not in text.replace("http://www.w3.org", "")
    assert "src=" not in text


def test_bytes_do_not_depend_on_the_hash_seed() -> None:
    code = (
        "import sys, hashlib; sys.path.insert(0, sys.argv[1])\n"
        "import dense_networks as networks, test_emitter\n"
        "unit = test_emitter.unit_of(networks.dense_chain((10, 20, 7), True))\n"
        "print(hashlib.sha256(repr(sorted(unit.files.items())).encode()).hexdigest())\n"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code, str(Path(__file__).parent)],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


def test_no_paths_and_no_dates(function: Function) -> None:
    for text in unit_of(function).files.values():
        assert str(ROOT) not in text
        assert not re.search(r"20\d\d-\d\d-\d\d", text)


def test_a_large_network_is_emitted_quickly() -> None:
    import time

    function = networks.dense_chain((470, 470), True)
    start = time.perf_counter()
    unit_of(function)
    assert time.perf_counter() - start < 1.0


def test_emission_knows_neither_graph_nor_operators() -> None:
    for path in sorted((ROOT / "glowmcu" / "emit").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [a.name for a in node.names] if isinstance(node, ast.Import) else []
            assert not [n for n in names if n.startswith(("glowmcu.ops", "glowmcu.graph"))], path


def test_writing_replaces_all_or_nothing(tmp_path: Path) -> None:
    unit = unit_of(networks.dense_chain((4, 4), False))
    place = tmp_path / "deep" / "out"
    unit.write(place)
    (place / "mine.txt").write_text("keep")
    unit.write(place)
    assert {p.name for p in place.iterdir()} == {*unit.files, "mine.txt"}
    assert (place / "net.c").read_text() == unit.files["net.c"]


def test_an_output_folder_that_cannot_be_written_is_explained(tmp_path: Path) -> None:
    unit = unit_of(networks.dense_chain((4, 4), False))
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(OptionError, match="cannot be written"):
        unit.write(file)
    place = tmp_path / "out"
    (place / "net.h").mkdir(parents=True)
    with pytest.raises(OptionError, match=r"net\.h"):
        unit.write(place)
    assert [p.name for p in place.iterdir()] == ["net.h"]


def compile_all(unit: CodeUnit, folder: Path, compiler: str, *flags: str) -> None:
    unit.write(folder)
    command = [compiler, *STRICT, "-O2", *flags, "-c", *unit.sources]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]


@pytest.mark.cc
@pytest.mark.parametrize("std", ["-std=c99", "-std=c11", "-std=c99 -m32"])
def test_compilers_have_nothing_to_say(
    cc: str, std: str, tmp_path: Path, function: Function
) -> None:
    if "-m32" in std and cc == "clang":
        pytest.skip("gcc -m32 covers 32 bits")
    compile_all(unit_of(hostile(function)), tmp_path, cc, *std.split(), "-DNET_WITH_NAMES")


@pytest.mark.cc
def test_headers_are_cpp(tmp_path: Path, function: Function) -> None:
    unit = unit_of(hostile(function))
    unit.write(tmp_path)
    for header in (n for n in unit.files if n.endswith(".h")):
        done = subprocess.run(
            "g++ -std=c++11 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -x c++ -c "
            "-o /dev/null -".split(),
            input=f'#include "{header}"\n',
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr


@pytest.mark.cross
@pytest.mark.parametrize("machine", ["cortex-m0", "cortex-m4", "cortex-m55", "riscv32"])
def test_cross_compilers_have_nothing_to_say(
    machine: str, tmp_path: Path, function: Function, arm_gcc: str, riscv_gcc: str
) -> None:
    chosen = TARGETS[machine]
    library = ["--specs=picolibc.specs"] if machine == "riscv32" else []
    flags = ["-std=c99", *chosen.flags, *library]
    compile_all(unit_of(function, machine), tmp_path, f"{chosen.compiler}gcc", *flags)


@pytest.mark.cc
def test_the_example_runs(cc: str, tmp_path: Path, function: Function) -> None:
    unit = unit_of(function)
    unit.write(tmp_path)
    (tmp_path / "main.c").write_text(unit.files["example_main.c.txt"])
    flags = [*STRICT, "-std=c99", "-I.", *unit.sources, "main.c", "-lm", "-o", "example"]
    subprocess.run([cc, *flags], cwd=tmp_path, check=True)
    done = subprocess.run(["./example"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.count("scores[") == 10


@pytest.mark.cc
def test_the_layout_is_clang_formats(tmp_path: Path, function: Function) -> None:
    unit = unit_of(function)
    unit.write(tmp_path)
    (tmp_path / ".clang-format").write_text((ROOT / ".clang-format").read_text())
    for name in (n for n in unit.files if n.endswith((".c", ".h"))):
        done = subprocess.run(
            ["clang-format", name], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert done.stdout == unit.files[name], name


@pytest.mark.cc
def test_real_numbers_are_quantized_as_onnx_does(cc: str, tmp_path: Path) -> None:
    import ctypes

    from glowmcu.core.types import dequantize, quantize

    function = networks.dense_chain((4, 4), True)
    unit = unit_of(function)
    unit.write(tmp_path)
    (tmp_path / "q.c").write_text(
        '#include "net.h"\n'
        "int8_t q(float x);\nfloat d(int8_t x);\n"
        "int8_t q(float x) { return net_quantize_input(x); }\n"
        "float d(int8_t x) { return net_dequantize_input(x); }\n"
    )
    subprocess.run([cc, "-shared", "-fPIC", "-o", "q.so", "q.c"], cwd=tmp_path, check=True)
    library = ctypes.CDLL(str(tmp_path / "q.so"))
    library.q.argtypes, library.q.restype = [ctypes.c_float], ctypes.c_int8
    library.d.argtypes, library.d.restype = [ctypes.c_int8], ctypes.c_float
    type_ = function.inputs[0].type
    assert type_.quant
    halves = (np.arange(-300, 300) / 2).astype(np.float32) * np.float32(type_.quant.scale[0])
    rng = np.random.default_rng(0)
    special = np.asarray([np.nan, np.inf, -np.inf, 1e30, -1e30, -0.0], np.float32)
    reals = np.concatenate([halves, rng.normal(0, 4, 500).astype(np.float32), special])
    expected = quantize(reals, type_.quant, type_.dtype)
    assert [library.q(float(r)) for r in reals] == expected.tolist()
    every = np.arange(-128, 128).astype(np.int8)
    assert [library.d(int(v)) for v in every] == dequantize(every, type_.quant).tolist()
