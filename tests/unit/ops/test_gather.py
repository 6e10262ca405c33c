from __future__ import annotations

from collections.abc import Callable
from typing import Any

import imported
import numpy as np
import pytest
import rendered

from glowmcu.core import dtypes
from glowmcu.core.types import TensorType
from glowmcu.errors import UnsupportedError
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.instruction import Instruction
from glowmcu.ops.indexed_copy import IndexedCopy


def x(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def i64(values: Any) -> np.ndarray:
    return np.array(values, np.int64)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    ("axis", "index"),
    [(1, [0, -1, -4]), (0, -1), (-1, [[2, 0], [1, 1]]), (1, [3, 2, 1]), (2, [1]), (1, [])],
)
def test_gather(known: bool, axis: int, index: Any) -> None:
    data = {"x": x(2, 4, 3)}
    found = {"i": i64(index)}
    if known:
        imported.run("Gather", data, found, axis=axis)
    else:
        imported.run("Gather", data | found, axis=axis)


def test_constant_indices_with_a_constant_step_are_a_slice() -> None:
    function = imported.run("Gather", {"x": x(4, 3)}, {"i": i64(2)}, axis=0)
    assert not function.instructions
    assert function.outputs[0].root_offset == 2 * 3 * 4


def test_gather_elements_and_nd() -> None:
    data = {"x": x(3, 4)}
    for index, axis in (([[0, -1], [2, 1]], 1), ([[0, 2, 1, -3]], 0)):
        imported.run("GatherElements", data, {"i": i64(index)}, axis=axis)
        imported.run("GatherElements", data | {"i": i64(index)}, axis=axis)
    data = {"x": x(2, 3, 4)}
    for index, batch in (([[0, 1], [1, -1]], 0), ([[[1], [2]], [[0], [-1]]], 1), ([[1, 2, 3]], 0)):
        imported.run("GatherND", data, {"i": i64(index)}, batch_dims=batch)
        imported.run("GatherND", data | {"i": i64(index)}, batch_dims=batch)


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_scatter(reduction: str) -> None:
    data = {"x": x(3, 4)}
    index, updates = {"i": i64([[0, -1], [2, 1]])}, {"u": x(2, 2)}
    imported.run("ScatterElements", data | index | updates, axis=1, reduction=reduction)
    names = ["x", "i", "u"]
    imported.run(
        "ScatterElements", data | updates, index, inputs=names, axis=0, reduction=reduction
    )
    data = {"x": x(4, 3, 2)}
    index, updates = {"i": i64([[1, 2], [0, 0], [3, -1]])}, {"u": x(3, 2)}
    imported.run("ScatterND", data | index | updates, reduction=reduction)
    index, updates = {"i": i64([[1], [-1]])}, {"u": x(2, 3, 2)}
    imported.run("ScatterND", data | updates, index, inputs=names, reduction=reduction)


def test_constant_indices_out_of_range_are_refused() -> None:
    proto = imported.helper.make_node("Gather", ["x", "i"], ["y"])
    with pytest.raises(UnsupportedError, match="outside"):
        imported.import_node(proto, {"x": x(3)}, {"i": i64([0, 3])}, 13)


def buffer(name: str, dtype: dtypes.DType, *shape: int, data: Any = None) -> Buffer:
    kind = "activation" if data is None else "constant"
    return Buffer(name, TensorType(dtype, shape), kind, data)  # type: ignore[arg-type]


def indexed(t: dtypes.DType) -> list[Instruction]:
    wild = i64([2**62, -(2**62), -1, 0, 4, 5])
    places: dict[str, Any] = {
        "shape": (2, 3, 4),
        "x_strides": (20, 0, 1),
        "y_strides": (12, 4, 1),
        "index_strides": (0, 1, 0),
        "terms": ((5, 4),),
    }
    run_time = buffer("i", dtypes.I64, 6, data=wild)
    known = buffer("i", dtypes.I8, 3, data=np.array([4, 0, 2], np.int8))
    narrow = buffer("i", dtypes.I32, 3, data=np.array([-9, 9, 2], np.int32))
    moved: list[Instruction] = [
        IndexedCopy(y=buffer("y", t, 24), x=buffer("x", t, 40), index=i, known=i is known, **places)
        for i in (run_time, known, narrow)
    ]
    pairs: dict[str, Any] = {
        "shape": (3,),
        "x_strides": (1,),
        "y_strides": (0,),
        "index_strides": (2,),
        "terms": ((4, 5), (5, 1)),
    }
    reductions = ["none"] + ["add", "mul", "max", "min"] * (t.kind != "bool" and t.bits != 16)
    y, u = buffer("y", t, 20), buffer("x", t, 3)
    moved += [
        IndexedCopy(scatter=True, y=y, x=u, index=run_time, known=False, reduction=r, **pairs)
        for r in reductions
    ]
    return moved


@pytest.mark.cc
@pytest.mark.parametrize(
    ("cc", "flags"), [("gcc", rendered.SANITIZE), ("clang", ["-O1"]), ("gcc", ["-m32"])]
)
def test_c_never_leaves_the_tensors(need: Callable[..., None], cc: str, flags: list[str]) -> None:
    need(cc)
    cases = [i for t in dtypes.ALL for i in indexed(t)]
    rendered.check(cases, cc=cc, flags=tuple(flags))
