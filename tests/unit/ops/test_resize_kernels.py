"""The resizing kernels in C beside their numpy references, bit for bit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import rendered

from glowmcu.core.types import TensorType, type_of
from glowmcu.graph.graph import Graph, Value, apply
from glowmcu.instr.instruction import Instruction
from glowmcu.lowering.lower import lower
from glowmcu.ops._resize_taps import Axis
from glowmcu.ops.base import Op, f32, i8
from glowmcu.ops.interpolate import Interpolate
from glowmcu.ops.resize import Resize2D


def instructions(op: Op, x: TensorType, y: TensorType | None) -> list[Instruction]:
    value = Value("x", x)
    node = apply(op, value, types=(y,) if y else ())
    graph = Graph("g", (value,), node.outputs, ("y",))
    return list(lower(graph, graph.nodes(), "f").instructions)


def cases() -> list[Instruction]:
    found = []
    for out in ((1, 1), (7, 5), (4, 13), (2, 3)):
        for channels in (1, 3):
            axes = Axis(4, out[0], out[0] / 4), Axis(6, out[1], out[1] / 6, "align_corners")
            t, q = f32(2, 4, 6, channels), i8(2, 4, 6, channels)
            y = i8(2, *out, channels, scale=0.03, zero_point=-128)
            same = q.with_shape((2, *out, channels))
            found += instructions(Resize2D(*axes), t, None)
            found += instructions(Resize2D(*axes), q, same)
            found += instructions(Resize2D(*axes, mode="linear"), t, None)
            found += instructions(Resize2D(*axes, mode="linear"), q, y)
            found += instructions(Resize2D(*axes, mode="linear"), q, same)
            found += instructions(Interpolate(1, axes[0], "cubic"), t, None)
            cropped = Axis(6, out[1], 1.0, "tf_crop_and_resize", (-0.2, 0.7))
            found += instructions(Interpolate(2, cropped, extrapolation=3.5), t, None)
    return found


@pytest.mark.cc
@pytest.mark.parametrize(
    ("cc", "flags"),
    [("gcc", rendered.SANITIZE), ("clang", ["-O1"]), ("gcc", ["-m32", "-msse2", "-mfpmath=sse"])],
)
def test_c_computes_what_the_instructions_say(
    need: Callable[..., None], cc: str, flags: list[str]
) -> None:
    need(cc)
    assert len(cases()) == 56
    rendered.check(cases(), cc=cc, flags=tuple(flags))


def test_linear_int8_is_within_one_step_of_the_real_values() -> None:
    rng = np.random.default_rng(0)
    for scale in (0.5, 1.0, 3.0):
        x = rng.integers(-128, 128, (1, 9, 8, 4)).astype(np.int8)
        op = Resize2D(Axis(9, 23, 23 / 9), Axis(8, 30, 30 / 8), mode="linear")
        t = i8(*x.shape, scale=0.05, zero_point=17)
        y = i8(1, 23, 30, 4, scale=0.05 / scale, zero_point=-5)
        (instruction,) = instructions(op, t, y)
        constants = [b.data for b in instruction.inputs()[1:]]
        found = instruction.reference(x, *constants)
        real = op.reference((x.astype(np.float32) - 17) * np.float32(0.05))
        wanted = np.clip(np.rint(real / (0.05 / scale)) - 5, -128, 127)
        assert np.abs(found - wanted).max() <= 1
        assert type_of(found.astype(np.int8)).shape == y.shape
