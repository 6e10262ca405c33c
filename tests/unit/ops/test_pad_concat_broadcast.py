from __future__ import annotations

import imported
import numpy as np
import pytest

from glowmcu.errors import UnsupportedError
from glowmcu.ops.copy import Copy


def x(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


@pytest.mark.parametrize(
    ("mode", "pads"),
    [
        ("reflect", (1, 2, 2, 3)),
        ("reflect", (0, 3, 0, 3)),
        ("edge", (1, 0, 0, 3)),
        ("edge", (5, 6, 7, 8)),
        ("constant", (1, 2, 3, 4)),
        ("constant", (0, -1, 1, 2)),
        ("constant", (-1, -1, 0, -1)),
        ("constant", (2, 0, 1, 0)),
        ("constant", (0, 0, 0, 0)),
        ("reflect", (-1, 1, 0, 2)),
        ("wrap", (1, 2, 3, 4)),
        ("wrap", (0, 0, 2, 1)),
    ],
)
def test_pad(mode: str, pads: tuple[int, ...]) -> None:
    data, constants = {"x": x(3, 4)}, {"p": i64(*pads), "v": np.float32(9)}
    opset = 19 if mode == "wrap" else 18
    constants["v"] = np.array(9, np.float32)
    imported.run("Pad", data, constants, mode=mode, opset=opset)


def test_pad_by_attributes_and_axes() -> None:
    data = {"x": x(2, 3, 4)}
    imported.run("Pad", data, opset=10, pads=[0, 1, 2, 1, 0, 0], value=1.25)
    imported.run("Pad", data, opset=2, pads=[0, 1, 2, 1, 0, -1], mode="constant")
    names = ["x", "p", "", "a"]
    constants = {"p": i64(1, 2, 0, 1), "a": i64(-1, 0)}
    imported.run("Pad", data, constants, inputs=names, mode="wrap", opset=19)
    imported.run("Pad", data, {"p": i64(1, 0, 0, 0, 1, 1)}, opset=13)


def test_pad_of_other_types() -> None:
    pads = {"p": i64(1, 0, 0, 2)}
    for dtype, value in ((np.int64, 2**62 + 1), (np.int8, -7), (np.float64, 0.1), (np.int32, 5)):
        data = {"x": np.arange(6).reshape(2, 3).astype(dtype)}
        imported.run("Pad", data, pads | {"v": np.array(value, dtype)})
    data = {"x": np.array([[True, False, True]])}
    imported.run("Pad", data, pads | {"v": np.array(True)}, oracle="reference")
    minus = {"v": np.array(-np.inf, np.float32)}
    imported.run("Pad", {"x": x(2, 3)}, pads | minus)


def test_an_unknown_mode_is_named() -> None:
    proto = imported.helper.make_node("Pad", ["x", "p"], ["y"], mode="fancy")
    with pytest.raises(UnsupportedError, match="fancy"):
        imported.import_node(proto, {"x": x(2)}, {"p": i64(1, 1)}, 18)


def test_concat() -> None:
    data = {"a": x(2, 3, 4), "b": x(2, 1, 4), "c": x(2, 5, 4)}
    for axis in (1, -2):
        imported.run("Concat", data, axis=axis)
    function = imported.run("Concat", {"a": x(1, 3, 4), "b": x(1, 2, 4)}, axis=1)
    assert [type(i) for i in function.instructions] == [Copy, Copy]
    assert [i.outputs()[0].root_offset for i in function.instructions] == [0, 48]
    function = imported.run("Concat", {"a": x(0, 4), "b": x(2, 4)}, axis=0)
    assert not function.instructions
    imported.run("Concat", {"a": np.array([True]), "b": np.array([False, True])}, axis=0)
    imported.run("Concat", {"a": x(0, 4), "b": x(0, 4)}, axis=0, oracle="reference")


def test_expand_and_tile() -> None:
    imported.run("Expand", {"x": x(3, 1)}, {"s": i64(2, 1, 6)})
    imported.run("Expand", {"x": x(3, 1)}, {"s": i64(3, 4)})
    imported.run("Expand", {"x": x(3, 4)}, {"s": i64(1)})
    imported.run("Expand", {"x": x()}, {"s": i64(2, 2)})
    imported.run("Tile", {"x": x(2, 3)}, {"r": i64(2, 2)})
    imported.run("Tile", {"x": x(2, 3, 2)}, {"r": i64(1, 3, 1)})
    imported.run("Tile", {"x": x(2, 3)}, {"r": i64(1, 1)})
    imported.run("Tile", {"x": x(2, 3)}, {"r": i64(0, 2)}, oracle="reference")
    imported.run("Tile", {"x": np.arange(4)}, {"r": i64(3)})


def test_transpose_nodes() -> None:
    imported.run("Transpose", {"x": x(2, 3, 4)})
    imported.run("Transpose", {"x": x(2, 3, 4)}, perm=[1, 2, 0])
    imported.run("Transpose", {"x": np.arange(6).reshape(2, 3)})
