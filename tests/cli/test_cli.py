"""The command line: what it prints, its exit statuses, and that nothing is left half-written."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from glowmcu import demo
from glowmcu.cli import main


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    """Run the command line in this process; return exit status, output and errors."""
    with pytest.raises(SystemExit) as stop:
        main([str(a) for a in arguments])
    captured = capsys.readouterr()
    code = stop.value.code
    return int(code) if code else 0, captured.out, captured.err


def save(path: Path, *nodes: onnx.NodeProto, shape: tuple[object, ...] = (1, 4)) -> Path:
    """Write a model of these nodes from x to y."""
    graph = helper.make_graph(
        list(nodes),
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    path.write_bytes(model.SerializeToString())
    return path


@pytest.fixture
def relu(tmp_path: Path) -> Path:
    return save(tmp_path / "relu.onnx", helper.make_node("Relu", ["x"], ["y"]))


@pytest.mark.parametrize(
    "command",
    ["compile", "run", "verify", "inspect", "passes", "ops", "targets", "boards", "demo"],
)
def test_every_command_teaches(capsys: pytest.CaptureFixture[str], command: str) -> None:
    status, out, _ = run(capsys, command, "--help")
    assert status == 0
    assert out.startswith(f"Usage: glowmcu {command}")
    assert len(out.splitlines()) > 5


def test_compile_writes_a_complete_folder(
    capsys: pytest.CaptureFixture[str], relu: Path, tmp_path: Path
) -> None:
    status, out, _ = run(capsys, "compile", relu, "-o", tmp_path / "out", "--name", "net")
    assert status == 0
    assert "bytes of RAM" in out
    files = {p.name for p in (tmp_path / "out").iterdir()}
    assert files >= {"net.h", "net.c", "report.json", "report.html", "example_main.c.txt"}
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert set(report["files"]) == files


def test_quiet_says_nothing(capsys: pytest.CaptureFixture[str], relu: Path, tmp_path: Path) -> None:
    status, out, err = run(capsys, "compile", relu, "-o", tmp_path / "out", "--quiet")
    assert (status, out, err) == (0, "", "")


@pytest.mark.cc
def test_run_takes_a_model_or_a_folder(
    capsys: pytest.CaptureFixture[str], relu: Path, tmp_path: Path
) -> None:
    x = np.asarray([[-1, 2, -3, 4], [5, -6, 7, -8]], np.float32)
    np.savez(tmp_path / "x.npz", x=x)
    run(capsys, "compile", relu, "-o", tmp_path / "out")
    for source in (relu, tmp_path / "out"):
        output = tmp_path / "y.npz"
        status, _, _ = run(capsys, "run", source, "--input", tmp_path / "x.npz", "--output", output)
        assert status == 0
        np.testing.assert_array_equal(np.load(output)["y"], np.maximum(x, 0))


@pytest.mark.cc
def test_verify_compares_every_level(
    capsys: pytest.CaptureFixture[str], relu: Path, tmp_path: Path
) -> None:
    np.savez(tmp_path / "x.npz", x=np.asarray([[-1, 2, -3, 4]], np.float32))
    status, out, _ = run(capsys, "verify", relu, "--data", tmp_path / "x.npz")
    assert status == 0
    assert out.count("same") == 3


def test_passes_print_stop_and_skip(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    model = save(
        tmp_path / "m.onnx",
        helper.make_node("Identity", ["x"], ["t"]),
        helper.make_node("Relu", ["t"], ["u"]),
        helper.make_node("Relu", ["u"], ["y"]),
    )
    _, listed, _ = run(capsys, "passes")
    names = [line.split()[2] for line in listed.splitlines() if line.split()[:1][0].isdigit()]
    assert len(names) > 10

    status, out, _ = run(capsys, "compile", model, "--stop-after", names[0])
    assert status == 0
    assert out.startswith("graph ")
    status, out, _ = run(capsys, "compile", model, "--stop-after", "plan")
    assert status == 0
    assert "live [" in out
    assert list(tmp_path.iterdir()) == [model]

    out_folder = tmp_path / "out"
    status, out, _ = run(capsys, "compile", model, "-o", out_folder, "--print-after", "all")
    assert status == 0
    assert out.count("// after ") >= len(names)
    status, _, err = run(capsys, "compile", model, "-o", out_folder, "--skip", "nonsense")
    assert status == 1
    assert "there is no pass 'nonsense'" in err
    assert names[0] in err


def unsupported(tmp_path: Path) -> Path:
    return save(
        tmp_path / "m.onnx",
        helper.make_node("StringNormalizer", ["x"], ["t"], name="first"),
        helper.make_node("Frobnicate", ["x"], ["u"], name="second", domain="acme"),
        helper.make_node("Add", ["t", "u"], ["y"]),
    )


def test_everything_unsupported_is_told_at_once(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    status, _, err = run(capsys, "compile", unsupported(tmp_path), "-o", tmp_path / "out")
    assert status == 1
    assert "first" in err
    assert "second" in err
    assert "Traceback" not in err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--target", "z80"), "there is no target 'z80'"),
        (("--name", "3d"), "the name '3d' cannot be used"),
        (("--shape", "q=1,2"), "'q'"),
        (("--quantize", "int8"), "needs calibration data"),
        (("--ram-limit", "3"), "the limit is 3"),
    ],
)
def test_user_errors_are_sentences(
    capsys: pytest.CaptureFixture[str],
    relu: Path,
    tmp_path: Path,
    arguments: tuple[str, ...],
    message: str,
) -> None:
    status, _, err = run(capsys, "compile", relu, "-o", tmp_path / "out", *arguments)
    assert status == 1
    assert err.startswith("error: ")
    assert message in err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "nothing.onnx"), (b"", "empty"), (b"not an ONNX file at all", "ONNX")],
)
def test_bad_files_are_one_sentence(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: bytes | None, message: str
) -> None:
    path = tmp_path / "nothing.onnx"
    if content is not None:
        path.write_bytes(content)
    status, _, err = run(capsys, "compile", path, "-o", tmp_path / "out")
    assert status == 1
    assert message in err
    assert err.count("error: ") == 1
    assert not (tmp_path / "out").exists()


def test_a_truncated_file_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    whole = demo.model_path().read_bytes()
    path = tmp_path / "half.onnx"
    path.write_bytes(whole[: len(whole) // 2])
    status, _, err = run(capsys, "compile", path, "-o", tmp_path / "out")
    assert status == 1
    assert err.startswith("error: ")
    assert not (tmp_path / "out").exists()


def test_an_unbound_dimension_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = save(
        tmp_path / "m.onnx", helper.make_node("Relu", ["x"], ["y"]), shape=("batch", "time")
    )
    status, _, err = run(capsys, "compile", path, "-o", tmp_path / "out")
    assert status == 1
    assert "time" in err
    assert "--shape" in err
    status, _, err = run(capsys, "compile", path, "-o", tmp_path / "out", "--shape", "time=7")
    assert status == 0
    assert "batch of 1" in err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_one_sentence(
    capsys: pytest.CaptureFixture[str], relu: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    status, _, err = run(capsys, "compile", relu, "-o", folder / "out")
    assert status == 1
    assert "cannot be written" in err


def test_an_output_folder_that_is_a_file_is_one_sentence(
    capsys: pytest.CaptureFixture[str], relu: Path, tmp_path: Path
) -> None:
    (tmp_path / "out").write_text("mine")
    status, _, err = run(capsys, "compile", relu, "-o", tmp_path / "out")
    assert status == 1
    assert "cannot be written" in err
    assert (tmp_path / "out").read_text() == "mine"


@pytest.mark.parametrize(
    "arguments",
    [(), ("compile",), ("compile", "m.onnx"), ("compile", "m", "-o", "o", "--shape", "x")],
)
def test_wrong_usage_has_its_own_status(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    assert run(capsys, *arguments)[0] == 2


def test_a_fault_in_glowmcu_asks_for_a_report(
    capsys: pytest.CaptureFixture[str], relu: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("broken")

    monkeypatch.setattr("glowmcu.driver.lower", broken)
    status, _, err = run(capsys, "compile", relu, "-o", tmp_path / "out")
    assert status == 3
    assert "please report" in err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["ops", "targets", "boards", "passes"])
def test_tables_have_a_form_for_the_documentation(
    capsys: pytest.CaptureFixture[str], command: str
) -> None:
    status, out, _ = run(capsys, command, "--markdown")
    assert status == 0
    assert out.startswith("| ")
    assert out.splitlines()[1].startswith("| ---")


def test_one_operator_can_be_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "ops", "Conv")
    assert status == 0
    assert "Conv" in out
    assert run(capsys, "ops", "Nothing")[0] == 1


def test_inspect_shows_layers_memory_and_text(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    model = demo.model_path()
    assert "kernel" in run(capsys, "inspect", model)[1]
    assert run(capsys, "inspect", model, "--stage", "function")[1].startswith("function ")
    assert run(capsys, "inspect", model, "--memory")[0] == 0
    run(capsys, "inspect", model, "--dot", tmp_path / "g.dot")
    assert (tmp_path / "g.dot").read_text().startswith("digraph")


@pytest.mark.parametrize(
    ("option", "value", "status", "sentence"),
    [
        ("--flash-limit", "10", 1, "error: the smallest flash found is "),
        ("--kernel", "nothing=gm_map", 1, "error: there is no layer 'nothing'"),
        ("--kernel", "y=gm_conv2d_s8", 1, "has no kernel 'gm_conv2d_s8'"),
        ("--kernel", "gm_map", 2, "is not of the form LAYER=KERNEL"),
    ],
)
def test_kernels_that_cannot_be_end_in_a_sentence(
    capsys: pytest.CaptureFixture[str],
    relu: Path,
    tmp_path: Path,
    option: str,
    value: str,
    status: int,
    sentence: str,
) -> None:
    found, _, err = run(capsys, "compile", relu, "-o", tmp_path / "out", option, value)
    assert found == status
    assert sentence in " ".join(err.split())
    assert not (tmp_path / "out").exists()


def test_every_kernel_is_explained(capsys: pytest.CaptureFixture[str], relu: Path) -> None:
    status, out, _ = run(capsys, "inspect", relu, "--explain-kernels", "--target", "cortex-m4")
    assert status == 0
    assert out.startswith("relu for cortex-m4, --optimize balanced\n0: ")
