"""Loops as C: `for` at the head of one, the tests that end it, the braces that close it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from glowmcu.emit import literals
from glowmcu.emit.view import (
    Argument,
    Assembler,
    LayerView,
    layer_comment,
    margin,
    results,
)
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Function
from glowmcu.instr.loop import loop_spans
from glowmcu.instr.loop_head import LoopHead


def loop_layer(state: Assembler, index: int, head: LoopHead) -> LayerView:
    """Return the head of a loop: its statement stores how many iterations are done."""
    assert head.kernel is not None
    outside, inside = " " * (margin(head) - 4), " " * margin(head)
    count = f"n{index}"
    tests = (
        f"{inside}if ({test}) {{\n{inside}    break;\n{inside}}}"
        for test in _tests(state, index, head)
    )
    return LayerView(
        index,
        literals.block(layer_comment(index, head, head.kernel), len(outside)),
        f"{inside}*(int32_t *){state.memory.pointer(head.y)} = {count};",
        head,
        head.kernel,
        "",
        results(head, state.memory),
        opening=f"{outside}for (int32_t {count} = 0;; {count}++) {{",
        tests="\n".join(tests),
    )


def _tests(state: Assembler, index: int, head: LoopHead) -> Iterator[str]:
    """Yield the conditions on each of which the loop ends."""

    def value(name: str, buffer: Buffer) -> str:
        operand = state.argument(index, head, Argument(name, buffer))
        return f"*(const {buffer.type.dtype.c} *){operand}"

    assert head.loop is not None
    yield f"n{index} >= {head.loop.count}"
    if head.limit is not None:
        yield f"n{index} >= {value('limit', head.limit)}"
    if head.condition is not None:
        yield f"!{value('condition', head.condition)}"
    if head.guard is not None:
        yield f"{'!' if head.guard.when else ''}{value('guard', head.guard.condition)}"


def with_ends(function: Function, layers: tuple[LayerView, ...]) -> tuple[LayerView, ...]:
    """Return the layers, with a brace for every loop after the last one in it."""
    ends: dict[int, list[str]] = {}
    for loop, (_, last) in reversed(loop_spans(function.instructions).items()):
        ends.setdefault(last, []).append("    " * len(loop.nest) + "}")
    return tuple(
        replace(layer, closing=tuple(ends[layer.index])) if layer.index in ends else layer
        for layer in layers
    )
