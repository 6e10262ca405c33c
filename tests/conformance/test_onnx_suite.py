"""ONNX's official backend suite through generated C: a sample in every run, all of it on demand."""

from __future__ import annotations

import os
import sys
import zlib
from functools import lru_cache
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from glowmcu import onnx_backend
from glowmcu.cli import main
from glowmcu.errors import UnsupportedError

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import onnx_support

WHOLE = bool(os.environ.get("GLOWMCU_WHOLE_SUITE"))
ONE_IN = 1 if WHOLE else 32
PARTS = 4
pytestmark = pytest.mark.cc


@lru_cache(maxsize=1)
def cases() -> list[onnx_support.Case]:
    return onnx_support.everything()


def sample(part: int) -> list[onnx_support.Case]:
    """Return the cases of one part: which ones is decided by their names."""
    chosen = [c for c in cases() if zlib.crc32(c.name.encode()) % (PARTS * ONE_IN) == part]
    small = [c for c in chosen if c.kind != "light"]
    return [c for c in (chosen if WHOLE else small) if c.is_numeric]


@pytest.mark.parametrize("part", range(PARTS))
def test_suite(part: int) -> None:
    known = onnx_support.known_failures()
    outcomes = list(onnx_support.run_cases(sample(part)))
    failed = {o.case.name: f"{o.reason} {o.detail}" for o in outcomes if o.reason}
    assert not {n: r for n, r in failed.items() if n not in known}


def test_a_large_network() -> None:
    """One of the light set in every run, the others with the whole suite."""
    case = next(c for c in cases() if c.name == "test_shufflenet")
    (outcome,) = onnx_support.run_cases([case])
    assert outcome.reason == ""


def test_what_the_page_says() -> None:
    text = onnx_support.PAGE.read_text(encoding="utf-8")
    node = next(line for line in text.splitlines() if line.startswith("| node"))
    right, total = node.split("|")[4].split(",")[0].split(" of ")
    assert int(right) >= 0.99 * int(total)  # the rest: random numbers, image files
    for kind in ("light", "pytorch-converted", "pytorch-operator"):
        row = next(line for line in text.splitlines() if line.startswith(f"| {kind} "))
        assert row.split("|")[4].endswith(", 100.0 % ")


@pytest.mark.parametrize("name", onnx_support.RECORDED)
def test_recorded_results_that_are_not_right(name: str) -> None:
    """Where the page says that a recorded result is wrong, ours is what the operator gives."""
    case = next(c for c in cases() if c.name == name)
    feeds = onnx_support.feeds_of(case, 0)
    (outcome,) = onnx_support.run_cases([case])
    assert outcome.reason.startswith("AssertionError: numbers")
    (got,) = onnx_backend.prepare(case.model).run(feeds)
    if "dft" in name:
        x = np.moveaxis(feeds["x"].astype(np.float64), 1, -2)
        y = np.fft.ifft(x[..., 0] + 1j * x[..., 1])
        want = np.moveaxis(np.stack([y.real, y.imag], -1), -2, 1)
        recorded = onnx_support.outputs_of(case, 0)[0]
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-7)
        assert np.max(np.abs(recorded - want)) > 1e-7
    else:
        (want,) = ReferenceEvaluator(case.model).run(None, feeds)
        np.testing.assert_array_equal(got, want)


def test_run_node() -> None:
    node = helper.make_node("Reshape", ["x", "shape"], ["y"])
    x = np.arange(6, dtype=np.float32)
    (y,) = onnx_backend.run_node(node, [x, np.asarray([2, 3])])
    assert np.array_equal(y, x.reshape(2, 3))


def test_data_dependent_shape() -> None:
    node = helper.make_node("NonZero", ["x"], ["y"])
    (y,) = onnx_backend.run_node(node, [np.asarray([[0, 2], [0, 3]], np.float32)])
    assert y.tolist() == [[0, 1], [1, 1]]


def test_a_fixed_input_that_changes_weights_only() -> None:
    node = helper.make_node("MelWeightMatrix", ["n", "length", "rate", "low", "high"], ["y"])
    names = {
        n: TensorProto.FLOAT if n in ("low", "high") else TensorProto.INT64 for n in node.input
    }
    graph = helper.make_graph(
        [node],
        "mel",
        [helper.make_tensor_value_info(n, t, []) for n, t in names.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [9, 8])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    prepared = onnx_backend.prepare(model)
    for rate in (8192, 4096):
        given = [np.asarray(n) for n in (8, 16, rate)] + [np.float32(0), np.float32(2048)]
        (y,) = prepared.run(given)
        (want,) = ReferenceEvaluator(model).run(None, dict(zip(names, given, strict=True)))
        np.testing.assert_allclose(y, want, rtol=1e-6)


def test_devices() -> None:
    assert onnx_backend.supports_device("CPU")
    assert not onnx_backend.supports_device("CUDA:0")


def test_other_values_are_refused_by_a_sentence() -> None:
    """Every case with strings, sequences, optionals or maps says what it is and what to try."""
    others = [c for c in cases() if not c.is_numeric]
    assert len(others) > 50
    for case in others:
        (values, _), *_ = case.data
        feeds = dict(zip(onnx_backend.inputs_of(case.model), values, strict=False))
        try:
            onnx_support.compile_for(case.model, feeds)
        except UnsupportedError as error:
            problem = error.problems[0]
            assert any(k in problem.what for k in ("string", "sequence", "optional")), case.name
            assert problem.why and problem.hint, case.name
        else:  # what is optional or a sequence is not read
            assert case.name.startswith("test_optional_has_element_empty"), case.name


@pytest.mark.parametrize(
    "name", ["test_split_to_sequence_1", "test_optional_get_element_sequence", "test_string_concat"]
)
def test_the_command_line_says_so_too(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = next(c for c in cases() if c.name == name)
    path = tmp_path / "model.onnx"
    onnx.save(case.model, str(path))
    for command in (["compile", str(path), "-o", str(tmp_path / "out")], ["check", str(path)]):
        with pytest.raises(SystemExit) as stop:
            main(command)
        assert stop.value.code == 1
        printed = "".join(capsys.readouterr())
        assert "try:" in printed and "Traceback" not in printed
    with pytest.raises(UnsupportedError):
        onnx_backend.run_model(case.model, case.data[0][0])
