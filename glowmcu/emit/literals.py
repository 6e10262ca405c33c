"""Literals: numbers, arrays, strings and comments as C text that means exactly the same value."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.types import Array

WIDTH = 100
"""Columns of generated C, as in .clang-format."""


def integer(value: int) -> str:
    """Return an integer constant; the smallest ones have no literal in C, so they are macros."""
    if value == -(1 << 31):
        return "INT32_MIN"
    if value == -(1 << 63):
        return "INT64_MIN"
    if -(1 << 31) <= value < 1 << 31:
        return str(value)
    return f"UINT64_C({value})" if value >= 1 << 63 else f"INT64_C({value})"


def float32(value: float) -> str:
    """Return the shortest float literal that reads back as the same float32."""
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    with np.errstate(over="ignore"):
        single = np.float32(value)
    return f"{single!s}f"


def float64(value: float) -> str:
    """Return the shortest double literal that reads back as the same float64."""
    if math.isnan(value):
        return "(double)NAN"
    if math.isinf(value):
        return "(double)INFINITY" if value > 0 else "-(double)INFINITY"
    return repr(float(value))


def attribute(value: Any) -> str:
    """Return the initialiser of a parameter: an integer, a float, or a tuple of them."""
    if isinstance(value, tuple):
        return "{" + ", ".join(attribute(v) for v in value) + "}"
    if isinstance(value, bool | np.bool_):
        return str(int(value))
    if isinstance(value, int | np.integer):
        return integer(int(value))
    if isinstance(value, float | np.floating):
        return float32(float(value))
    raise TypeError(f"no C literal for the attribute {value!r}")


def array_lines(array: Array, indent: int = 4) -> list[str]:
    """Return the lines of an array's initialiser, without the braces; equally many per line."""
    words = _words(array)
    if not words:
        return []
    longest = max(map(len, words))
    count = max(1, (WIDTH - indent) // (longest + 2))
    pad = " " * indent
    return [pad + ", ".join(words[i : i + count]) + "," for i in range(0, len(words), count)]


def _words(array: Array) -> list[str]:
    flat = np.ascontiguousarray(array).reshape(-1)
    dtype = dtypes.of(flat.dtype)
    if dtype.is_float and dtype.bits <= 16:
        bits = flat.view(np.uint16 if dtype.bits == 16 else np.uint8)
        return list(map(str, bits.tolist()))
    if dtype == dtypes.BOOL:
        return list(map(str, flat.astype(np.uint8).tolist()))
    if dtype == dtypes.F64:
        return [float64(v) for v in flat.tolist()]
    if dtype == dtypes.F32:
        return _floats(flat)
    if dtype.bits < 32:
        return list(map(str, flat.astype(np.int32).tolist()))
    if dtype == dtypes.U32:
        return [f"{v}u" for v in flat.tolist()]
    return list(map(integer, flat.tolist()))


def _floats(flat: Array) -> list[str]:
    if not np.isfinite(flat).all():
        return [float32(v) for v in flat]
    return [f"{word}f" for word in flat.astype(np.str_).tolist()]


def plain(text: str) -> str:
    """Return printable ASCII for any text; nothing else can reach a comment or a string."""
    return "".join(c if " " <= c <= "~" else c.encode("unicode_escape").decode() for c in text)


def comment(text: str) -> str:
    """Return text that cannot end a comment, start one, or form a trigraph; one line."""
    safe = plain(text)
    for bad, good in (("*/", "*\\/"), ("/*", "/\\*"), ("??", "?\\?")):
        while bad in safe:
            safe = safe.replace(bad, good)
    return f"{safe}." if safe.endswith("\\") else safe


def string(text: str) -> str:
    """Return a string literal."""
    safe = plain(text).replace("\\", "\\\\").replace('"', '\\"').replace("??", "?\\?")
    return '"' + safe.replace("??", "?\\?") + '"'


def wrap(text: str, width: int) -> list[str]:
    """Return safe comment text as lines of at most `width` columns; runs of spaces are kept."""
    lines, line = [], ""
    for word in comment(text).split(" "):
        if line.strip() and len(line) + 1 + len(word) > width:
            lines.append(line.rstrip())
            line = "  " + word
        else:
            line = f"{line} {word}" if line else word
    return [*lines, line.rstrip()]


def block(text: str, indent: int = 0) -> str:
    """Return a comment of one paragraph, wrapped where clang-format leaves it."""
    pad = " " * indent
    return pad + "/* " + f"\n{pad} * ".join(wrap(text, WIDTH - indent - 6)) + " */"


def call(function: str, arguments: tuple[str, ...], indent: int = 4) -> str:
    """Return a call or prototype, wrapped after commas, aligned with the opening parenthesis."""
    line = " " * indent + function + "("
    margin = " " * len(line)
    lines: list[str] = []
    for number, argument in enumerate(arguments):
        end = ");" if number == len(arguments) - 1 else ","
        if len(line) + len(argument) + len(end) > WIDTH and line.strip() and line != margin:
            lines.append(line.rstrip())
            line = margin
        line += argument + end + ("" if end == ");" else " ")
    return "\n".join([*lines, line if arguments else line + ");"])
