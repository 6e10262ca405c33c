"""glowmcu check and glowmcu ops: what stops a model, what it costs, what is supported."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from glowmcu.cli import main
from glowmcu.show import operator_rows


def _model(path: Path, text: str) -> Path:
    header = '<ir_version: 8, opset_import: ["" : 18]>\n'
    onnx.save(onnx.parser.parse_model(header + text), str(path))
    return path


def _run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    return int(stop.value.code or 0)


def test_every_problem_is_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = """bad (float[4] x) => (float[4] y) {
        a = RandomNormalLike(x)
        b = StringNormalizer(x)
        y = Add(a, b)
    }"""
    assert _run("check", str(_model(tmp_path / "bad.onnx", text))) == 1
    printed = capsys.readouterr().out
    assert "RandomNormalLike" in printed
    assert "StringNormalizer" in printed
    assert "2 problems" in printed
    assert "cannot be compiled" in printed
    assert "MACs" not in printed  # no layer is supported


def test_problems_and_what_the_other_layers_cost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = """mixed (float[1, 4] x, float[4, 2] w) => (float[1, 2] y) {
        a = MatMul(x, w)
        b = RandomNormalLike(a)
        y = Add(a, b)
    }"""
    assert _run("check", str(_model(tmp_path / "mixed.onnx", text))) == 1
    printed = capsys.readouterr().out
    assert "1 problem:" in printed
    assert "MatMul" in printed and "8 MACs" in printed


def test_costs_of_a_good_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "good (float[1, 4] x, float[4, 2] w) => (float[1, 2] y) { y = MatMul(x, w) }"
    assert _run("check", str(_model(tmp_path / "good.onnx", text))) == 0
    printed = capsys.readouterr().out
    assert "can be compiled" in printed
    assert "8 MACs" in printed


def test_what_is_supported_of_one_operator(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("ops", "GridSample") == 0
    printed = capsys.readouterr().out
    assert "attribute align_corners" in printed
    assert _run("ops", "Attention") == 0
    assert "as ONNX" in capsys.readouterr().out
    assert _run("ops", "Convolution") == 1
    assert "close to it are Conv" in capsys.readouterr().err


def test_what_is_said_of_every_operator_is_short() -> None:
    _, rows = operator_rows(None)
    assert len(rows) > 180
    for name, short in rows:
        _, details = operator_rows(name.split(".")[-1])
        assert 5 < len(short) < 200, name
        text = "\n".join(" ".join(row) for row in details)
        assert len(text) < 2000 and "seq(" not in text, name


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("SequenceAt", "make each element a tensor"),
        ("StringSplit", "indices of tokens"),
        ("ImageDecoder", "the pixels"),
        ("Quux", "ONNX has no operator of that name"),
    ],
)
def test_why_an_operator_is_not_supported(
    name: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run("ops", name) == 1
    assert words in capsys.readouterr().err
