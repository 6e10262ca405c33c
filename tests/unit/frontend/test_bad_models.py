"""Files and models that are no good: one clear sentence, quickly, whatever is wrong."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto
from toy import model

from glowmcu.errors import InvalidModelError, UnsupportedError
from glowmcu.frontend import load

GOOD = "(float[2] X) => (float[2] Y) { Y = toy.Double(X) }"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"not a model at all", "not an ONNX model, or it is truncated"),
        (b"\x1c\0\0\0TFL3" + bytes(50), "TensorFlow Lite"),
        (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
        (b"PK\x03\x04" + bytes(50), "ZIP"),
        (model(GOOD).SerializeToString()[:-9], "truncated"),
        (b"\x08\x07", "no graph"),
    ],
)
def test_files_that_are_not_models(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "x.onnx"
    path.write_bytes(content)
    with pytest.raises(InvalidModelError, match=message):
        load(path)
    if content:
        with pytest.raises(InvalidModelError, match=message):
            load(content)


def test_paths_that_are_not_files(tmp_path: Path) -> None:
    with pytest.raises(InvalidModelError, match="there is no file"):
        load(tmp_path / "absent.onnx")
    with pytest.raises(InvalidModelError, match="is not a file"):
        load(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidModelError, match="is not a file"):
        load(tmp_path / "pipe")


def _edit(text: str, change: Callable[[onnx.ModelProto], object]) -> onnx.ModelProto:
    proto = model(text)
    change(proto)
    return proto


def _initializer(**fields: object) -> Callable[[onnx.ModelProto], object]:
    return lambda proto: proto.graph.initializer.add(name="C", **fields)


BAD: dict[str, tuple[onnx.ModelProto, str]] = {
    "undefined": (
        model("(float[2] Xy) => (float[2] Y) { Y = toy.Double(X) }"),
        "node 'Y' reads 'X', which nothing defines",
    ),
    "undefined output": (model("(float[2] X) => (float[2] Q) { }"), "output 'Q' is not defined"),
    "cycle": (
        model("(float[2] X) => (float[2] Y) { Y = toy.Sum(a, X) a = toy.Double(Y) }"),
        "the graph has a cycle through node 'Y'",
    ),
    "twice": (
        model("(float[2] X) => (float[2] Y) { Y = toy.Double(X) Y = toy.Same(X) }"),
        "the name 'Y' is defined twice",
    ),
    "input redefined": (
        model("(float[2] X) => (float[2] Y) { X = toy.Double(X) Y = toy.Same(X) }"),
        "the name 'X' is defined twice",
    ),
    "inputs twice": (
        model("(float[2] X, float[2] X) => (float[2] Y) { Y = toy.Double(X) }"),
        "the input 'X' is listed twice",
    ),
    "no output": (_edit(GOOD, lambda p: p.graph.ClearField("output")), "has no output"),
    "no opset": (_edit(GOOD, lambda p: p.ClearField("opset_import")), "no opset_import"),
    "new opset": (
        _edit(GOOD, lambda p: setattr(p.opset_import[0], "version", 999)),
        "the model uses opset 999; onnx",
    ),
    "opset 0": (_edit(GOOD, lambda p: setattr(p.opset_import[0], "version", 0)), "uses opset 0"),
    "huge input": (
        model("(float[65536, 65536, 65536] X) => (float[2] Y) { Y = toy.Double(X) }"),
        "takes 1125899906842624 bytes",
    ),
    "dims wrap to 0": (
        _edit(GOOD, _initializer(data_type=1, dims=[1 << 32, 1 << 32], raw_data=b"")),
        "the limit is",
    ),
    "too few data": (
        _edit(GOOD, _initializer(data_type=1, dims=[3], float_data=[1, 2])),
        "initializer 'C' of shape [3] needs 3 elements; the file has 2",
    ),
    "too many bytes": (
        _edit(GOOD, _initializer(data_type=1, dims=[1], raw_data=b"\0" * 8)),
        "needs 4 bytes; the file has 8",
    ),
    "negative dim": (
        _edit(GOOD, _initializer(data_type=1, dims=[-1], float_data=[1])),
        "negative dimension",
    ),
    "initializer twice": (
        _edit(
            GOOD,
            lambda p: [_initializer(data_type=1, dims=[], float_data=[1])(p) for _ in range(2)],
        ),
        "the initializer 'C' is defined twice",
    ),
    "string initializer": (
        _edit(GOOD, _initializer(data_type=TensorProto.STRING, dims=[1], string_data=[b"a"])),
        "element type string",
    ),
    "unknown element type": (
        _edit(GOOD, _initializer(data_type=99, dims=[1], raw_data=b"\0")),
        "no valid element type (code 99)",
    ),
    "string input": (
        model("(string[2] X) => (float[2] Y) { Y = toy.Double(X) }"),
        "input 'X' has element type string",
    ),
    "sequence input": (
        model("(seq(float[2]) X) => (float[2] Y) { Y = toy.Double(X) }"),
        "input 'X' is not a tensor (sequence)",
    ),
    "optional input": (
        model("(optional(float[2]) X) => (float[2] Y) { Y = toy.Double(X) }"),
        "input 'X' is not a tensor (optional)",
    ),
    "sparse": (
        _edit(
            GOOD, lambda p: p.graph.sparse_initializer.add().values.MergeFrom(TensorProto(name="S"))
        ),
        "initializer 'S' is sparse",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_model(name: str) -> None:
    proto, message = BAD[name]
    with pytest.raises((InvalidModelError, UnsupportedError)) as raised:
        load(proto)
    assert message in str(raised.value)


def test_names_that_are_not_utf8() -> None:
    data = model("(float[2] XXXX) => (float[2] Y) { Y = toy.Double(XXXX) }").SerializeToString()
    with pytest.raises(InvalidModelError, match="not UTF-8"):
        load(data.replace(b"XXXX", b"\xff\xfe\xff\xff"))


def external(location: str, **entries: object) -> onnx.ModelProto:
    proto = model("(float[2] X) => (float[2] Y) { Y = toy.Sum(X, C) }")
    tensor = proto.graph.initializer.add(name="C", data_type=1, dims=[2])
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(value))
    return proto


def test_external_data_is_read_beside_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "w.bin").write_bytes(bytes(4) + np.float32([5, 6]).tobytes())
    path = tmp_path / "m.onnx"
    onnx.save(external("sub/w.bin", offset=4, length=8), path)
    monkeypatch.chdir("/")
    imported = load(path)
    (node,) = imported.graph.nodes()
    assert node.inputs[1] is not None
    assert node.inputs[1].data is not None
    assert node.inputs[1].data.tolist() == [5, 6]
    assert imported.model.graph.initializer[0].raw_data == np.float32([5, 6]).tobytes()
    assert imported.sha256 != load_again(path, tmp_path)


def load_again(path: Path, folder: Path) -> str:
    """Change the data and load once more."""
    (folder / "sub" / "w.bin").write_bytes(bytes(12))
    return load(path).sha256


@pytest.mark.parametrize(
    ("location", "entries", "message"),
    [
        ("absent.bin", {}, "absent.bin', which is missing"),
        ("/etc/passwd", {}, "outside of the model's folder"),
        ("../w.bin", {}, "outside of the model's folder"),
        ("sub/../../w.bin", {}, "outside of the model's folder"),
        ("C:\\w.bin", {}, "outside of the model's folder"),
        ("..\\w.bin", {}, "outside of the model's folder"),
        ("link/passwd", {}, "outside of the model's folder"),
        ("", {}, "outside of the model's folder"),
        (".", {}, "which is missing"),
        ("short.bin", {}, "which has only 4"),
        ("short.bin", {"offset": -4}, "which has only 4"),
        ("short.bin", {"offset": "x"}, "is not a number"),
        ("short.bin", {"length": 4}, "its external data has 4"),
        ("short.bin", {"offset": 1 << 70}, "which has only 4"),
    ],
)
def test_bad_external_data(
    tmp_path: Path, location: str, entries: dict[str, object], message: str
) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    (tmp_path / "w.bin").write_bytes(bytes(8))
    (folder / "short.bin").write_bytes(bytes(4))
    (folder / "link").symlink_to("/etc")
    path = folder / "m.onnx"
    path.write_bytes(external(location, **entries).SerializeToString())
    with pytest.raises(InvalidModelError) as raised:
        load(path)
    assert message in str(raised.value)


def test_external_data_of_bytes_needs_a_path() -> None:
    with pytest.raises(InvalidModelError, match="give the path of the model file"):
        load(external("w.bin").SerializeToString())
