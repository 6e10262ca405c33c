"""The MLPerf Tiny networks as C: estimates, exactness on this machine, silent compilers."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from glowmcu.core.types import Array
from glowmcu.driver import Compilation, compile_network
from glowmcu.emit.estimate import measure
from glowmcu.instr.evaluate import evaluate
from glowmcu.options import Options, Specialize
from glowmcu.verify.host import HostLibrary
from glowmcu.verify.sanitize import run_sanitized

NETWORKS = ("ad_int8", "ic_int8", "kws_int8", "vww_int8", "ww_int8", "kws_float", "ic_float")
STRICT = (
    "-std=c99 -O2 -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow "
    "-Wdouble-promotion -Wundef -Wmissing-prototypes -Werror -ffp-contract=off"
).split()


@cache
def compilation(path: Path, target: str, specialize: Specialize = "hot") -> Compilation:
    return compile_network(path, Options(target=target, specialize=specialize))


@pytest.fixture(params=NETWORKS)
def network(request: pytest.FixtureRequest, shared: Path) -> Path:
    path = shared / "mlperf_tiny" / "models" / f"{request.param}.onnx"
    if not path.is_file():
        pytest.skip(f"{path.name} is not among the shared models")
    return path


def feeds_of(found: Compilation) -> dict[str, Array]:
    rng = np.random.default_rng(5)
    feeds = {}
    for buffer in found.function.inputs:
        type_ = buffer.type
        if type_.dtype.is_integer:
            data = rng.integers(type_.dtype.low, type_.dtype.high, type_.shape, endpoint=True)
        else:
            data = rng.standard_normal(type_.shape)
        feeds[buffer.name] = data.astype(type_.dtype.numpy)
    return feeds


@pytest.mark.cc
@pytest.mark.parametrize("specialize", ["none", "hot"])
def test_every_layer_is_exact(network: Path, specialize: Specialize) -> None:
    found = compilation(network, "host", specialize)
    feeds = feeds_of(found)
    layers: list[tuple[Array, ...]] = []
    expected = evaluate(
        found.function,
        feeds,
        found.plan.offsets,
        found.plan.size,
        watch=lambda _i, item, memory: layers.append(
            tuple(memory[b].copy() for b in item.outputs())
        ),
    )
    outputs, traced = HostLibrary(found.unit, trace=True).run_traced(feeds)
    pairs = [*zip(traced, layers, strict=True)]
    pairs.append((tuple(outputs.values()), tuple(expected.values())))
    for got, want in pairs:
        for a, b in zip(got, want, strict=True):
            if b.dtype.kind == "f":
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4 * np.abs(b).max(initial=1))
            else:
                np.testing.assert_array_equal(a, b)


@pytest.mark.cc
@pytest.mark.parametrize(
    "network",
    ["kws_int8", "vww_int8", "ic_int8", "ad_int8", "ww_int8", "ic_float"],
    indirect=True,
)
def test_sanitizers_find_nothing(network: Path) -> None:
    found = compilation(network, "host")
    feeds = feeds_of(found)
    (got,) = run_sanitized(found.unit, [feeds])
    for name, expected in HostLibrary(found.unit).run(feeds).items():
        np.testing.assert_allclose(got[name], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.cc
def test_compilers_have_nothing_to_say(network: Path, cc: str, tmp_path: Path) -> None:
    unit = compilation(network, "host").unit
    unit.write(tmp_path)
    command = [cc, *STRICT, "-c", *unit.sources]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]


@pytest.mark.cross
@pytest.mark.parametrize("target", ["cortex-m0", "cortex-m4", "riscv32"])
@pytest.mark.parametrize("network", ["ad_int8", "kws_int8", "ic_float"], indirect=True)
def test_estimates_lie_above_what_is_measured(
    network: Path, target: str, arm_gcc: str, riscv_gcc: str
) -> None:
    unit = compilation(network, target).unit
    small, fast = measure(unit), measure(unit, "-O2")
    assert small.code <= unit.report["code_bytes_estimate"] <= 4 * small.code
    assert max(small.stack, fast.stack) <= unit.report["stack_bytes"]
    assert 0 <= small.data - unit.report["weights_bytes"] < 0.01 * small.data + 512
