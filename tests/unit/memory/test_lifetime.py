"""Lifetimes, dead bytes, and the pictures made of them."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from random_functions import Reverse, Twist, random_function, u8

from glowmcu.core import dtypes
from glowmcu.core.types import TensorType
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Function
from glowmcu.memory.draw import draw_svg, draw_text, memory_table
from glowmcu.memory.lifetime import dead_ranges, lifetimes
from glowmcu.memory.plan import plan


def example() -> Function:
    x = Buffer("x", u8(16), "input", tensor="image")
    a, y = Buffer("a<1>", u8(16), "activation"), Buffer("y", u8(8), "activation")
    scratch = Buffer("s", u8(8), "scratch")
    part = Buffer("a.part", u8(8), "activation", None, a, 8, tensor="half")
    steps = (Reverse(y=a, x=x, name="first"), Twist(y=y, x=part, scratch=scratch))
    return Function("net", (x,), (y,), ("y",), steps)


def test_lifetimes_are_closed_and_a_view_extends_its_root() -> None:
    found = {b.name: span for b, span in lifetimes(example()).items()}
    assert found == {"x": (-1, 0), "a<1>": (0, 1), "y": (1, 2), "s": (1, 1)}


def test_constants_have_no_lifetime_and_unused_inputs_are_live_at_the_start() -> None:
    x, unused = Buffer("x", u8(4), "input"), Buffer("unused", u8(4), "input")
    constant = Buffer("k", u8(4), "constant")
    y = Buffer("y", u8(4), "activation")
    function = Function("net", (x, unused), (y, x), ("y", "x"), (Reverse(y=y, x=constant),))
    found = {b.name: span for b, span in lifetimes(function).items()}
    assert found == {"x": (-1, 1), "unused": (-1, -1), "y": (0, 1)}


def test_dead_ranges_are_all_that_holds_nothing() -> None:
    function = example()
    layout = plan(function)
    where = {b.name: (at, at + b.nbytes) for b, at in layout.offsets.items()}
    for index, live in ((0, "x"), (1, "a<1>"), (2, "y")):
        dead = dead_ranges(function, layout, index)
        start, stop = where[live]
        assert sum(b - a for a, b in dead) == layout.size - (stop - start)
        assert all(b <= start or stop <= a for a, b in dead)
    with pytest.raises(IndexError):
        dead_ranges(function, layout, 3)


def test_alignment_is_what_elements_and_target_need() -> None:
    x = Buffer("x", u8(5), "input")
    wide = Buffer("wide", TensorType(dtypes.F64, (2,)), "activation")
    view = Buffer("v", u8(16), "activation", None, wide)
    function = Function("net", (x,), (view,), ("v",), (Reverse(y=view, x=x),))
    layout = plan(function, 4)
    assert layout.align == 8 and layout.offsets[wide] % 8 == 0
    layout = plan(function, 16)
    assert layout.align == 16 and all(at % 16 == 0 for at in layout.offsets.values())
    small = replace(function, outputs=(x,), instructions=())
    assert plan(small, 4).align == 4


def test_the_table_is_ordered_by_address_and_names_tensors() -> None:
    function = example()
    layout = plan(function)
    rows = memory_table(function, layout)
    assert [r.offset for r in rows] == sorted(layout.offsets.values())
    assert {r.name: r.tensor for r in rows} == {"x": "image", "a<1>": "half", "y": "", "s": ""}


def test_the_text_map_fits_its_width_and_has_a_line_for_each_layer() -> None:
    function = example()
    for width in (40, 80, 200):
        lines = draw_text(function, plan(function), width).splitlines()
        assert all(len(line) <= width for line in lines)
        assert len(lines) == 1 + 4 + 1 + 4
    assert "first" in lines[2]


def test_the_svg_is_well_formed_and_the_same_every_time() -> None:
    function = example()
    layout = plan(function)
    text = draw_svg(function, layout)
    assert text == draw_svg(function, layout)
    titles = [e.text or "" for e in ET.fromstring(text).iter("{http://www.w3.org/2000/svg}title")]
    assert len(titles) == len(layout.offsets) + 1
    assert titles[-1] == "no plan can be smaller"
    assert "x: 16 bytes at 0, from the input to layer 0" in titles
    assert any(t.startswith("a<1>: 16 bytes at ") for t in titles)


def test_plans_are_the_same_every_time() -> None:
    for seed in range(30):
        function = random_function(seed)
        assert plan(function) == plan(function)
