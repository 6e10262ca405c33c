"""Random operators: with a seed as ONNX's reference evaluator draws, without one a sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from glowmcu import frontend
from glowmcu.errors import GlowmcuError, UnsupportedError
from glowmcu.graph.evaluate import evaluate

Array = np.ndarray[Any, Any]


def model(
    op: str, feeds: dict[str, Array], outputs: int = 1, opset: int = 22, **attributes: Any
) -> onnx.ModelProto:
    names = [f"y{i}" for i in range(outputs)]
    given = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in feeds.items()
    ]
    graph = helper.make_graph(
        [helper.make_node(op, list(feeds), names, **attributes)],
        "random",
        given,
        [helper.make_empty_tensor_value_info(n) for n in names],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def check(op: str, feeds: dict[str, Array], **more: Any) -> None:
    proto = model(op, feeds, **more)
    wanted = ReferenceEvaluator(proto).run(None, feeds)
    found = evaluate(frontend.load(proto).graph, feeds)
    for number, want in enumerate(wanted):
        got = found[f"y{number}"]
        assert got.dtype == np.asarray(want).dtype
        np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("op", ["RandomUniform", "RandomNormal"])
def test_seeded_numbers(op: str, dtype: Any) -> None:
    code = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    ends = {"low": -1.0, "high": 3.0} if op == "RandomUniform" else {"mean": 2.0, "scale": 0.5}
    check(op, {}, shape=[3, 5], dtype=code, seed=7.0, **ends)
    check(f"{op}Like", {"x": np.zeros((2, 3), dtype)}, seed=8.0, **ends)
    check(f"{op}Like", {"x": np.zeros((2, 3), np.float32)}, seed=8.0, dtype=code, **ends)


def test_seeded_bernoulli() -> None:
    p = np.random.default_rng(0).uniform(0.01, 1, 1000).astype(np.float32)
    check("Bernoulli", {"x": p}, seed=3.0)
    check("Bernoulli", {"x": p.astype(np.float64)}, seed=4.0, dtype=TensorProto.INT32)


@pytest.mark.parametrize("ratio", [0.0, 0.25, 0.9])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("training", [False, True])
def test_seeded_dropout_decides_at_run_time(ratio: float, dtype: Any, training: bool) -> None:
    x = np.random.default_rng(1).normal(size=(20, 30)).astype(dtype)
    feeds = {"x": x, "ratio": np.asarray(ratio, np.float32), "training": np.asarray(training)}
    check("Dropout", feeds, outputs=2, seed=11)


def test_draws_equal_to_the_ratio_are_kept() -> None:
    draw = np.random.RandomState(5).random_sample(1)
    for ratio in (np.nextafter(np.float32(draw[0]), np.float32(d)) for d in (0, 1)):
        feeds = {"x": np.ones(1, np.float32), "ratio": np.asarray(ratio), "t": np.asarray(True)}
        check("Dropout", feeds, outputs=2, seed=5)


@pytest.mark.parametrize(
    ("op", "more"),
    [
        ("RandomUniform", {"shape": [2]}),
        ("RandomNormal", {"shape": [2]}),
        ("RandomUniformLike", {}),
        ("RandomNormalLike", {}),
        ("Bernoulli", {}),
    ],
)
def test_without_a_seed_there_is_a_sentence(op: str, more: dict[str, Any]) -> None:
    feeds = {} if op in ("RandomUniform", "RandomNormal") else {"x": np.zeros(2, np.float32)}
    with pytest.raises(UnsupportedError, match="is random") as caught:
        frontend.load(model(op, feeds, **more))
    assert "seed" in caught.value.problems[0].hint


def test_dropout_without_a_seed() -> None:
    x = np.zeros(2, np.float32)
    check("Dropout", {"x": x}, opset=13)
    feeds = {"x": x, "ratio": np.asarray(0.5, np.float32), "t": np.asarray(True)}
    proto = model("Dropout", feeds)
    with pytest.raises(UnsupportedError, match="training_mode") as caught:
        frontend.load(proto)
    assert caught.value.problems[0].needs == ("t",)
    assert frontend.load(proto, {}, {"t": False}).graph.nodes() == ()
    with pytest.raises(UnsupportedError, match="Dropout: the result is random"):
        frontend.load(proto, {}, {"t": True})


def test_a_huge_random_tensor_is_refused_before_it_is_drawn() -> None:
    with pytest.raises(GlowmcuError, match="limit"):
        frontend.load(model("RandomUniform", {}, shape=[1 << 20, 1 << 20], seed=1.0))
