"""Mixed precision: the goal, the judge of outputs, and the search for the cheapest assignment."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from test_precision import layers
from test_quantize import samples, through_passes

import glowmcu
import glowmcu.demo
from glowmcu.core import dtypes
from glowmcu.core.types import Array
from glowmcu.errors import GlowmcuError, InvalidModelError, OptionError
from glowmcu.frontend.labels import labels_beside, load_labels
from glowmcu.graph.graph import Graph, Value
from glowmcu.ops.base import f32
from glowmcu.quantize import Settings, measure
from glowmcu.quantize.goal import Goal, Judge
from glowmcu.quantize.ladder import ladder, price
from glowmcu.quantize.precision import named_plan
from glowmcu.quantize.quantize import Quantizer
from glowmcu.quantize.search import Found, Search, outputs_of
from glowmcu.quantize.sensitivity import measure_sensitivity
from glowmcu.quantize.storage import store

DEMO = Path(glowmcu.demo.__file__).parent


@pytest.mark.parametrize("text", ["0.5%", "1 %", "0%", "40dB", "37.5 db", ".5%"])
def test_goals(text: str) -> None:
    goal = Goal.parse(text)
    assert (goal.share is None) != (goal.decibels is None)
    assert Goal.parse(str(goal)) == goal


@pytest.mark.parametrize("text", ["", "0.5", "%", "-1%", "a lot", "1e3dB", "0.5%%"])
def test_what_is_no_goal(text: str) -> None:
    with pytest.raises(OptionError, match="neither a percentage nor decibels"):
        Goal.parse(text)


def judge(goal: str, labels: Array | None = None) -> Judge:
    real = [np.eye(5, dtype=np.float32)[None, i % 5] for i in range(10)]
    return Judge.of(Goal.parse(goal), layers(), real, labels)


def test_what_is_lost() -> None:
    truth = np.arange(10) % 5
    outputs = [np.eye(5, dtype=np.float32)[None, i % 5] for i in range(9)] + [np.eye(5)[None, 0]]
    strict, lenient = judge("5%"), judge("10%")
    found = strict.quality(outputs)
    assert (found.accuracy, found.agreement) == (None, 0.9)
    assert found.sqnr == pytest.approx(10 * math.log10(10 / 2))
    assert (strict.is_met(found), lenient.is_met(found)) == (False, True)
    # with labels only the accuracy counts: one more right makes up for one more wrong
    truth[9] = 0
    found = judge("0%", truth).quality(outputs)
    assert (found.accuracy, found.agreement) == (1.0, 0.9)
    assert judge("0%", truth).is_met(found)
    assert judge("6dB").is_met(found)
    assert not judge("8dB").is_met(found)


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        (np.zeros(9, np.int64), r"shape \(9,\) do not go with 10"),
        (np.zeros((10, 5), np.int64), r"shape \(10, 5\) do not go with 10"),
        (np.zeros(10), "not integers"),
        (np.full(10, 5), "label 5 is none of the network's 5 classes"),
        (np.full(10, -1), "label -1"),
    ],
)
def test_labels_that_do_not_fit(labels: Array, sentence: str) -> None:
    with pytest.raises(InvalidModelError, match=sentence):
        judge("1%", labels)


def test_two_outputs_tell_no_class() -> None:
    one = layers()
    two = Graph("two", one.inputs, one.outputs * 2, ("a", "b"))
    with pytest.raises(OptionError, match="do not tell a class"):
        Judge.of(Goal.parse("1%"), two, [], None)
    found = Judge.of(Goal.parse("10dB"), two, [np.ones(3)], None).quality([np.ones(3)])
    assert found.sqnr == math.inf
    assert found.agreement is None


def test_labels_from_files(tmp_path: Path) -> None:
    wanted = np.array([3, 1, 2])
    np.save(tmp_path / "a.npy", wanted)
    np.savez(tmp_path / "b.npz", x=np.zeros(3), y=wanted)
    np.savez(tmp_path / "c.npz", anything=wanted)
    (tmp_path / "d.txt").write_text("3\n1\n2\n")
    for source in ("a.npy", "b.npz", "c.npz", "d.txt"):
        np.testing.assert_array_equal(load_labels(tmp_path / source), wanted)
    np.testing.assert_array_equal(load_labels([3, 1, 2]), wanted)
    np.savez(tmp_path / "e.npz", x=wanted, z=wanted)
    (tmp_path / "f.txt").write_text("cat dog")
    (tmp_path / "g.npy").write_text("no array")
    for source in ("e.npz", "f.txt", "g.npy", "none.npz"):
        with pytest.raises(InvalidModelError, match="cannot read labels"):
            load_labels(tmp_path / source)


def test_labels_beside_the_samples(tmp_path: Path) -> None:
    inputs = layers().inputs
    x, y = np.zeros((3, 4, 4, 3), np.float32), np.array([1, 2, 3])
    found = labels_beside({"x": x, "y": y}, inputs)
    np.testing.assert_array_equal(found, y)  # type: ignore[arg-type]
    np.savez(tmp_path / "s.npz", x=x, label=y)
    np.testing.assert_array_equal(labels_beside(tmp_path / "s.npz", inputs), y)  # type: ignore[arg-type]
    assert labels_beside({"x": x, "y": x}, inputs) is None
    assert labels_beside([{"x": x}], inputs) is None
    assert labels_beside({"x": x}, inputs) is None


def quantizer(graph: Graph, settings: Settings) -> Quantizer:
    data = samples(graph, 24)
    return Quantizer.of(graph, data, settings, measure(graph, data, settings))


def search(graph: Graph, goal: str, settings: Settings | None = None) -> Found:
    settings = settings or Settings(edges=dtypes.I16)
    found = quantizer(graph, settings)
    real = outputs_of(graph, found.samples)
    by = Judge.of(Goal.parse(goal), graph, real, None)
    return Search(found, by, through_passes, lambda _text: None).run()


def test_rungs_cost_more_and_more() -> None:
    graph = through_passes(layers())
    found = quantizer(graph, Settings())
    base = named_plan(found.real, found.settings)
    storage = store(found.real, found.formats, found.settings, base)
    free = tuple(storage.computed)
    seen = measure_sensitivity(found.real, storage, found.samples[:4], lambda *_: None)
    assert set(seen.weights) == {n for n in free if n.names[0] in ("a", "b", "y")}
    assert all(e > 0 for e in (*seen.activations.values(), *seen.weights.values()))
    # what the last layer gives is rounded once; the others' errors come through the rest
    (last,) = (around for v, around in seen.around.items() if v.name == "y")
    assert {n.names[0] for n in last} == {"y"}
    plans = ladder(base, free, storage, seen)
    prices = [price(plan, free) for plan in plans]
    assert prices == sorted(set(prices))
    assert {plans[-1][n] for n in free} == {"float"}
    assert all(plans[0][n] == "int8" for n in free)


def test_the_cheapest_that_will_do() -> None:
    graph = through_passes(layers())
    easy = search(graph, "15dB")
    assert easy.met
    assert easy.chosen is easy.uniform["int8"]
    least = easy.chosen.quality.sqnr
    hard = search(graph, f"{least + 4}dB")
    assert hard.met
    assert hard.chosen.quality.sqnr >= least + 4
    assert easy.chosen.price < hard.chosen.price < hard.uniform["float"].price
    assert {hard.chosen.plan[n] for n in hard.layers} != {"int8"}
    by = Judge.of(Goal.parse(f"{least + 4}dB"), graph, [], None)
    enough = [t.price for t in hard.uniform.values() if by.is_met(t.quality)]
    assert hard.chosen.price <= min(enough)
    never = search(graph, "500dB")
    assert not never.met


def test_layers_kept_by_name_stay_so() -> None:
    graph = through_passes(layers())
    found = search(graph, "15dB", Settings(keep_float=("b",), keep_int16=("y",)))
    assert {n.names[0]: found.chosen.plan[n] for n in found.layers if n.names[0] in "aby"} == {
        "a": "int8",
        "y": "int16",
    }
    for trial in (*found.uniform.values(), found.chosen):
        kept = {n.names[0]: p for n, p in trial.plan.items() if n.names[0] in "by"}
        assert kept == {"b": "float", "y": "int16"}


def demo(**options: object) -> glowmcu.CompiledModel:
    data = dict(np.load(DEMO / "digits_test.npz"))
    part = {name: array[:80] for name, array in data.items()}
    return glowmcu.compile(DEMO / "digits.onnx", calibration=part, quantize="mixed", **options)


def test_from_python() -> None:
    model = demo(max_drop="52dB")
    record = model.report["quantization"]["mixed"]
    assert record["met"]
    assert [row["precision"] for row in record["trade_off"]] == ["int8", "int16", "float", "mixed"]
    narrow, _, real, chosen = record["trade_off"]
    assert narrow["accuracy"] > 0.9
    assert chosen["sqnr_db"] >= 52 > narrow["sqnr_db"]
    assert narrow["ram_bytes"] < real["ram_bytes"]
    assert narrow["price"] == 1 < chosen["price"] < 4
    assert record["raised"]
    assert any("Mixed precision" in note for note in model.report["notes"])
    stored = {layer["stored"] for layer in model.report["quantization"]["layers"]}
    assert stored > {"i8"}
    with pytest.raises(InvalidModelError, match="do not go with 80"):
        demo(labels=[1, 2, 3])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"quantize": "int8", "max_drop": "1%"}, "--max-drop goes with --quantize mixed"),
        ({"labels": [1]}, "--labels goes with --quantize mixed"),
        ({"quantize": "mixed"}, "needs calibration data"),
        ({"quantize": "mixed", "max_drop": "x"}, "neither a percentage"),
    ],
)
def test_options_that_do_not_go_together(options: dict[str, object], sentence: str) -> None:
    with pytest.raises(GlowmcuError, match=sentence):
        glowmcu.compile(DEMO / "digits.onnx", **options)


def test_classes_of_images_lie_along_the_second_axis() -> None:
    x = layers().inputs[0]
    image = Value("y", f32(1, 4, 3, 3))
    graph = Graph("net", (x, image), (image,), ("y",))
    rng = np.random.default_rng(0)
    real = [rng.normal(0, 1, (1, 4, 3, 3)) for _ in range(2)]
    labels = np.stack([a.argmax(axis=1)[0] for a in real])
    found = Judge.of(Goal.parse("1%"), graph, real, labels).quality(real)
    assert (found.accuracy, found.agreement) == (1.0, 1.0)
    with pytest.raises(InvalidModelError, match="9 places of each"):
        Judge.of(Goal.parse("1%"), graph, real, labels[:, :2])


def test_what_is_not_finite_does_not_count() -> None:
    real = [np.array([[np.nan, 1.0, np.inf, 2.0, 3.0]])]
    found = Judge.of(Goal.parse("1dB"), layers(), real, None)
    assert found.quality([np.array([[0.0, 1.0, 5.0, 2.0, 2.0]])]).sqnr == pytest.approx(
        10 * math.log10(14)
    )
