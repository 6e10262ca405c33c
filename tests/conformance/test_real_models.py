"""Small models of every construct, and networks that people deploy, against recorded results."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

from glowmcu.driver import Compilation, compile_network
from glowmcu.errors import GlowmcuError
from glowmcu.onnx_backend import OPTIONS, compile_for, inputs_of
from glowmcu.verify.extent import cropped
from glowmcu.verify.host import HostLibrary

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from onnx_support import STRICT

SHARED = Path(__file__).parents[3] / "shared"
ONE_STEP = {"H12_qdq_avgpool_ties": 0.051}
"""Integer layers may be one step of the quantization away: ties of averages."""
pytestmark = pytest.mark.cc


def _table(folder: str, name: str) -> Iterator[dict[str, str]]:
    path = SHARED / folder / name
    if path.exists():
        with path.open(encoding="utf-8", newline="") as stream:
            yield from csv.DictReader(stream, delimiter="\t")


CASES = {r["id"]: r["oracle"] for r in _table("cases", "cases.tsv")}
MODELS = [r["file"].removesuffix(".onnx") for r in _table("models_real", "models.tsv")]


def _data(path: Path, kind: str) -> list[np.ndarray]:
    data = np.load(path)
    return [data[f"{kind}_{i}"] for i in range(sum(n.startswith(kind) for n in data.files))]


def _compiled(path: Path) -> tuple[Compilation, dict[str, np.ndarray]]:
    model = onnx.load(str(path))
    feeds = dict(zip(inputs_of(model), _data(path.with_suffix(".npz"), "in"), strict=True))
    options = replace(OPTIONS, stripe=True, name=f"m_{path.stem.replace('.', '_')}")
    compilation, rest = compile_for(model, feeds, options)
    return compilation, dict(rest)


def _check(path: Path, flags: list[str], rtol: float) -> None:
    compilation, feeds = _compiled(path)
    outputs = HostLibrary(compilation.unit, flags=tuple(flags)).run(feeds)
    found = cropped(outputs, compilation.unit.extents)
    names = [o.name for o in compilation.source.graph.output]
    for name, want in zip(names, _data(path.with_suffix(".npz"), "out"), strict=True):
        got = found[name]
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        if want.dtype.kind == "f":
            span = float(np.nanmax(np.abs(want), initial=0.0, where=np.isfinite(want)))
            atol = ONE_STEP.get(path.stem, max(1e-6, rtol * span))
            np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)
        else:
            step = 1 if want.dtype.itemsize == 1 and want.dtype.kind != "b" else 0
            assert np.abs(got.astype(np.int64) - want.astype(np.int64)).max(initial=0) <= step


@pytest.mark.skipif(not CASES, reason="the small models are not on this machine")
@pytest.mark.parametrize("name", CASES)
def test_small_model(name: str) -> None:
    path = SHARED / "cases" / f"{name}.onnx"
    if CASES[name] == "refuse":
        with pytest.raises(GlowmcuError):
            compile_network(path, OPTIONS)
    else:
        _check(path, STRICT, 1e-4)


@pytest.mark.skipif(not MODELS, reason="the deployed networks are not on this machine")
@pytest.mark.parametrize("name", MODELS)
def test_deployed_network(name: str) -> None:
    _check(SHARED / "models_real" / f"{name}.onnx", ["-O1", *STRICT[1:]], 2e-4)
