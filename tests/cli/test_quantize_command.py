"""`glowmcu quantize`: files in and out, and a sentence for everything that is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from glowmcu.cli import main


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main([str(a) for a in arguments])
    captured = capsys.readouterr()
    code = stop.value.code
    return int(code) if code else 0, captured.out, captured.err


@pytest.fixture
def model(tmp_path: Path) -> Path:
    w = np.random.default_rng(0).normal(0, 0.5, (6, 4)).astype(np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["h"], name="first"),
            helper.make_node("Tanh", ["h"], ["t"]),
            helper.make_node("Softmax", ["t"], ["y"]),
        ],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 6))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(w, "w")],
    )
    opset = [helper.make_opsetid("", 17)]
    path = tmp_path / "net.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)
    return path


@pytest.fixture
def good(tmp_path: Path) -> Path:
    x = np.random.default_rng(1).normal(0, 1, (20, 6)).astype(np.float32)
    np.savez(tmp_path / "good.npz", x=x)
    return tmp_path / "good.npz"


def test_it_writes_onnx_and_a_profile(
    capsys: pytest.CaptureFixture[str], model: Path, good: Path, tmp_path: Path
) -> None:
    out, profile = tmp_path / "q.onnx", tmp_path / "p.json"
    status, text, _ = run(
        capsys, "quantize", model, "--calibration", good, "-o", out, "--save-profile", profile
    )
    assert status == 0
    assert "written" in text
    onnx.checker.check_model(onnx.load(out), full_check=True)
    assert json.loads(profile.read_text())["samples"] == 20
    status, text, _ = run(
        capsys, "quantize", model, "--profile", profile, "--calibration", good, "--explain"
    )
    assert status == 0
    assert "dB" in text
    assert "20 samples" in text
    status, _, _ = run(capsys, "quantize", model, "--profile", profile, "-o", out, "-q")
    assert status == 0
    folder = tmp_path / "out"
    status, _, _ = run(
        capsys, "compile", model, "--quantize", "int8", "--profile", profile, "-o", folder, "-q"
    )
    assert status == 0
    report = json.loads((folder / "report.json").read_text())
    assert report["quantization"]["calibration_samples"] == 20


def test_a_layer_stays_float(
    capsys: pytest.CaptureFixture[str], model: Path, good: Path, tmp_path: Path
) -> None:
    arguments = ("quantize", model, "--calibration", good, "--keep-float", "first")
    status, _, text = run(capsys, *arguments)
    assert status == 0
    assert "computes in float" in text


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"x": np.full((3, 6), np.nan, np.float32)}, "NaN"),
        ({"x": np.ones((3, 6), np.float32)}, "everywhere"),
        ({"x": np.zeros((0, 6), np.float32)}, "no calibration data"),
        ({"a": np.ones((3, 6)), "b": np.ones(3)}, "no array for input 'x'"),
        ({"x": np.ones((3, 5), np.float32)}, "shape"),
    ],
)
def test_bad_calibration_data(
    capsys: pytest.CaptureFixture[str],
    model: Path,
    tmp_path: Path,
    arrays: dict[str, np.ndarray],  # type: ignore[type-arg]
    sentence: str,
) -> None:
    np.savez(tmp_path / "bad.npz", **arrays)  # type: ignore[arg-type]
    status, _, text = run(capsys, "quantize", model, "--calibration", tmp_path / "bad.npz")
    assert status == 1
    assert sentence in text
    assert "Traceback" not in text


def test_nothing_to_calibrate_with(capsys: pytest.CaptureFixture[str], model: Path) -> None:
    status, _, text = run(capsys, "quantize", model)
    assert status == 1
    assert "needs calibration data" in text


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--max-drop", "1%"), "--max-drop goes with --quantize mixed"),
        (("--labels", "labels.npy"), "--labels goes with --quantize mixed"),
        (("--quantize", "mixed", "--max-drop", "little"), "neither a percentage nor decibels"),
        (("--quantize", "mixed", "--labels", "short.npy"), "do not go with 20"),
        (("--quantize", "mixed", "--labels", "high.npy"), "none of the network's 4 classes"),
        (("--quantize", "mixed", "--labels", "none.npy"), "cannot read labels"),
        (("--quantize", "int16", "--keep-int16", "fisrt"), "no layer 'fisrt' to keep in int16"),
    ],
)
def test_bad_options_of_precision(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    model: Path,
    good: Path,
    tmp_path: Path,
    arguments: tuple[str, ...],
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("short.npy", np.zeros(19, np.int64))
    np.save("high.npy", np.full(20, 4))
    status, _, text = run(capsys, "quantize", model, "--calibration", good, *arguments)
    assert status == 1
    assert sentence in text
    assert "Traceback" not in text


def test_mixed_precision_needs_samples(
    capsys: pytest.CaptureFixture[str], model: Path, good: Path, tmp_path: Path
) -> None:
    profile = tmp_path / "p.json"
    mixed = ("--quantize", "mixed", "--max-drop", "30dB")
    status, _, text = run(capsys, "quantize", model, *mixed)
    assert status == 1
    assert "quantizing to mixed needs calibration data" in text
    run(capsys, "quantize", model, "--calibration", good, "--save-profile", profile, "-q")
    status, _, text = run(capsys, "quantize", model, "--profile", profile, *mixed)
    assert status == 1
    assert "a profile is not enough" in text


def test_the_trade_off_is_shown(
    capsys: pytest.CaptureFixture[str], model: Path, good: Path, tmp_path: Path
) -> None:
    np.save(tmp_path / "labels.npy", np.arange(20) % 4)
    arguments = ("--quantize", "mixed", "--max-drop", "60dB", "--labels", tmp_path / "labels.npy")
    status, text, _ = run(capsys, "quantize", model, "--calibration", good, *arguments, "--explain")
    assert status == 0
    for word in ("int8", "int16", "float", "mixed", "accuracy", "RAM", "flash", "raised layers"):
        assert word in text
    assert "i16" in text or "f32" in text
    status, text, _ = run(capsys, "quantize", model, "--calibration", good, "--quantize", "int16")
    assert status == 0
