"""The stack of a network: a bound from the C text, for any compiler and any optimisation."""

from __future__ import annotations

import re
from math import prod

from glowmcu.emit.view import Code
from glowmcu.instr.striped import Striped
from glowmcu.targets.target import Target

_RUN_FRAME, _CHAIN_FRAME = 80, 40
_FRAME, _FRAME_PER_CHARACTER = 64, 0.09
_MOST_OF_KERNEL, _MOST_OF_RENDERED = 240, 176
"""A function keeps at most so much beyond its arrays; one rendered for its layer spills less."""
_HOST = 2.5
"""A 64-bit machine has longer instructions, wider registers to spill, and vectorises."""


def stack_estimate(code: Code, runtime: dict[str, str], target: Target) -> int:
    """Return a bound of the stack: the frames of NAME_run, of one chain of rows and one kernel.

    Frames grow with the length of a function, up to all registers and what is spilled of them, and
    with the arrays in it and in what it calls. Calls into the C library are not counted.

    runtime  the text of every kernel and header by file name
    """
    factor = 1.0 if target.compiler else _HOST
    chains, rendered, symbols = [0.0], [], {k.symbol for k in code.kernels}
    for function in code.functions:
        if function.symbol == Striped.kernels[0].symbol:
            chains.append(_CHAIN_FRAME * factor + local_arrays(function.text))
        elif f"{function.symbol}.h" in runtime:
            symbols.add(function.symbol)
        else:
            rendered.append(function.text)
    library = "\n".join(text for name, text in sorted(runtime.items()) if name.endswith(".h"))
    called = _functions(library)
    rest = _FUNCTION.sub("", library)
    frames = [0.0]
    for symbol in sorted(symbols):
        size = _frame(runtime[f"{symbol}.h"], _MOST_OF_KERNEL) * factor
        frames.append(size + local_arrays(_reached(f"{symbol}_core", called), rest))
    for text in rendered:
        size = _frame(text, _MOST_OF_RENDERED) * factor
        frames.append(size + local_arrays(text + _reached(text, called), rest))
    return -(-int(_RUN_FRAME * factor + max(chains) + max(frames)) // 8) * 8


def _frame(text: str, most: float) -> float:
    return min(most, _FRAME + len(without_comments(text)) * _FRAME_PER_CHARACTER)


_FUNCTION = re.compile(
    r"^(?:GM_INLINE|GM_OUTLINE|static|__attribute__)[^;{}]*?\b(\w+)\([^;{}]*\)\n\{\n(.*?)^\}$",
    re.MULTILINE | re.DOTALL,
)


def _functions(text: str) -> dict[str, str]:
    """Return the bodies of the functions of a text; of several of one name all of them."""
    found: dict[str, str] = {}
    for name, body in _FUNCTION.findall(text):
        found[name] = found.get(name, "") + body
    return found


def _reached(start: str, functions: dict[str, str]) -> str:
    """Return the bodies of the functions that a text calls, directly or through one another."""
    seen: dict[str, str] = {}
    left = [start]
    while left:
        for name in re.findall(r"\w+", left.pop()):
            if name in functions and name not in seen:
                seen[name] = functions[name]
                left.append(functions[name])
    return "\n".join(seen.values())


def without_comments(text: str) -> str:
    """Return C without comments, with single spaces."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return re.sub(r"\s+", " ", text)


_SIZES = {"int8_t": 1, "uint8_t": 1, "int16_t": 2, "uint16_t": 2, "int64_t": 8, "double": 8}
_ARRAY = re.compile(
    r"^\s+(?:const )?(\w+) (\*+(?:const )?\*?)?\w+((?:\[[^\]\n]+\])+)( = [^;]*)?;", re.MULTILINE
)
_IN_REGISTERS = 4
"""So many elements with values of their own are no array once a compiler has seen them."""
_STRUCT = re.compile(r"typedef struct \{([^}]*)\} (\w+);")
_DEFINED = re.compile(r"^#\s*define (\w+) (\d+)\b", re.MULTILINE)


def local_arrays(text: str, definitions: str = "") -> int:
    """Return the bytes of the arrays, and of structs with arrays, in the functions of a text.

    definitions  text with macros and structs that it uses
    """
    defined = {name: int(value) for name, value in _DEFINED.findall(definitions)}
    structs = {n: _bytes_of_arrays(members, defined) for members, n in _STRUCT.findall(definitions)}
    total = _bytes_of_arrays(text, defined)
    for name, size in structs.items():
        total += size * len(re.findall(rf"^\s+{name} \w+(?: = [^;]*)?;", text, re.MULTILINE))
    return total


def _bytes_of_arrays(text: str, defined: dict[str, int]) -> int:
    def value(term: str) -> int:
        return int(term) if term.isdigit() else defined.get(term, 0)

    total = 0
    for kind, pointer, dimensions, initial in _ARRAY.findall(text):
        counts = re.findall(r"\[([^\]]+)\]", dimensions)
        numel = prod(sum(map(value, terms.split(" + "))) for terms in counts)
        if not (initial and numel <= _IN_REGISTERS):
            total += numel * (4 if pointer else _SIZES.get(kind, 4))
    return total
