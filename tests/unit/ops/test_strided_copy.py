from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import rendered

from glowmcu.core import dtypes
from glowmcu.core.types import TensorType
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder
from glowmcu.instr.instruction import Instruction
from glowmcu.ops.copy import Copy
from glowmcu.ops.strided_copy import Fill, Move, StridedCopy, emit_move


def buffer(name: str, dtype: dtypes.DType, *shape: int) -> Buffer:
    return Buffer(name, TensorType(dtype, shape), "activation")


def moves(t: dtypes.DType) -> list[Instruction]:
    x34, x = buffer("x", t, 3, 4), buffer("x", t, 2, 3, 4, 5)
    cases = [
        (buffer("y", t, 4, 3), x34, Move((4, 3), (1, 4), (3, 1))),
        (buffer("y", t, 6, 9), x34, Move((3, 4), (4, 1), (9, 1), 0, 11)),
        (buffer("y", t, 20), x34, Move((5,), (-2,), (3,), 9, 1)),
        (buffer("y", t, 4), x34, Move((1,), (1,), (1,), 2, 1)),
        (
            buffer("y", t, 2, 3, 5, 4),
            x,
            Move((2, 3, 5, 4), (60, 20, -1, 5), (60, 20, 4, 1), 4),
        ),
        (buffer("y", t, 2, 3, 2), x34, Move((2, 3, 2), (3, 1, 0), (6, 2, 1))),
        (buffer("y", t, 9), x34, Move((4,), (1,), (1,), 3, 5)),
    ]
    return [StridedCopy(y=y, x=x_, **vars(move)) for y, x_, move in cases]


FILLS = [0, 1, -1, 3, 100]


def fills(t: dtypes.DType) -> list[Instruction]:
    values: list[float] = [v for v in FILLS if t.kind not in ("uint", "bool") or v >= 0]
    if t.is_float:
        values += [-0.0, 0.1, float("inf"), -float("inf")]
    if t.is_integer:
        values += [t.low, t.high]
    return [Fill(y=buffer("y", t, 3, 2), value=v) for v in values]


@pytest.mark.cc
@pytest.mark.parametrize(
    ("cc", "flags"), [("gcc", rendered.SANITIZE), ("clang", ["-O1"]), ("gcc", ["-m32"])]
)
def test_every_element_type_moves_as_the_reference_says(
    need: Callable[..., None], cc: str, flags: list[str]
) -> None:
    need(cc)
    cases = [i for t in dtypes.ALL for i in moves(t) + fills(t)]
    rendered.check(cases, cc=cc, flags=tuple(flags))


def test_the_text_is_formatted(need: Callable[..., None]) -> None:
    need("clang-format")
    for instruction in moves(dtypes.F32) + moves(dtypes.I64) + fills(dtypes.F32):
        text = rendered.render(instruction)
        assert rendered.formatted(text) == text


def test_collapsing_keeps_the_set_of_moves() -> None:
    move = Move((2, 1, 3, 4), (12, 99, 4, 1), (12, 7, 4, 1), 5, 6).collapsed()
    assert move == Move((24,), (1,), (1,), 5, 6)
    assert Move((4, 3), (1, 4), (3, 1)).collapsed() == Move((4, 3), (1, 4), (3, 1))
    assert Move((1, 1), (5, 5), (5, 5)).collapsed() == Move((), (), ())


def test_a_contiguous_move_is_a_copy_between_views() -> None:
    b = Builder("n")
    x, y = buffer("x", dtypes.F32, 4, 6), buffer("y", dtypes.F32, 10, 6)
    emit_move(b, y, x, Move((2, 6), (6, 1), (6, 1), 6, 18))
    (copy,) = b.instructions
    assert isinstance(copy, Copy)
    assert (copy.bytes, copy.x.root_offset, copy.y.root_offset) == (48, 24, 72)


def test_moves_outside_a_buffer_are_caught() -> None:
    x, y = buffer("x", dtypes.I8, 4), buffer("y", dtypes.I8, 4)
    i = StridedCopy(y=y, x=x, shape=(4,), x_strides=(2,), y_strides=(1,), x_offset=0, y_offset=0)
    with pytest.raises(AssertionError, match="leaves its buffer"):
        i.reference(np.zeros(4, np.int8))
