"""C identifiers: made from ONNX names so that they are valid, distinct, stable and clash-free."""

from __future__ import annotations

import re
from collections.abc import Iterable

from glowmcu.errors import OptionError

_KEYWORDS = frozenset(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t
    char8_t class co_await co_return co_yield compl concept const const_cast consteval constexpr
    constinit continue decltype default delete do double dynamic_cast else enum explicit export
    extern false float for friend goto if import inline int long module mutable namespace new
    noexcept not not_eq nullptr operator or or_eq override private protected public register
    reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast
    struct switch template this thread_local throw true try typedef typeid typename typeof union
    unsigned using virtual void volatile wchar_t while xor xor_eq
    """.split()
)
"""Keywords of C and C++ in lower case; identifiers made here are lower case as well."""

_TAKEN = frozenset(
    """
    arena asm assert bytes complex daylight environ errno far final huge i386 imaginary interrupt
    linux main near noreturn null offsetof pascal setjmp signgam stderr stdin stdout timezone unix
    int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t size_t uintptr_t ptrdiff_t
    memcpy memmove memset at done i j row slow status real stored value whole rest
    """.split()
)
"""Other words that are macros somewhere, or that the generated code uses itself."""

_STANDARD_HEADERS = frozenset(
    """
    assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign
    stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string strings tgmath threads
    time uchar unistd wchar wctype features endian memory new malloc alloca
    """.split()
)
"""A network of such a name would hide a header of the C library."""


def identifier(text: str) -> str:
    """Return a lower-case C identifier that reads like `text` and is neither keyword nor macro."""
    name = re.sub(r"[^0-9a-z]+", "_", text.lower()).strip("_")[:40].rstrip("_")
    if not name:
        return "tensor"
    if name[0].isdigit():
        name = f"n{name}"
    return f"{name}_" if name in _KEYWORDS or name in _TAKEN else name


def short(text: str, limit: int = 64) -> str:
    """Return a name of at most `limit` characters for a comment: the middle of a long one left out.

    Converters join the names of fused layers by semicolons: the first and the last are kept.
    """
    if len(text) <= limit:
        return text
    parts = text.split(";")
    if len(parts) > 2:
        ends = f"{parts[0]};...;{parts[-1]}"
        if len(ends) <= limit:
            return ends
    half = (limit - 3) // 2
    return f"{text[:half]}...{text[-half:]}"


def distinct(texts: Iterable[str]) -> tuple[str, ...]:
    """Return an identifier for each text, all different; the first of equals keeps its name."""
    wanted = [identifier(t) for t in texts]
    used: set[str] = set()
    result: list[str] = []
    for name in wanted:
        candidate, number = name, 2
        while candidate in used or (number > 2 and candidate in wanted):
            candidate, number = f"{name.rstrip('_')}_{number}", number + 1
        used.add(candidate)
        result.append(candidate)
    return tuple(result)


def model_name(text: str) -> str:
    """Return the prefix of a network's files and C symbols made from a file or graph name."""
    if not _fault(text):
        return text
    name = identifier(text)
    return f"model_{name}" if _fault(name) else name


def check_model_name(name: str) -> str:
    """Return a name that the user chose; raise OptionError for one that cannot prefix C symbols."""
    fault = _fault(name)
    if fault:
        hint = f"for example --name {model_name(name)}"
        raise OptionError(f"the name '{name}' cannot be used", why=fault, hint=hint)
    return name


def _fault(name: str) -> str:
    """Return why a name cannot be that of a network, "" if it can."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
        return "files and C symbols start with it, so it must be a letter, then letters, digits, _"
    if len(name) > 48:
        return "it is longer than 48 characters"
    if name.lower() in _KEYWORDS:
        return "it is a keyword of C or C++"
    if name.lower() in _STANDARD_HEADERS:
        return f"{name}.h would hide a header of the C library"
    if name.lower() == "gm" or name.lower().startswith("gm_"):
        return "symbols that start with gm_ are glowmcu's kernels"
    return ""
