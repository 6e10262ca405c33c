from __future__ import annotations

import imported
import numpy as np
import pytest

from glowmcu.core.types import Quant, TensorType
from glowmcu.errors import UnsupportedError
from glowmcu.ops.base import i8
from glowmcu.ops.reshape import Reshape


def x(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


@pytest.mark.parametrize(
    ("shape", "target", "allowzero"),
    [
        ((2, 3, 4), (0, -1), 0),
        ((2, 3, 4), (-1, 0, 0), 0),
        ((2, 3, 4), (2, 12), 0),
        ((2, 2, 3, 2), (4, 2, 3), 0),
        ((0, 3), (3, 0), 1),
        ((1, 1), (), 0),
        ((2, 3, 4), (24,), 0),
        ((0, 3), (-1, 3), 0),
    ],
)
def test_reshape(shape: tuple[int, ...], target: tuple[int, ...], allowzero: int) -> None:
    function = imported.run(
        "Reshape", {"x": x(*shape)}, {"s": i64(*target)}, allowzero=allowzero, oracle="reference"
    )
    assert not function.instructions


def test_reshape_of_opset_1() -> None:
    proto = imported.helper.make_node("Reshape", ["x"], ["y"], shape=[3, -1])
    graph = imported.import_node(proto, {"x": x(2, 6)}, {}, 1)
    assert graph.outputs[0].shape == (3, 4)


def test_a_wrong_shape_is_refused() -> None:
    for target in ((5, -1), (-1, -1), (7,), (0, 0, 0)):
        proto = imported.helper.make_node("Reshape", ["x", "s"], ["y"])
        with pytest.raises(UnsupportedError, match="Reshape"):
            imported.import_node(proto, {"x": x(2, 3)}, {"s": i64(*target)}, 18)


@pytest.mark.parametrize("axis", [0, 1, 2, 4, -1, -4])
def test_flatten(axis: int) -> None:
    imported.run("Flatten", {"x": x(2, 3, 4, 5)}, axis=axis)


@pytest.mark.parametrize("opset", [11, 13])
def test_squeeze_and_unsqueeze(opset: int) -> None:
    data = {"x": x(1, 3, 1, 4)}
    for op, axes in (("Squeeze", [-2, 0]), ("Squeeze", [2]), ("Unsqueeze", [-1, 0, 3])):
        if opset < 13:
            imported.run(op, data, opset=opset, axes=axes)
        else:
            imported.run(op, data, {"axes": i64(*axes)}, opset=opset)
    imported.run("Squeeze", data, opset=opset)


def test_identity_is_the_tensor_itself() -> None:
    assert not imported.run("Identity", {"x": x(2, 3)}).instructions


def test_per_channel_quantization_survives_where_its_axis_does() -> None:
    quant = Quant((0.1, 0.2, 0.3), (0, 0, 0), 1)
    t: TensorType = i8(2, 3, 4).with_quant(quant)
    assert Reshape((2, 3, 2, 2)).infer(t).quant == quant
    moved = Reshape((1, 2, 3, 4)).infer(t).quant
    assert moved is not None and moved.axis == 2
    with pytest.raises(TypeError, match="mixes the channels"):
        Reshape((6, 4)).infer(t)
