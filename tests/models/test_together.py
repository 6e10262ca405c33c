"""Several networks in one firmware: one arena in turn, states kept, kernels once."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import glowmcu
from glowmcu.cli import main as command
from glowmcu.core.types import Array
from glowmcu.driver import compile_network
from glowmcu.errors import DoesNotFitError, OptionError
from glowmcu.memory.check import check
from glowmcu.options import Options
from glowmcu.together import Together, compile_together
from glowmcu.verify.board import board
from glowmcu.verify.host import HostLibrary
from glowmcu.verify.image import build_image

WARNINGS = (
    "-std=c99 -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow "
    "-Wdouble-promotion -Werror -ffp-contract=off -I."
).split()


def model(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> graph {text}')


SQUARE = ", ".join(f"{(7 * n % 11 - 5) / 4}" for n in range(64))
NETWORKS = {
    "delay": model(
        "(float[3] x, float[3] a, float[3] b) => (float[3] y, float[3] a2, float[3] b2) "
        "{ y = Sub(x, b) a2 = Neg(x) b2 = Identity(a) }"
    ),
    "window": model(
        "(float[1, 2] v, float[1, 6] past) => (float[1, 1] w, float[1, 6] next) "
        "<int64[1] two = {2}, int64[1] eight = {8}, int64[1] axis = {1}> "
        "{ all = Concat<axis = 1>(past, v) next = Slice(all, two, eight, axis) "
        "w = ReduceMean<axes = [1], keepdims = 1>(all) }"
    ),
    "plain": model(
        "(float[2, 8] p) => (float[2, 8] q) <float[8, 8] m = {" + SQUARE + "}> "
        "{ s = MatMul(p, m) q = MatMul(s, m) }"
    ),
}
STATES = {"a": "a2", "b": "b2", "past": "next"}
OF_EACH = {"delay": {"a": "a2", "b": "b2"}, "window": {"past": "next"}, "plain": {}}
STEPS = 6


def compiled(**options: Any) -> Together:
    chosen = Options(**{"name": ",".join(NETWORKS), "state": STATES, **options})
    return compile_together(list(NETWORKS.values()), chosen, shared_arena=True)


def sequences() -> dict[str, list[tuple[Array, Array]]]:
    """Return for each network what goes in and what comes out where it runs alone."""
    found: dict[str, list[tuple[Array, Array]]] = {}
    chance = np.random.default_rng(2)
    for name, proto in NETWORKS.items():
        alone = compile_network(proto, Options(name=name, state=OF_EACH[name]))
        library, (x,), (y,) = HostLibrary(alone.unit), alone.unit.inputs, alone.unit.outputs
        feeds = [chance.uniform(-1, 1, x.type.shape).astype(np.float32) for _ in range(STEPS)]
        found[name] = [(feed, library.run({x.name: feed})[y.name]) for feed in feeds]
    return found


def program(slots: bool) -> str:
    """Return a main that alternates the networks; it exits with 0 if all give what they gave."""
    lines = ['#include "shared_arena.h"', "#include <string.h>", "static shared_arena arena;"]
    calls = []
    for name, steps in sequences().items():
        for label, arrays in zip("xy", zip(*steps, strict=True), strict=True):
            numbers = ", ".join(f"{v!r}f" for a in arrays for v in a.ravel().tolist())
            size = arrays[0].size
            lines.append(f"static const float {name}_{label}[{STEPS}][{size}] = {{{numbers}}};")
        upper, size = name.upper(), steps[0][1].size
        take = f"{name}_output(&arena.{name})" if slots else "found"
        calls += [
            f"        float found[{upper}_OUTPUT_LEN] = {{0}};",
            f"        bad |= {name}_run(&arena.{name}, {name}_x[n], {'NULL' if slots else 'found'})"
            f" != {upper}_OK;",
            f"        bad |= memcmp({take}, {name}_y[n], sizeof found) != 0;",
        ]
    blocks = []
    for at in range(0, len(calls), 3):
        blocks += ["        {", *calls[at : at + 3], "        }"]
    lines += [
        "int main(void)",
        "{",
        "    int bad = sizeof(shared_arena) != SHARED_ARENA_SIZE;",
        "    memset(&arena, 0xA5, sizeof arena);",
        "    shared_init(&arena);",
        f"    for (int n = 0; n < {STEPS}; n++) {{",
        *blocks,
        "    }",
        "    return bad;",
        "}",
    ]
    return "\n".join(lines) + "\n"


@pytest.mark.cc
@pytest.mark.parametrize("slots", [True, False])
def test_networks_alternate_in_one_program(cc: str, slots: bool, tmp_path: Path) -> None:
    found = compiled()
    found.write(tmp_path)
    assert found.shared is not None
    text = program(slots)
    (tmp_path / "main.c").write_text(text)
    flags = [*WARNINGS, "-Wno-missing-braces", "-fsanitize=address,undefined"]
    sources = sorted(p.name for p in tmp_path.glob("*.c"))
    subprocess.run([cc, *flags, *sources, "-lm", "-o", "p"], cwd=tmp_path, check=True)
    assert subprocess.run(["./p"], cwd=tmp_path, check=False).returncode == 0
    # a network that writes where another one keeps its states is seen
    start = found.shared.scratch
    wrong = f"        memset(arena.plain.bytes + {start - 64}, 1, 128);\n    }}\n    return bad;"
    (tmp_path / "main.c").write_text(text.replace("    }\n    return bad;", wrong))
    flags = [f for f in flags if "sanitize" not in f]
    subprocess.run([cc, *flags, *sources, "-lm", "-o", "p"], cwd=tmp_path, check=True)
    assert subprocess.run(["./p"], cwd=tmp_path, check=False).returncode != 0


@pytest.mark.qemu
@pytest.mark.usefixtures("qemu")
@pytest.mark.parametrize("name", ["mps2-an386", "riscv32"])
def test_networks_alternate_on_a_board(name: str, tmp_path: Path) -> None:
    on = board(name)
    found = compiled(target=on.target)
    unit = replace(found.units[0], files=found.files)
    image = build_image(unit, on, {"main.c": program(True)}, tmp_path)
    config = ["-nographic", "-semihosting-config", "enable=on,target=native", "-kernel", str(image)]
    done = subprocess.run([*on.qemu, *config], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_states_lie_by_themselves() -> None:
    found = compiled()
    shared = found.shared
    assert shared is not None
    kept: list[tuple[int, int]] = []
    for compilation in found.compilations:
        check(compilation.function, compilation.plan)
        for buffer, at in compilation.plan.offsets.items():
            span = (at, at + buffer.nbytes)
            if buffer.kind == "state":
                assert at >= shared.scratch
                assert all(b <= span[0] or span[1] <= a for a, b in kept)
                kept.append(span)
            else:
                assert span[1] <= shared.scratch
    assert len(kept) == 3
    assert shared.size == max(b for _, b in kept)
    assert (
        found.report["arena_bytes"]
        < sum(
            compile_network(p, Options(name=n, state=OF_EACH[n])).plan.size
            for n, p in NETWORKS.items()
        )
        + 8
    )


def test_a_limit_is_that_of_the_whole() -> None:
    size = compiled().shared.size  # type: ignore[union-attr]
    assert compiled(ram_limit=size).shared.size == size  # type: ignore[union-attr]
    with pytest.raises(DoesNotFitError) as caught:
        compiled(ram_limit=size - 1)
    text = str(caught.value)
    assert "network plain: the smallest arena found has 128 bytes, the limit is 127" in text
    assert "'p' 64" in text and "layer 0" in text
    assert f"the states of other networks take 56 of {size - 1} bytes" in text
    reports = [u.report for u in compiled().units]
    flash = sum(r["weights_bytes"] + r["code_bytes_estimate"] for r in reports)
    with pytest.raises(DoesNotFitError, match=f"all networks need about {flash} bytes of flash"):
        compiled(flash_limit=flash - 1)


def test_networks_run_row_by_row_to_leave_room_for_states(shared: Path) -> None:
    kws = shared / "mlperf_tiny" / "models" / "kws_int8.onnx"
    options = Options(name="kws,window", state=OF_EACH["window"], ram_limit=7000)
    found = compile_together([kws, NETWORKS["window"]], options, shared_arena=True)
    assert found.shared is not None and found.shared.size <= 7000
    loose = compile_together(
        [kws, NETWORKS["window"]], replace(options, ram_limit=None), shared_arena=True
    )
    assert loose.shared is not None and loose.shared.size > 7000


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("one,two,ONE", "two networks have the name 'ONE'"),
        ("one,two", "has 2 names for 3 networks"),
        ("one,shared,two", "no network can have the name 'shared'"),
        ("one,two,one_weights", "two networks have a file one_weights.c"),
    ],
)
def test_names_that_clash_are_refused(names: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        compiled(name=names)


def test_options_go_to_the_networks_that_they_name() -> None:
    with pytest.raises(OptionError, match="--state names 'z', which none"):
        compiled(state={"z": "y"})
    symbolic = model("(float[n] x) => (float[n] y) { y = Exp(x) }")
    both = compile_together(
        [symbolic, NETWORKS["plain"]], Options(name="a,b", shapes={"n": (5,)}), shared_arena=True
    )
    assert both.units[0].inputs[0].type.shape == (5,)
    with pytest.raises(OptionError, match="network a: "):
        compile_together([symbolic, NETWORKS["plain"]], Options(name="a,b", shapes={"x": (5, 5)}))


@pytest.mark.cc
def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = []
    for name in ("plain", "window"):
        files.append(str(tmp_path / f"{name}.onnx"))
        onnx.save(NETWORKS[name], files[-1])
    out = tmp_path / "out"

    def run(*arguments: str) -> int:
        with pytest.raises(SystemExit) as end:
            command(list(arguments))
        return int(end.value.code or 0)

    assert run("compile", *files, "-o", str(out), "--shared-arena", "--state", "past=next") == 0
    assert "start with shared_arena.h" in capsys.readouterr().out
    report = json.loads((out / "report.json").read_text())
    assert report["networks"] == ["plain", "window"]
    assert len(list(out.glob("gm_*.c"))) == len({p.name for p in out.glob("gm_*.c")})
    np.savez(tmp_path / "x.npz", p=np.ones((2, 8), np.float32))
    given = ("--input", str(tmp_path / "x.npz"), "--output", str(tmp_path / "y.npz"))
    assert run("run", str(out), *given) == 1
    assert "holds several networks: plain, window" in capsys.readouterr().err
    assert run("run", str(out), *given, "--name", "plain") == 0
    assert run("compile", *files, "-o", str(out), "--ram-limit", "100") == 1
    assert "share one with --shared-arena" in capsys.readouterr().err
    assert run("compile", *files, "-o", str(tmp_path / "own")) == 0
    assert "each its own" in capsys.readouterr().out
    example = (tmp_path / "own" / "example_main.c.txt").read_text()
    (tmp_path / "own" / "main.c").write_text(example)
    for folder in ("own",):
        sources = sorted(p.name for p in (tmp_path / folder).glob("*.c"))
        subprocess.run(["gcc", *WARNINGS, *sources, "-lm"], cwd=tmp_path / folder, check=True)
    (out / "main.c").write_text((out / "example_main.c.txt").read_text())
    sources = sorted(p.name for p in out.glob("*.c"))
    subprocess.run(["gcc", *WARNINGS, *sources, "-lm"], cwd=out, check=True)
    header = '#include "shared_arena.h"\nint main() { static shared_arena a; shared_init(&a); }\n'
    (out / "use.cpp").write_text(header)
    subprocess.run(["g++", "-std=c++11", "-Wall", "-Werror", "-c", "use.cpp"], cwd=out, check=True)


@pytest.mark.cc
def test_from_python_with_self_tests(tmp_path: Path) -> None:
    found = glowmcu.compile_all(
        list(NETWORKS.values()),
        name="delay,window,plain",
        state=STATES,
        shared_arena=True,
        self_test=True,
    )
    found.save(tmp_path)
    calls = " || ".join(f"{n}_self_test(&arena.{n}) != 0" for n in NETWORKS)
    heads = "".join(f'#include "{n}_self_test.h"\n' for n in NETWORKS)
    text = f'#include "shared_arena.h"\n{heads}static shared_arena arena;\n'
    text += f"int main(void)\n{{\n    return {calls};\n}}\n"
    (tmp_path / "main.c").write_text(text)
    sources = sorted(p.name for p in tmp_path.glob("*.c"))
    subprocess.run(["gcc", *WARNINGS, *sources, "-lm", "-o", "p"], cwd=tmp_path, check=True)
    assert subprocess.run(["./p"], cwd=tmp_path, check=False).returncode == 0
    assert [m.report["name"] for m in found.models] == list(NETWORKS)
