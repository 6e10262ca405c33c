"""Results whose size depends on the data: run and verify give what ONNX Runtime gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator

import glowmcu
from glowmcu.cli import main
from glowmcu.driver import compile_network
from glowmcu.instr.evaluate import evaluate
from glowmcu.options import Options
from glowmcu.verify.host import HostLibrary
from glowmcu.verify.levels import verify_compilation
from glowmcu.verify.reference import Reference

pytestmark = pytest.mark.cc

HEADER = '<ir_version: 8, opset_import: ["" : 18]>\n'
MODELS = {
    "NonZero": "(float[3, 4] x) => (int64[2, N] y) { a = Relu(x) y = NonZero(a) }",
    "Compress": "(float[3, 4] x) => (float[3, N] y) { z = Constant<value_float = 0.1>() "
    "r = ReduceMean<keepdims = 0>(x, a) c = Greater(r, z) y = Compress<axis = 1>(x, c) }",
    "Unique": "(float[3, 4] x) => (float[N] y, int64[12] inverse) { r = Round(x) "
    "y, first, inverse = Unique(r) }",
    "TopK": "(float[3, 4] x, int64[1] k) => (float[3, N] y, int64[3, N] at) { y, at = TopK(x, k) }",
    "NonMaxSuppression": "(float[1, 6, 4] x, float[1, 1, 6] s) => (int64[N, 3] y) "
    "{ y = NonMaxSuppression(x, s, most, overlap, least) }",
}
INITIALIZERS = {
    "Compress": "<int64[1] a = {0}>",
    "NonMaxSuppression": "<int64[1] most = {4}, float[1] overlap = {0.5}, float[1] least = {0.7}>",
}


def model(name: str) -> onnx.ModelProto:
    inputs, body = MODELS[name].split("{", 1)
    weights = INITIALIZERS.get(name, "")
    return onnx.parser.parse_model(f"{HEADER}net {inputs} {weights} {{{body}")


def samples(name: str, count: int) -> list[dict[str, np.ndarray[Any, Any]]]:
    rng = np.random.default_rng(5)
    found = []
    for _ in range(count):
        sample = {"x": rng.normal(size=(3, 4)).astype(np.float32)}
        if name == "TopK":
            sample["k"] = rng.integers(1, 4, 1)
        if name == "NonMaxSuppression":
            corner = rng.uniform(0, 2, (1, 6, 2))
            sample["x"] = np.concatenate([corner, corner + 1.5], -1).astype(np.float32)
            sample["s"] = rng.uniform(size=(1, 1, 6)).astype(np.float32)
        found.append(sample)
    return found


@pytest.mark.parametrize("name", MODELS)
def test_a_run_gives_the_actual_shape(name: str) -> None:
    compiled = glowmcu.compile(model(name), name="net")
    session = onnxruntime.InferenceSession(model(name).SerializeToString())
    shapes = set()
    given = samples(name, 4)
    for sample in given:
        wanted = dict(
            zip([o.name for o in session.get_outputs()], session.run(None, sample), strict=True)
        )
        found = compiled.run(sample)
        for output, want in wanted.items():
            np.testing.assert_array_equal(found[output], want)
        assert found["y_shape"].tolist() == list(wanted["y"].shape)
        shapes.add(wanted["y"].shape)
    assert len(shapes) > 1
    stacked = {n: np.stack([s[n] for s in given]) for n in given[0]}
    together = compiled.run(stacked)["y"]
    singles = [compiled.run(s)["y"] for s in given]
    for all_, one in zip(together, singles, strict=True):
        assert all_.shape == tuple(np.max([s.shape for s in singles], axis=0))
        part = all_[tuple(slice(n) for n in one.shape)]
        np.testing.assert_array_equal(part, one)
        assert np.count_nonzero(all_) == np.count_nonzero(one)


@pytest.mark.parametrize("name", MODELS)
def test_verify_compares_what_is_meant(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = glowmcu.compile(model(name), name="net").compilation
    results = verify_compilation(compiled, samples(name, 3))
    assert all(r.passed for r in results)
    assert all("output y" in r.layers for r in results[:2])

    run = Reference.run

    def shorter(self: Reference, feeds: dict[str, Any]) -> dict[str, Any]:
        found = run(self, feeds)
        return {**found, "y": found["y"][..., :-1]}

    monkeypatch.setattr(Reference, "run", shorter)
    results = verify_compilation(compiled, samples(name, 3))
    assert [r.first for r in results] == ["output y", "output y", None]


def test_the_command_line_cuts_too(tmp_path: Path) -> None:
    path, data, out = tmp_path / "net.onnx", tmp_path / "x.npz", tmp_path / "y.npz"
    onnx.save(model("NonZero"), str(path))
    np.savez(data, x=np.eye(3, 4, dtype=np.float32))
    for command in (
        ["compile", str(path), "-o", str(tmp_path / "c"), "-q"],
        ["run", str(tmp_path / "c"), "--input", str(data), "--output", str(out)],
        ["verify", str(path), "--data", str(data)],
    ):
        with pytest.raises(SystemExit) as stop:
            main(command)
        assert stop.value.code == 0
    assert np.load(out)["y"].tolist() == [[0, 1, 2], [0, 1, 2]]


def test_an_output_may_have_the_name_of_a_companion() -> None:
    text = (
        "net (float[4] x) => (int64[1, N] y, float[4] y_shape) { y = NonZero(x) y_shape = Exp(x) }"
    )
    compiled = glowmcu.compile(onnx.parser.parse_model(HEADER + text))
    found = compiled.run({"x": np.asarray([0, 1, 0, 2], np.float32)})
    assert found["y"].tolist() == [[1, 3]]
    assert found["y_shape"].shape == (4,)
    assert found["y_shape_"].tolist() == [1, 2]


NOT_A_NUMBER = np.array([np.nan, 1, np.nan, -0.0, 0.0, np.inf, -np.inf, 1], np.float32)


@pytest.mark.parametrize("order", [0, 1])
def test_nan_is_one_value_and_the_last(order: int) -> None:
    proto = onnx.parser.parse_model(
        f"{HEADER}net (float[8] x) => (float[N] y, int64[N] f, int64[8] i, int64[N] c) "
        f"{{ y, f, i, c = Unique<sorted = {order}>(x) }}"
    )
    wanted = ReferenceEvaluator(proto).run(None, {"x": NOT_A_NUMBER})
    found = glowmcu.compile(proto, name="net").run({"x": NOT_A_NUMBER})
    for name, want in zip("yfic", wanted, strict=True):
        np.testing.assert_array_equal(found[name], want)


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize(
    "text",
    [
        "y = Unique<axis = 0, sorted = {n}>(x)",
        "z, y = TopK<axis = 0, largest = {n}>(x, k)",
        "z, y = TopK<axis = 1, largest = {n}>(x, one)",
    ],
)
def test_nan_has_a_place_in_every_order(text: str, largest: int) -> None:
    head = f"{HEADER}net (float[8, 2] x) => (float[N, 2] y) "
    if "TopK" in text:
        head = head.replace("float[N, 2] y", "int64[N, M] y")
    weights = "<int64[1] k = {7}, int64[1] one = {2}>"
    proto = onnx.parser.parse_model(f"{head}{weights} {{ {text.replace('{n}', str(largest))} }}")
    compilation = compile_network(proto, Options(name="net"))
    rng = np.random.default_rng(0)
    for _ in range(6):
        x = rng.choice(NOT_A_NUMBER, (8, 2))
        left = evaluate(compilation.function, {"x": x})
        right = HostLibrary(compilation.unit).run({"x": x})
        for name, array in left.items():
            np.testing.assert_array_equal(array, right[name])
        if "TopK" in text:  # numpy takes NaN for the largest number, too
            axis = 0 if "axis = 0" in text else 1
            picked = np.take_along_axis(x, right["y"], axis)
            rising = np.sort(x, axis)
            right_order = np.flip(rising, axis) if largest else rising
            wanted = np.take(right_order, range(right["y"].shape[axis]), axis)
            np.testing.assert_array_equal(picked, wanted)


@pytest.mark.parametrize("kind", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("last", [0, 1])
def test_nan_is_the_extreme_that_is_found(kind: str, axis: int, last: int) -> None:
    op = f"{kind}<axis = {axis}, keepdims = 0, select_last_index = {last}>(x)"
    text = f"(float[6, 3] x) => (int64[N] y) {{ y = {op} }}"
    compiled = glowmcu.compile(onnx.parser.parse_model(f"{HEADER}net {text}"), name="net")
    rng = np.random.default_rng(0)
    for _ in range(8):
        x = rng.choice(NOT_A_NUMBER, (6, 3))
        find = np.argmax if kind == "ArgMax" else np.argmin
        wanted = find(x, axis)
        if last:
            wanted = x.shape[axis] - 1 - find(np.flip(x, axis), axis)
        np.testing.assert_array_equal(compiled.run({"x": x})["y"], wanted)


@pytest.mark.parametrize("pad", [0, 1])
def test_the_place_of_a_maximum_is_in_the_image_and_that_of_nan(pad: int) -> None:
    proto = onnx.parser.parse_model(
        f"{HEADER}net (float[1, 2, 4, 5] x) => (float[N, C, H, W] y, int64[N, C, H, W] i) "
        f"{{ y, i = MaxPool<kernel_shape = [2, 2], pads = [{pad}, {pad}, {pad}, {pad}]>(x) }}"
    )
    compilation = compile_network(proto, Options(name="net"))
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    rng = np.random.default_rng(0)
    for values in (NOT_A_NUMBER, NOT_A_NUMBER[3:], NOT_A_NUMBER[6:7]):
        x = rng.choice(values, (1, 2, 4, 5))
        left = evaluate(compilation.function, {"x": x})
        right = HostLibrary(compilation.unit).run({"x": x})
        for name, array in left.items():
            np.testing.assert_array_equal(array, right[name])
        np.testing.assert_array_equal(x.reshape(-1)[right["i"]], right["y"])
        if not np.isnan(x).any():
            np.testing.assert_array_equal(right["y"], session.run(["y"], {"x": x})[0])
