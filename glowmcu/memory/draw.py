"""Pictures of the arena over time: text, a table, and SVG."""

from __future__ import annotations

from html import escape
from typing import NamedTuple

from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Function
from glowmcu.instr.striped import Striped
from glowmcu.memory.lifetime import Plan

_MARKS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_COLOURS = ("#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#76b7b2", "#edc948", "#e15759", "#9c755f")
_LEFT, _TOP, _BOTTOM = 60, 10, 30
_HEIGHT = 320


class Row(NamedTuple):
    """One root buffer: where it lies, when it is used, which ONNX tensor it holds.

    holds  of a pool, the tensors whose rows lie in it, for a reader
    """

    offset: int
    size: int
    first: int
    last: int
    name: str
    tensor: str
    holds: str = ""


def memory_table(function: Function, plan: Plan) -> list[Row]:
    """Return the root buffers of the arena by address, then by time.

    Inputs start at -1, outputs end at the end. A buffer without a tensor of its own is
    described by the first view that has one.
    """
    tensors: dict[Buffer, str] = {}
    for buffer in function.buffers():
        if buffer.tensor:
            tensors.setdefault(buffer.root, buffer.tensor)
    pools = _pools(function)
    rows = [
        Row(
            offset,
            b.nbytes,
            *plan.lifetimes[b],
            b.name,
            b.tensor or tensors.get(b, ""),
            pools.get(b, ""),
        )
        for b, offset in plan.offsets.items()
        if b.in_arena
    ]
    return sorted(rows)


def _pools(function: Function) -> dict[Buffer, str]:
    """Return what to say of each pool of rows: how many places it has, and what for."""
    found: dict[Buffer, str] = {}
    for instruction in function.instructions:
        if isinstance(instruction, Striped):
            named: dict[Buffer, list[str]] = {}
            for tensor, pooled in instruction.places.items():
                named.setdefault(pooled.pool.root, []).append(tensor.name)
                places = pooled.pool.nbytes // pooled.pitch
                names = ", ".join(named[pooled.pool.root])
                found[pooled.pool.root] = f" ({places} places for rows of {names})"
    return found


def _when(row: Row, count: int) -> str:
    """Return the layers during which a buffer is used, for a reader."""
    first = "the input" if row.first < 0 else f"layer {row.first}"
    last = "the output" if row.last >= count else f"layer {row.last}"
    return f"in {first}" if first == last else f"from {first} to {last}"


def draw_text(function: Function, plan: Plan, width: int = 100) -> str:
    """Return a map of the arena in text, at most `width` wide: addresses across, layers down."""
    rows = memory_table(function, plan)
    count = len(function.instructions)
    labels = ["in", *map(str, range(count)), "out"]
    names = ["", *(i.name or type(i).__name__ for i in function.instructions), ""]
    left = max(map(len, labels))
    cells = max(8, min(width * 2 // 3, width - left - 12))
    unit = max(1, -(-_height(plan) // cells))
    cells = -(-_height(plan) // unit)
    rest = f", then {plan.slow_size} of slow memory" if plan.slow_size else ""
    lines = [f"arena of {plan.size} bytes{rest}, {_distance(plan)}, one column for {unit}"[:width]]
    outside = _outside(plan)
    lines += [outside[:width]] if outside else []
    for index, label, name in zip(range(-1, count + 1), labels, names, strict=True):
        line = [" "] * cells
        for number, row in enumerate(rows):
            if row.size and row.first <= index <= row.last:
                start, stop = row.offset // unit, -(-(row.offset + row.size) // unit)
                mark = _MARKS[number % len(_MARKS)]
                line[start:stop] = mark * (stop - start)
        text = f"{label:>{left}} |{''.join(line)}| {name}"
        lines.append(text[:width].rstrip())
    lines.append("")
    for number, row in enumerate(rows):
        mark = _MARKS[number % len(_MARKS)]
        where = f"[{row.offset}, {row.offset + row.size})"
        lines.append(f"{mark}  {where}  {row.size} bytes  {row.name}{row.holds}"[:width])
    return "\n".join(lines)


def _distance(plan: Plan) -> str:
    """Return how far the plan is from the least that can be."""
    if plan.size <= plan.lower_bound:
        return "no plan can be smaller"
    above = 100 * (plan.size - plan.lower_bound) / max(plan.lower_bound, 1)
    return f"{above:.1f} % above the bound of {plan.lower_bound}"


def _height(plan: Plan) -> int:
    """Return the bytes that are drawn: the arena, and slow memory above it."""
    return plan.slow_at + plan.slow_size if plan.slow_size else plan.size


def _outside(plan: Plan) -> str:
    """Return the line that names the tensors which are not in the arena, "" without them."""
    named = [f"{b.name} ({b.nbytes} bytes)" for b in plan.offsets if b.is_outside]
    return f"in the caller's memory, not counted: {', '.join(named)}" if named else ""


def draw_svg(function: Function, plan: Plan) -> str:
    """Return an SVG picture of the arena: time across, address up, a rectangle for each buffer."""
    columns = len(function.instructions) + 2
    step = max(6, min(40, 900 // columns))
    width, floor = _LEFT + columns * step + 10, _TOP + _HEIGHT
    scale = _HEIGHT / max(_height(plan), 1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {floor + _BOTTOM}" '
        f'width="{width}" height="{floor + _BOTTOM}" font-family="sans-serif" font-size="11">',
        f'<rect x="{_LEFT}" y="{_TOP}" width="{columns * step}" height="{_HEIGHT}" '
        f'fill="none" stroke="#888"/>',
        f'<text x="{_LEFT - 4}" y="{_TOP + 10}" text-anchor="end">{_height(plan)}</text>',
        f'<text x="{_LEFT - 4}" y="{floor}" text-anchor="end">0</text>',
        f'<text x="{_LEFT}" y="{floor + 16}">in</text>',
        f'<text x="{_LEFT + columns * step}" y="{floor + 16}" text-anchor="end">out</text>',
    ]
    for number, row in enumerate(memory_table(function, plan)):
        x, w = _LEFT + (row.first + 1) * step, (row.last - row.first + 1) * step
        y, h = floor - (row.offset + row.size) * scale, row.size * scale
        when = _when(row, len(function.instructions))
        title = f"{row.name}: {row.size} bytes at {row.offset}, {when}{row.holds}"
        colour = _COLOURS[number % len(_COLOURS)]
        parts.append(
            f'<rect x="{x}" y="{y:.1f}" width="{w}" height="{h:.1f}" fill="{colour}" '
            f'fill-opacity="0.6" stroke="#333" stroke-width="0.5"><title>{escape(title)}</title>'
            f"</rect>"
        )
    bound = floor - min(plan.lower_bound, plan.size) * scale
    parts.append(
        f'<line x1="{_LEFT}" y1="{bound:.1f}" x2="{_LEFT + columns * step}" y2="{bound:.1f}" '
        f'stroke="#000" stroke-dasharray="4 3"><title>{_distance(plan)}</title></line>'
    )
    outside = _outside(plan)
    if outside:
        parts.append(
            f'<text x="{_LEFT + 30}" y="{floor + 16}" class="outside">{escape(outside)}</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"
