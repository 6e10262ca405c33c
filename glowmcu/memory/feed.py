"""Inputs that the caller hands over row by row: they need no memory of their own."""

from __future__ import annotations

from dataclasses import replace

from glowmcu.errors import OptionError
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Function
from glowmcu.instr.striped import Feed


def feed_rows(function: Function) -> Function:
    """Return the function with its input outside the arena, fed into a chain row by row.

    Raises OptionError where the network has not one input that is an image.
    """
    if len(function.inputs) != 1:
        raise OptionError(
            f"the network has {len(function.inputs)} inputs, only one can come row by row",
            hint="leave out --input rows",
        )
    (x,) = function.inputs
    shape = x.type.shape
    if len(shape) != 4 or shape[0] != 1 or shape[1] < 2 or x in function.outputs:
        raise OptionError(
            f"the input '{x.name}' is not an image of one sample: {x.type}",
            why="rows are those of an input [1, height, width, channels]",
            hint="leave out --input rows",
        )
    rows = Buffer(x.name, x.type, "activation", tensor=x.tensor, perm=x.perm)
    feed = replace(Feed(y=rows, x=x), name=x.name, kernel=Feed.kernels[0])  # type: ignore[call-arg]
    changed = function.with_buffers({x: rows, **_views(function, x, rows)})
    return replace(changed, inputs=(), fed=(x,), instructions=(feed, *changed.instructions))


def _views(function: Function, x: Buffer, rows: Buffer) -> dict[Buffer, Buffer]:
    """Return the views of the input as views of its rows."""
    found: dict[Buffer, Buffer] = {x: rows}
    for buffer in sorted(function.buffers(), key=lambda b: _depth(b)):
        if buffer.base is not None and buffer.base in found:
            found[buffer] = replace(buffer, base=found[buffer.base])
    return found


def _depth(buffer: Buffer) -> int:
    return 0 if buffer.base is None else 1 + _depth(buffer.base)
