"""Several regions of memory: what goes where, by use, in the C, in the image and on the board."""

from __future__ import annotations

import json
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from glowmcu.cli import main as command
from glowmcu.core.types import Array
from glowmcu.driver import Compilation, compile_network
from glowmcu.emit.read import read_unit
from glowmcu.errors import DoesNotFitError, OptionError
from glowmcu.memory.check import check
from glowmcu.options import Options
from glowmcu.targets.board import board, list_boards
from glowmcu.verify.board import run_on_board
from glowmcu.verify.deliver import deliver
from glowmcu.verify.fit import fit_boards
from glowmcu.verify.host import HostLibrary
from glowmcu.verify.sanitize import run_sanitized

BOARD = """\
summary = "MPS2 AN386 with little memory that is fast"
target = "cortex-m4"
startup = "board_cortex_m.c"
qemu = ["qemu-system-arm", "-M", "mps2-an386"]
stack = 4096
clock = 25000000

[memory]
flash = {{ origin = 0x00000000, length = {flash:#x} }}
ram_fast = {{ origin = 0x20000000, length = {fast:#x} }}
ram = {{ origin = 0x20100000, length = {ram:#x} }}
ram_slow = {{ origin = 0x21000000, length = 0x00800000 }}
flash_slow = {{ origin = 0x21800000, length = 0x00800000 }}
"""


def small(folder: Path, **sizes: int) -> str:
    """Return the file of a board with regions of these sizes."""
    lengths = {"flash": 0x400000, "fast": 0x1000, "ram": 0x400000, **sizes}
    file = folder / "small.toml"
    file.write_text(BOARD.format(**lengths))
    return str(file)


def kws(shared: Path, on: str, **options: Any) -> Compilation:
    path = shared / "mlperf_tiny" / "models" / "kws_int8.onnx"
    chosen = {"name": "kws", "target": "cortex-m4", "board": on, **options}
    return compile_network(path, Options(**chosen))


def feeds_of(compilation: Compilation) -> dict[str, Array]:
    chance = np.random.default_rng(0)
    return {
        s.name: chance.integers(-128, 128, s.type.shape).astype(np.int8)
        for s in compilation.unit.inputs
    }


def sections(image: Path) -> dict[str, tuple[int, int]]:
    """Return (address, size) of the sections that take memory."""
    with image.open("rb") as stream:
        return {
            s.name: (s.header.sh_addr, s.header.sh_size)
            for s in ELFFile(stream).iter_sections()
            if s.header.sh_flags & 2 and s.header.sh_size
        }


def symbols(image: Path) -> dict[str, int]:
    with image.open("rb") as stream:
        table: Any = ELFFile(stream).get_section_by_name(".symtab")
        return {s.name: s.entry.st_value for s in table.iter_symbols()}


@pytest.mark.parametrize(
    ("sizes", "region"),
    [
        ({"fast": 0x4000}, "ram_fast"),
        ({"fast": 0x100}, "ram"),
        ({"fast": 0x100, "ram": 0x2000}, "ram_slow"),
    ],
)
def test_the_arena_goes_to_the_quickest_memory_that_holds_it(
    shared: Path, tmp_path: Path, sizes: dict[str, int], region: str
) -> None:
    unit = kws(shared, small(tmp_path, **sizes)).unit
    assert unit.report["regions"][region] == unit.arena_size
    assert unit.work == ()
    named = f'KWS_ARENA_SECTION KWS_SECTION(".bss.{region}")'
    assert (named in unit.files["kws.h"]) == (region != "ram")


@pytest.mark.cc
@pytest.mark.parametrize(
    ("sizes", "region", "options"),
    [
        ({}, "ram", {}),
        ({"ram": 0x2000}, "ram_slow", {"io": "caller"}),
        ({"fast": 0x800, "ram": 0x2000}, "ram_slow", {"input": "rows", "optimize": "size"}),
    ],
)
def test_an_arena_is_divided_where_the_quickest_memory_does_not_hold_it(
    shared: Path, tmp_path: Path, sizes: dict[str, int], region: str, options: dict[str, Any]
) -> None:
    on = small(tmp_path, **sizes)
    found = kws(shared, on, **options)
    check(found.function, found.plan)
    report, (work,) = found.unit.report, found.unit.work
    assert report["regions"]["ram_fast"] == found.unit.arena_size <= sizes.get("fast", 0x1000)
    assert report["regions"][region] == work.type.nbytes == found.plan.slow_size > 0
    placed = f'#define KWS_SLOW_SECTION KWS_SECTION(".bss.{region}")'
    assert (placed in found.unit.files["kws.h"]) == (region != "ram")
    # what is read again and again stays: the scratch of convolutions
    slow = {b.kind for b in found.plan.slow}
    assert slow <= {"activation", "scratch"}
    host = kws(shared, on, **{**options, "self_test": True, "target": "host"})
    feeds = feeds_of(host)
    expected = HostLibrary(kws(shared, "").for_host().unit).run(feeds)
    traced, _ = HostLibrary(host.unit, trace=True).run_traced(feeds)
    clean = run_sanitized(host.unit, [feeds])[0]
    host.unit.write(tmp_path / "c")
    again = HostLibrary(read_unit(tmp_path / "c")).run(feeds)
    for name, array in expected.items():
        for got in (traced, clean, again):
            np.testing.assert_array_equal(got[name], array)
    main = '#include "kws_self_test.h"\nstatic kws_arena a;\n'
    main += "int main(void)\n{\n    return (int)kws_self_test(&a);\n}\n"
    folder = tmp_path / "c"
    (folder / "main.c").write_text(main)
    sources = sorted(p.name for p in folder.glob("*.c"))
    flags = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-I."]
    subprocess.run(["gcc", *flags, *sources, "-lm", "-o", "p"], cwd=folder, check=True)
    assert subprocess.run(["./p"], cwd=folder, check=False).returncode == 0
    (folder / "main.c").write_text((folder / "example_main.c.txt").read_text())
    subprocess.run(["gcc", *flags, *sources, "-lm", "-o", "p"], cwd=folder, check=True)


def test_the_weights_that_are_read_most_stay_in_fast_flash(shared: Path, tmp_path: Path) -> None:
    on = small(tmp_path, flash=0xA000)
    compilation = kws(shared, on)
    unit = compilation.unit
    report = unit.report["regions"]
    assert report["flash"] <= 0xA000
    lines = unit.files["kws_weights.c"].splitlines()
    slow = {line.split("[")[0].split()[-1] for line in lines if line.startswith("KWS_SLOW_W")}
    fast = {line.split("[")[0].split()[-1] for line in lines if line.startswith("KWS_WEIGHTS_S")}
    assert slow and fast and not slow & fast
    assert '#define KWS_SLOW_WEIGHTS_SECTION KWS_SECTION(".rodata.flash_slow")' in lines
    # a depthwise layer reads each of its bytes a third as often as the convolution after it
    layers = {f"kws_layer{i}_w": x for i, x in enumerate(unit.report["layers"])}
    assert {layers[n]["op"] for n in slow} == {"DepthwiseS8"}
    assert {layers[n]["op"] for n in fast if n in layers} >= {"ConvS8"}
    reads = {n: x["macs"] / x["weights_bytes"] for n, x in layers.items() if x["weights_bytes"]}
    larger = {n for n in fast & set(reads) if layers[n]["weights_bytes"] > 2000}
    assert min(reads[n] for n in larger) >= max(reads[n] for n in slow)


def test_nothing_moves_where_all_fits(shared: Path, tmp_path: Path) -> None:
    unit = kws(shared, small(tmp_path)).unit
    plain = kws(shared, "").unit
    assert unit.files["kws_weights.c"] == plain.files["kws_weights.c"]
    assert "flash_slow" not in unit.report["regions"] and plain.report["regions"] == {}


@pytest.mark.qemu
@pytest.mark.usefixtures("qemu")
def test_an_image_uses_every_region_and_gives_the_same_bits(shared: Path, tmp_path: Path) -> None:
    file = small(tmp_path, flash=0xA000, ram=0x2000)
    on, compilation = board(file), kws(shared, file)
    feeds = feeds_of(compilation)
    (found,) = run_on_board(compilation.unit, on, [feeds]).outputs
    for name, array in HostLibrary(kws(shared, "").for_host().unit).run(feeds).items():
        np.testing.assert_array_equal(found[name], array)
    tested = kws(shared, file, self_test=True)
    image = tmp_path / "kws.elf"
    built = deliver(tested.unit, on, image)
    places, names = sections(image), symbols(image)
    for section, region in ((".ram_slow", "ram_slow"), (".flash_slow", "flash_slow")):
        address, size = places[section]
        assert address in on.memory[region] and size == built.footprint.regions[region] > 0
    assert names["arena"] in on.memory["ram_fast"]
    assert names["found_slow"] in on.memory["ram_slow"]
    weights = [name for name in names if name.startswith("kws_layer")]
    slow = {name for name in weights if names[name] in on.memory["flash_slow"]}
    assert slow and all(names[n] in on.memory["flash"] for n in weights if n not in slow)
    assert built.footprint.regions["flash"] <= on.memory["flash"].length
    assert {p.name for p in built.files} == {
        "kws.elf",
        "kws.bin",
        "kws.hex",
        "kws.flash_slow.bin",
    }
    assert (tmp_path / "kws.bin").stat().st_size <= on.memory["flash"].length
    assert (tmp_path / "kws.flash_slow.bin").stat().st_size == places[".flash_slow"][1]
    config = ["-nographic", "-semihosting-config", "enable=on,target=native", "-kernel", str(image)]
    done = subprocess.run([*on.qemu, *config], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.qemu
@pytest.mark.usefixtures("qemu")
def test_a_board_with_tightly_coupled_memory(shared: Path, tmp_path: Path) -> None:
    on = board("mps3-an547")
    path = shared / "mlperf_tiny" / "models" / "ad_int8.onnx"
    found = compile_network(path, Options(name="ad", target=on.target, board=on.name))
    feeds = feeds_of(found)
    (got,) = run_on_board(found.unit, on, [feeds]).outputs
    for name, array in HostLibrary(found.for_host().unit).run(feeds).items():
        np.testing.assert_array_equal(got[name], array)
    image = tmp_path / "ad.elf"
    regions = deliver(found.unit, on, image).footprint.regions
    assert regions["ram_fast"] >= found.unit.arena_size
    assert sections(image)[".ram_fast"][0] == on.memory["ram_fast"].origin


def test_a_network_that_fits_no_region_is_explained(shared: Path, tmp_path: Path) -> None:
    file = Path(small(tmp_path, fast=0x800, ram=0x1A00))
    text = "\n".join(n for n in file.read_text().splitlines() if not n.startswith("ram_slow"))
    file.write_text(text)
    with pytest.raises(DoesNotFitError) as caught:
        kws(shared, str(file))
    said = str(caught.value)
    assert "does not fit the board small: ram_fast of 2048 bytes is 1838 bytes too small" in said
    assert "the smallest arena found has 3886 bytes, the limit is 2048" in said
    assert "a larger board: disco-f746ng" in said
    assert "'rows of 320 bytes' 3200" in said
    file.write_text(
        text.replace(
            "fast = { origin = 0x20000000, length = 0x800",
            "fast = { origin = 0x20000000, length = 0x1400",
        )
    )
    unit = kws(shared, str(file)).unit
    assert unit.arena_size <= 0x1400 and unit.report["regions"]["ram_fast"] == unit.arena_size


def test_memory_that_needs_a_driver_is_not_used_by_an_image(shared: Path, tmp_path: Path) -> None:
    file = Path(small(tmp_path, flash=0xA000))
    file.write_text(file.read_text().replace("0x21800000,", "0x21800000, setup = true,"))
    unit = kws(shared, str(file)).unit
    with pytest.raises(OptionError, match="in flash_slow, which the application has"):
        deliver(unit, board(str(file)), tmp_path / "x.elf")


def test_fit_says_where_memory_lies(shared: Path, tmp_path: Path) -> None:
    plain = kws(shared, "").unit
    boards = [board(small(tmp_path, flash=0x8000, fast=0x4000)), board("nrf52840-dk")]
    few, all_ = fit_boards(lambda _target: plain, boards)
    assert few.verdict.startswith("yes, arena in ram_fast, ")
    assert few.verdict.endswith(" B of weights in flash_slow")
    assert all_.verdict == "yes"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("summary = 3", "target is missing"),
        ("[memory", "Expected ']'"),
        (BOARD.format(flash=9, fast=9, ram=9).replace("ram_slow", "psram"), "regions of memory"),
        (BOARD.format(flash=9, fast=9, ram=9).replace("cortex-m4", "z80"), "no target 'z80'"),
    ],
)
def test_files_that_do_not_describe_a_board(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text(text)
    with pytest.raises(OptionError, match=message):
        board(str(file))
    with pytest.raises(OptionError, match="cannot read the board"):
        board(str(tmp_path / "none.toml"))


OWN = """summary = "a board"
target = "cortex-m4"
startup = "board_cortex_m.c"
qemu = ["qemu-system-arm"]
stack = 4096
clock = 1000000
[memory]
flash = { origin = 0, length = 65536 }
ram = { origin = 0x20000000, length = 65536 }
ram_slow = { origin = 0x30000000, length = 65536, setup = true }
"""
NUMBERS = ["-1", "0.5", "nan", '"4096"', "true", "[1]", "99999999999999999999"]


def test_every_field_of_a_board_is_checked(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text(OWN)
    assert board(str(file)).clock == 1000000
    wrong = [
        *((f"length = {n}", "length = 65536") for n in NUMBERS),
        *((f"origin = {n}", "origin = 0x20000000") for n in NUMBERS),
        *((f"stack = {n}", "stack = 4096") for n in NUMBERS[:-1]),
        *((f"clock = {n}", "clock = 1000000") for n in (*NUMBERS[:-1], "0")),
        ("length = 0", "length = 65536"),
        ('setup = "*/ x"', "setup = true"),
        ("origin = 0x20000001", "origin = 0x30000000"),
        ("evil = 1", "setup = true"),
        ('qemu = "qemu"', 'qemu = ["qemu-system-arm"]'),
        ("qemu = [3]", 'qemu = ["qemu-system-arm"]'),
        ('startup = "../common/board_cortex_m.c"', 'startup = "board_cortex_m.c"'),
        ('startup = "nothing.c"', 'startup = "board_cortex_m.c"'),
        ("startup = 3", 'startup = "board_cortex_m.c"'),
        ("summary = 3", 'summary = "a board"'),
    ]
    for bad, good in wrong:
        assert good in OWN
        file.write_text(OWN.replace(good, bad, 1))
        with pytest.raises(OptionError, match="does not describe a board") as refused:
            board(str(file))
        assert "Error" not in str(refused.value), bad


def test_regions_of_the_boards_lie_apart() -> None:
    for on in list_boards():
        spans = sorted((r.origin, r.origin + r.length) for r in on.memory.values())
        assert all(a[1] <= b[0] for a, b in pairwise(spans)), on.name


def test_the_command_line(shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(shared / "mlperf_tiny" / "models" / "kws_int8.onnx")

    def run(*arguments: str) -> int:
        with pytest.raises(SystemExit) as end:
            command(list(arguments))
        return int(end.value.code or 0)

    out = str(tmp_path / "out")
    assert run("compile", path, "-o", out, "--board", small(tmp_path, flash=0xA000)) == 0
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["target"] == "cortex-m4" and report["regions"]["flash_slow"] > 0
    assert run("compile", path, path, "-o", out, "--name", "a,b", "--board", "microbit") == 1
    assert "divided for one network only" in capsys.readouterr().err
