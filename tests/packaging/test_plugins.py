"""Plugins: the documented example runs, and faults in a plugin end as sentences."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

ROOT = Path(__file__).resolve().parent.parent.parent
PLUGIN = ROOT / "examples" / "plugin" / "my_ops.py"


def glowmcu(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own: what a plugin registers stays there."""
    command = [sys.executable, "-m", "glowmcu", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def snake(x: np.ndarray, alpha: float) -> np.ndarray:
    return x + np.sin(alpha * x) ** 2 / alpha


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """y = Snake(W Snake(x) + b), with W and b stored beside it in weights.npz."""
    rng = np.random.default_rng(0)
    w, b = rng.normal(size=(5, 6)).astype(np.float32), rng.normal(size=5).astype(np.float32)
    np.savez(tmp_path / "weights.npz", w=w, b=b)
    nodes = [
        helper.make_node("Snake", ["x"], ["h"], domain="com.example", alpha=0.5),
        helper.make_node("Gemm", ["h", "w", "b"], ["g"], transB=1),
        helper.make_node("Snake", ["g"], ["y"], domain="com.example"),
    ]
    graph = helper.make_graph(
        nodes,
        "wavy",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 5])],
        [onnx.numpy_helper.from_array(w, "w"), onnx.numpy_helper.from_array(b, "b")],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.example", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets), tmp_path / "wavy.onnx")
    return tmp_path / "wavy.onnx"


@pytest.mark.cc
def test_the_example_computes_the_operator(model: Path, need_cmake: None, tmp_path: Path) -> None:
    x = np.random.default_rng(1).normal(size=(3, 1, 6)).astype(np.float32)
    np.savez(tmp_path / "x.npz", x=x)
    done = glowmcu(
        *("run", model, "--plugin", PLUGIN, "--input", tmp_path / "x.npz"),
        *("--output", tmp_path / "y.npz"),
    )
    assert done.returncode == 0, done.stderr
    weights = np.load(tmp_path / "weights.npz")
    expected = snake(snake(x[:, 0], 0.5) @ weights["w"].T + weights["b"], 1.0)
    np.testing.assert_allclose(np.load(tmp_path / "y.npz")["y"], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.cc
def test_the_folder_has_the_kernels_and_the_self_test_passes(
    model: Path, cc: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    done = glowmcu("compile", model, "--plugin", PLUGIN, "-o", out, "--self-test")
    assert done.returncode == 0, done.stderr
    names = {p.name for p in out.iterdir()}
    assert {"snake_f32.c", "snake_f32.h", "one_row_f32.c", "one_row_f32.h"} <= names
    assert "gm_dense_f32.c" not in names
    (out / "main.c").write_text(
        '#include "wavy_self_test.h"\nstatic wavy_arena arena;\n'
        "int main(void) { return (int)wavy_self_test(&arena); }\n"
    )
    sources = sorted(str(p) for p in out.glob("*.c"))
    flags = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-ffp-contract=off"]
    subprocess.run([cc, *flags, *sources, "-lm", "-o", out / "program"], check=True)
    assert subprocess.run([out / "program"], check=False).returncode == 0


@pytest.mark.qemu
def test_it_runs_on_a_board(model: Path, qemu: None, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=np.ones((1, 6), np.float32))
    results = []
    for more in ([], ["--board", "mps2-an386", "--target", "cortex-m4"]):
        done = glowmcu(
            *("run", model, "--plugin", PLUGIN, "--input", tmp_path / "x.npz"),
            *("--output", tmp_path / "y.npz", *more),
        )
        assert done.returncode == 0, done.stderr
        results.append(np.load(tmp_path / "y.npz")["y"])
    np.testing.assert_allclose(*results, rtol=1e-5)


def test_without_the_plugin_the_operator_is_unknown(model: Path, tmp_path: Path) -> None:
    done = glowmcu("compile", model, "-o", tmp_path / "out")
    assert done.returncode == 1
    assert "Snake" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("text", "says"),
    [("x = 1\ny = nonsense\n", "line 2 fails"), ("def f(:\n", "SyntaxError"), (None, "not a Py")],
)
def test_a_broken_plugin_is_told(text: str | None, says: str, model: Path, tmp_path: Path) -> None:
    plugin = tmp_path / "broken.py"
    if text is not None:
        plugin.write_text(text)
    done = glowmcu("compile", model, "--plugin", plugin, "-o", tmp_path / "out")
    assert done.returncode == 1
    assert says in done.stderr and "broken.py" in done.stderr
    assert "Traceback" not in done.stderr
