"""Instructions declare their operands; functions run in one arena and are checked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from glowmcu.core import dtypes
from glowmcu.core.passes import IllFormedError
from glowmcu.core.types import Array, TensorType
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.evaluate import evaluate, layout_without_reuse
from glowmcu.instr.function import Function
from glowmcu.instr.instruction import In, Ins, Instruction, Out
from glowmcu.instr.printer import dump
from glowmcu.instr.verify import verify

F32 = TensorType(dtypes.F32, (4,))


class Join(Instruction):
    """y = sum of xs, plus b where it is there."""

    y: Out
    xs: Ins
    b: In | None = None
    factor: int
    limit: int | None = None

    may_share = (("y", "xs"),)

    def reference(self, xs: list[Array], b: Array | None) -> Array:
        total = sum(xs) * np.float32(self.factor)
        return total if b is None else total + b


def example() -> Function:
    x = Buffer("x", F32, "input")
    c = Buffer("c", F32, "constant", np.arange(4, dtype=np.float32))
    t = Buffer("t", F32, "activation")
    half = Buffer("half", TensorType(dtypes.F32, (2,)), "activation", base=t, offset=8)
    y = Buffer("y", TensorType(dtypes.F32, (2,)), "activation")
    return Function(
        "f",
        (x,),
        (y,),
        ("out",),
        (Join(y=t, xs=(x, x), b=c, factor=3), Join(y=y, xs=(half,), factor=1)),
    )


def test_operands_and_attributes_come_from_the_annotations() -> None:
    first = example().instructions[0]
    assert [(o.field, o.role, o.buffer.name) for o in first.operands()] == [
        ("y", "out", "t"),
        ("xs", "in", "x"),
        ("xs", "in", "x"),
        ("b", "in", "c"),
    ]
    assert first.attributes() == {"factor": 3}
    assert replace(first, limit=4).attributes() == {"factor": 3, "limit": 4}
    assert [b.name for b in first.inputs()] == ["x", "x", "c"]


def test_a_function_runs_in_one_arena_with_views() -> None:
    function = example()
    verify(function)
    feeds = {"x": np.asarray([1, 2, 3, 4], np.float32)}
    np.testing.assert_array_equal(evaluate(function, feeds)["out"], [20, 27])
    offsets, size = layout_without_reuse(function)
    assert size == 48
    assert {b.name for b in offsets} == {"x", "t", "y"}


def test_buffers_can_share_memory_when_the_plan_says_so() -> None:
    function = example()
    x, t, y = function.inputs[0], function.instructions[0].outputs()[0], function.outputs[0]
    feeds = {"x": np.asarray([1, 2, 3, 4], np.float32)}
    got = evaluate(function, feeds, {x: 0, t: 0, y: 0}, 16)
    np.testing.assert_array_equal(got["out"], [20, 27])


def test_replacing_buffers_reaches_every_operand() -> None:
    function = example()
    new = Buffer("x2", F32, "input")
    changed = function.with_buffers({function.inputs[0]: new})
    assert changed.inputs == (new,)
    assert changed.instructions[0].inputs()[:2] == (new, new)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: replace(f, inputs=()), "before it is written"),
        (lambda f: replace(f, instructions=f.instructions[1:]), "before it is written"),
        (lambda f: replace(f, outputs=(Buffer("z", F32, "activation"),)), "never written"),
    ],
)
def test_verify_names_what_is_wrong(change: object, message: str) -> None:
    with pytest.raises(IllFormedError, match=message):
        verify(change(example()))  # type: ignore[operator]


def test_constants_are_never_written_and_views_stay_inside() -> None:
    constant = Buffer("c", F32, "constant", np.zeros(4, np.float32))
    x = Buffer("x", F32, "input")
    with pytest.raises(IllFormedError, match="writes the constant"):
        verify(Function("f", (x,), (), (), (Join(y=constant, xs=(x,), factor=1),)))
    outside = Buffer("v", F32, "activation", base=x, offset=4)
    y = Buffer("y", F32, "activation")
    with pytest.raises(IllFormedError, match="ends outside"):
        verify(Function("f", (x,), (y,), ("y",), (Join(y=y, xs=(outside,), factor=1),)))


def test_the_dump_marks_roles() -> None:
    text = dump(example())
    assert "0: Join y=@out %1, xs=@in %0, xs=@in %0, b=@in %2 {factor=3}" in text
    assert "view of t+8" in text
