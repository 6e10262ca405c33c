"""The C interface as a firmware uses it: slots, statuses, hooks, several tensors, two networks."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import dense_networks as networks
import numpy as np
import pytest
from test_emitter import STRICT, hostile, unit_of

from glowmcu.core.types import Array
from glowmcu.instr.evaluate import evaluate
from glowmcu.instr.function import Function
from glowmcu.verify.host import HostLibrary

pytestmark = pytest.mark.cc


def run(folder: Path, cc: str, main: str, *flags: str) -> str:
    (folder / "main.c").write_text(main)
    sources = sorted(p.name for p in folder.glob("*.c"))
    command = [cc, *STRICT, "-std=c99", "-I.", *flags, *sources, "-lm", "-o", "program"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    done = subprocess.run(["./program"], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


def literal(array: Array) -> str:
    return "{" + ", ".join(str(v) for v in array.reshape(-1)) + "}"


@pytest.fixture
def feeds() -> dict[str, Array]:
    return {"input": np.random.default_rng(3).integers(-128, 128, (2, 6)).astype(np.int8)}


def test_slots_and_statuses(cc: str, tmp_path: Path, feeds: dict[str, Array]) -> None:
    function = networks.dense_chain((6, 9, 4), True, "kws")
    unit_of(function, name="kws").write(tmp_path)
    main = """\
#include "kws.h"
#include <stdio.h>
#include <string.h>
static kws_arena arena;
static kws_arena other[2];
int main(void)
{
    static const int8_t input[KWS_INPUT_LEN] = %s;
    static const int shape[KWS_INPUT_RANK] = KWS_INPUT_SHAPE;
    static int8_t output[KWS_OUTPUT_LEN];
    kws_init(&arena);
    kws_status good = kws_run(&arena, input, output);
    memcpy(kws_input(&other[0]), input, sizeof(input));
    kws_status zero_copy = kws_run(&other[0], NULL, NULL);
    int same = memcmp(output, kws_output(&other[0]), sizeof(output)) == 0;
    kws_status missing = kws_run(NULL, input, output);
    kws_status crooked = kws_run((kws_arena *)(void *)(other[0].bytes + 1), input, output);
    memcpy(kws_input(&arena), input, sizeof(input));
    kws_status slots = kws_run(&arena, kws_input(&arena), kws_output(&arena));
    same = same && memcmp(output, kws_output(&arena), sizeof(output)) == 0;
    printf("%%d %%d %%d %%d %%d %%d %%d %%d\\n", good, zero_copy, slots, same,
           missing == KWS_ERR_ARG, crooked == KWS_ERR_ALIGN, shape[0] * shape[1] == KWS_INPUT_LEN,
           sizeof(arena) == KWS_ARENA_SIZE);
    for (size_t i = 0; i < KWS_OUTPUT_LEN; i++) {
        printf("%%d ", output[i]);
    }
    return 0;
}
"""
    status, values = run(tmp_path, cc, main % literal(feeds["input"])).split("\n")
    assert status == "0 0 0 1 1 1 1 1"
    expected = evaluate(function, feeds)["scores"]
    assert [int(v) for v in values.split()] == expected.reshape(-1).tolist()


def test_hooks_and_names(cc: str, tmp_path: Path) -> None:
    unit_of(networks.dense_chain((6, 9, 4), True, "kws"), name="kws").write(tmp_path)
    (tmp_path / "hooks.h").write_text(
        "void begin(int layer);\nvoid end(int layer, const void *arena);\n"
        "#define KWS_HOOK_BEGIN(i) begin(i)\n#define KWS_HOOK_END(i) end(i, arena)\n"
    )
    main = """\
#include "kws.h"
#include "hooks.h"
#include <stdio.h>
static kws_arena arena;
void begin(int layer)
{
    printf("%s:", kws_layer_names[layer]);
}
void end(int layer, const void *where)
{
    printf("%d%d ", layer, where == (const void *)&arena);
}
int main(void)
{
    (void)kws_run(&arena, NULL, NULL);
    return kws_layer_names[KWS_LAYER_COUNT] != NULL;
}
"""
    flags = ("-DKWS_WITH_NAMES", '-DKWS_HOOK_HEADER="hooks.h"')
    assert run(tmp_path, cc, main, *flags) == "/fc0/Gemm:01 /fc1/Gemm:11 "


def test_two_networks_in_one_program(cc: str, tmp_path: Path) -> None:
    for name, widths in (("one", (6, 9, 4)), ("two", (6, 5, 4))):
        folder = tmp_path / name
        unit_of(networks.dense_chain(widths, True, name), "host", "none", name).write(folder)
        for path in folder.glob("gm_*.c"):
            path.rename(folder / f"{name}_{path.name}")
        for path in folder.iterdir():
            path.rename(tmp_path / path.name)
    main = """\
#include "one.h"
#include "two.h"
int main(void)
{
    static one_arena a;
    static two_arena b;
    return one_run(&a, NULL, NULL) != ONE_OK || two_run(&b, NULL, NULL) != TWO_OK;
}
"""
    run(tmp_path, cc, main)


def two_by_two() -> Function:
    """Return a network with two inputs and two outputs, of which two have equal identifiers."""
    a, b = networks.dense_chain((6, 4), True), networks.dense_chain((5, 3), False)
    (x,) = b.inputs
    b = b.with_buffers({x: replace(x, name="in put")})
    return Function(
        "net",
        (*a.inputs, *b.inputs),
        (*a.outputs, *b.outputs),
        ("scores", "Scores"),
        (*a.instructions, *b.instructions),
    )


def test_several_inputs_and_outputs(tmp_path: Path, cc: str) -> None:
    unit = unit_of(two_by_two())
    assert [s.id for s in unit.inputs] == ["input", "in_put"]
    assert [s.id for s in unit.outputs] == ["scores", "scores_2"]
    unit.write(tmp_path)
    for slot in ("net_input_input", "net_input_in_put", "net_output_scores_2"):
        assert f"{slot}(net_arena *arena)" in unit.files["net.h"]
    main = unit.files["example_main.c.txt"]
    assert run(tmp_path, cc, main).count("scores_2[") == 6


def test_several_inputs_compute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    function = two_by_two()
    rng = np.random.default_rng(0)
    feeds = {b.name: networks.stored(b.type, rng) for b in function.inputs}
    got = HostLibrary(unit_of(function)).run(feeds)
    for name, expected in evaluate(function, feeds).items():
        np.testing.assert_allclose(got[name], expected, rtol=1e-5, atol=1e-5)


def test_hostile_names_in_a_program(cc: str, tmp_path: Path) -> None:
    unit = unit_of(hostile(networks.dense_chain((4, 4), True)))
    unit.write(tmp_path)
    run(tmp_path, cc, unit.files["example_main.c.txt"], "-DNET_WITH_NAMES")
