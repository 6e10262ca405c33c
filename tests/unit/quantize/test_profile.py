"""Profiles as files: nothing is lost, and those of other networks are refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from glowmcu.core.types import Array
from glowmcu.errors import GlowmcuError
from glowmcu.graph.graph import Graph, Value, apply, constant
from glowmcu.graph.printer import dump
from glowmcu.ops.base import f32
from glowmcu.ops.dense import Dense
from glowmcu.ops.softmax import Softmax
from glowmcu.quantize import Settings, load_profile, measure, quantize, save_profile
from glowmcu.quantize.profile import graph_hash


def network(scale: float = 1.0) -> Graph:
    rng = np.random.default_rng(0)
    x = Value("x", f32(1, 6))
    for name, size in (("a", 8), ("b", 5)):
        shape = (size, x.shape[1])
        w = constant(f"w{name}", (rng.normal(0, scale, shape)).astype(np.float32))
        x = apply(Dense(clamp=(0.0, np.inf)), x, w, name="same").output
    start = x.producer.inputs[0].producer.inputs[0]  # type: ignore[union-attr]
    assert start is not None
    return Graph("net", (start,), (apply(Softmax(), x, name="y").output,), ("y",))


def samples(count: int = 9) -> list[dict[str, Array]]:
    rng = np.random.default_rng(1)
    return [{"x": rng.normal(0, 1, (1, 6)).astype(np.float32)} for _ in range(count)]


def test_it_survives_the_file(tmp_path: Path) -> None:
    graph = network()
    profile = measure(graph, samples(), Settings())
    assert len(profile.observed) == 4
    save_profile(profile, tmp_path / "p.json")
    again = load_profile(tmp_path / "p.json", graph)
    first = quantize(graph, samples(), Settings(observer="mse"), profile=profile)
    second = quantize(graph, samples(), Settings(observer="mse"), profile=again)
    assert dump(first) == dump(second)
    without = quantize(graph, [], Settings(), profile=again)
    assert without.inputs[0].type == quantize(graph, samples()).inputs[0].type
    content = json.loads((tmp_path / "p.json").read_text())
    assert content["tool"].startswith("glowmcu ")
    assert content["samples"] == 9
    assert content["values"][0]["name"] == "x"
    assert sum(content["values"][0]["histogram"]) == 9 * 6


def test_the_hash_is_of_numbers_and_structure() -> None:
    assert graph_hash(network()) == graph_hash(network())
    assert graph_hash(network()) != graph_hash(network(2.0))


def test_a_profile_of_another_network_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    save_profile(measure(network(), samples(), Settings()), path)
    with pytest.raises(GlowmcuError, match="of another network") as caught:
        load_profile(path, network(2.0))
    assert "--shape" in str(caught.value)
    path.write_text(path.read_text().replace('"tool": "glowmcu ', '"tool": "glowmcu 9'))
    with pytest.raises(GlowmcuError, match=r"9[\d.]+ made the profile"):
        load_profile(path, network(2.0))


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", '{"format": 2}', '{"format": 1, "values": [{"name": "x"}]}', "\x00\xff"],
)
def test_damaged_files(tmp_path: Path, text: str) -> None:
    path = tmp_path / "p.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(GlowmcuError, match="is not a profile"):
        load_profile(path, network())
    with pytest.raises(GlowmcuError, match="cannot read"):
        load_profile(tmp_path / "none.json", network())
    with pytest.raises(GlowmcuError, match="cannot write"):
        save_profile(measure(network(), samples(), Settings()), tmp_path / "no" / "p.json")
