from __future__ import annotations

from collections.abc import Callable

import imported
import numpy as np
import pytest
import rendered

from glowmcu.core import dtypes
from glowmcu.core.types import TensorType
from glowmcu.instr.buffer import Buffer
from glowmcu.ops.cumulative import RunningSum


def x(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("upper", [0, 1])
def test_trilu(upper: int) -> None:
    imported.run("Trilu", {"x": x(2, 3, 4)}, upper=upper, opset=14)
    for diagonal in (-2, 0, 1, 9):
        constants = {"k": np.array(diagonal, np.int64)}
        imported.run("Trilu", {"x": x(4, 3)}, constants, upper=upper, opset=14)
    imported.run("Trilu", {"x": np.arange(12).reshape(3, 4)}, upper=upper, opset=14)


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_one_hot(axis: int) -> None:
    constants = {"d": np.array(5, np.int64), "v": np.array([2, 7], np.float32)}
    for index in (np.array([[0, 4, -1], [9, -5, 2]]), np.array([[1.0, 3.0]], np.float32)):
        imported.run("OneHot", {"i": index}, constants, axis=axis, opset=11, oracle="reference")
    data = {"i": np.array([1, 0]), "v": np.array([-1, 3], np.int64)}
    depth = {"d": np.array(3, np.int64)}
    imported.run("OneHot", data, depth, inputs=["i", "d", "v"], opset=11, oracle="reference")


def test_eye_like_is_a_constant() -> None:
    proto = imported.helper.make_node(
        "EyeLike", ["x"], ["y"], k=1, dtype=imported.TensorProto.INT32
    )
    graph = imported.import_node(proto, {"x": x(3, 4)}, {}, 9)
    np.testing.assert_array_equal(graph.outputs[0].data, np.eye(3, 4, 1, np.int32))


@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
def test_cum_sum(exclusive: int, reverse: int) -> None:
    for axis in (0, 1, -1):
        imported.run(
            "CumSum",
            {"x": x(2, 4, 3)},
            {"a": np.array(axis)},
            exclusive=exclusive,
            reverse=reverse,
            opset=14,
            tolerance=1e-6,
        )


def test_reverse_sequence() -> None:
    data, lengths = {"x": x(4, 3, 2)}, {"l": np.array([4, 1, 2])}
    imported.run("ReverseSequence", data, lengths, opset=10, batch_axis=1, time_axis=0)
    data, lengths = {"x": x(2, 5)}, {"l": np.array([5, 2])}
    imported.run("ReverseSequence", data, lengths, opset=10, batch_axis=0, time_axis=1)


@pytest.mark.cc
@pytest.mark.parametrize(("cc", "flags"), [("gcc", rendered.SANITIZE), ("clang", ["-O1"])])
def test_running_sums_in_c(need: Callable[..., None], cc: str, flags: list[str]) -> None:
    need(cc)

    def buffer(t: dtypes.DType) -> Buffer:
        return Buffer("b", TensorType(t, (2, 3, 2)), "activation")

    types = [t for t in dtypes.ALL if t.is_integer or t in (dtypes.F32, dtypes.F64)]
    cases = [
        RunningSum(
            y=buffer(t), x=buffer(t), outer=2, size=3, inner=2, exclusive=bool(e), reverse=bool(r)
        )
        for t in types
        for e in (0, 1)
        for r in (0, 1)
    ]
    rendered.check(cases, cc=cc, flags=tuple(flags))
