"""Run a network's C on this machine: built once into a shared library, called through ctypes."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.packing import loaded, stored
from glowmcu.core.types import Array
from glowmcu.emit.unit import CodeUnit, Slot
from glowmcu.errors import InvalidModelError, ToolMissingError, VerificationError
from glowmcu.targets.target import Target, target

FLAGS = ("-std=c99", "-O2", "-ffp-contract=off")
_GUARD = 64
_LARGE = 8 << 20
_KEPT = 256
_POISON = 0xA5
_TRACE_HEADER = """\
#include <stdint.h>
extern void (*glowmcu_trace)(int32_t layer);
#define {name}_HOOK_END(layer) (glowmcu_trace ? glowmcu_trace(layer) : (void)0)
"""
_TRACE_SOURCE = """\
#include <stdint.h>
extern void (*glowmcu_trace)(int32_t layer);
void (*glowmcu_trace)(int32_t layer);
"""


def find_compiler(wanted: str = "") -> str:
    """Return the path of a C compiler of this machine; raise ToolMissingError if there is none."""
    names = (
        (wanted,) if wanted else tuple(filter(None, (os.environ.get("CC"), "cc", "gcc", "clang")))
    )
    for name in names:
        found = shutil.which(name)
        if found:
            return found
    raise ToolMissingError(
        f"no C compiler was found (looked for {', '.join(names)})",
        why="the generated C is compiled for this machine to run it",
        hint="apt-get install gcc libc6-dev (Debian, Ubuntu), or set CC",
    )


@cache
def this_machine() -> Target:
    """Return the target whose code is the fastest that runs here."""
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        flags = ""
    vectors = "\nflags" in flags and " avx2 " in flags
    return target("x86-avx2" if vectors else "host")


def cache_folder() -> Path:
    """Return the folder for built libraries: in XDG_CACHE_HOME, ~/.cache, or the temporary one."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    for place in (Path(base) / "glowmcu", Path(tempfile.gettempdir()) / f"glowmcu-{os.getuid()}"):
        try:
            place.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError:
            continue
        if os.access(place, os.W_OK):
            return place
    raise VerificationError(
        "no folder for compiled libraries can be written", hint="set XDG_CACHE_HOME to one that can"
    )


def build_library(
    units: Sequence[CodeUnit],
    *,
    compiler: str = "",
    flags: tuple[str, ...] = FLAGS,
    trace: bool = False,
) -> Path:
    """Build networks of different names into one shared library; the same input is built once.

    Large weights are not compiled, which would take minutes: they are zeros until HostLibrary
    writes them.
    """
    program = find_compiler(compiler)
    files: dict[str, str] = {}
    for unit in units:
        given = {f"{unit.name}_weights.c": _room(unit)} if has_large_weights(unit) else {}
        names = [n for n in unit.files if n.endswith((".c", ".h"))]
        files.update({n: given[n] if n in given else unit.files[n] for n in names})
        if trace:
            files[f"{unit.name}_trace.h"] = _TRACE_HEADER.format(name=unit.name.upper())
    options = [*flags, *dict.fromkeys(f for u in units for f in _machine_flags(u))]
    if trace:
        files["glowmcu_trace.c"] = _TRACE_SOURCE
        options += [f'-D{u.name.upper()}_HOOK_HEADER="{u.name}_trace.h"' for u in units]
    state = os.stat(program)
    key = hashlib.sha256(repr((program, state.st_size, state.st_mtime_ns, options)).encode())
    for name in sorted(files):
        key.update(f"{name}\0{files[name]}\0".encode())
    library = cache_folder() / f"{key.hexdigest()[:32]}.so"
    try:
        os.utime(library)
    except FileNotFoundError:
        _prune(library.parent)
        sources = [n for n in files if n.endswith(".c")]
        compile_files(program, ["-shared", "-fPIC", *options], files, sources, library)
    return library


def _machine_flags(unit: CodeUnit) -> tuple[str, ...]:
    """Return what the compiler of this machine needs for the instructions that a unit uses."""
    return () if unit.target.compiler else unit.target.flags


def has_large_weights(unit: CodeUnit) -> bool:
    """Tell whether the weights are handed to a library in memory."""
    return sum(data.nbytes for _, data in unit.constants) > _LARGE


def _room(unit: CodeUnit) -> str:
    """Return C that has room for the weights: other weights make another library."""
    lines = [f"/* {digest_of_weights(unit)} */", "#include <stdint.h>"]
    lines += [f"{dtypes.of(data.dtype).c} {name}[{data.size}];" for name, data in unit.constants]
    return "\n".join([*lines, ""])


def digest_of_weights(unit: CodeUnit) -> str:
    """Return what tells apart the weights of networks with the same code."""
    digest = hashlib.sha256()
    for _, data in unit.constants:
        digest.update((data if any(data.strides) else data[:1]).tobytes())
    return digest.hexdigest()


def _prune(folder: Path) -> None:
    """Remove libraries but for those used last, so that the cache does not grow for ever."""
    for path in sorted(folder.glob("*.so"), key=_last_used, reverse=True)[_KEPT:]:
        path.unlink(missing_ok=True)


def _last_used(path: Path) -> int:
    """Return when a library was used, 0 where another process has removed it meanwhile."""
    try:
        return path.lstat().st_mtime_ns
    except FileNotFoundError:
        return 0


def compile_files(
    program: str, flags: Sequence[str], files: Mapping[str, str], sources: list[str], target: Path
) -> None:
    """Compile in a folder of its own beside `target`, then rename: others never see half a file."""
    with tempfile.TemporaryDirectory(prefix=".build-", dir=target.parent) as name:
        folder = Path(name)
        for file, text in files.items():
            (folder / file).write_text(text, encoding="utf-8", newline="\n")
        command = [program, *flags, "-I.", *sources, "-lm", "-o", "built"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if "error" in line.lower()]
            raise VerificationError(
                f"the generated C does not compile with {program}",
                why="\n         ".join(errors[:5]) or done.stderr[-500:],
            )
        os.replace(folder / "built", target)


class HostLibrary:
    """A network on this machine. Not for use by several threads at once."""

    def __init__(
        self,
        unit: CodeUnit,
        *,
        compiler: str = "",
        flags: tuple[str, ...] = FLAGS,
        trace: bool = False,
        library: Path | None = None,
    ) -> None:
        """Build the network, or take it from a `library` that was built with others.

        trace  keep the outputs of every layer for `run_traced`
        """
        self.unit = unit
        path = library or build_library([unit], compiler=compiler, flags=flags, trace=trace)
        self.library = ctypes.CDLL(str(path))
        self._trace = trace
        if has_large_weights(unit):
            for name, data in unit.constants:
                room = (ctypes.c_uint8 * data.nbytes).in_dll(self.library, name)
                np.frombuffer(memoryview(room), data.dtype)[...] = data
        self._run = self.library[f"{unit.name}_run"]
        self._run.restype = ctypes.c_int
        self._run.argtypes = [ctypes.c_void_p] * (1 + len(unit.passed))
        self._memory, self._arena = _guarded(unit.arena_size, max(unit.arena_align, 16))
        self._outside: dict[str, Array] = {}
        self._init = self.library[f"{unit.name}_init"]
        self._init.restype, self._init.argtypes = None, [ctypes.c_void_p]
        self.reset()

    def reset(self) -> None:
        """Forget what the network remembers between calls."""
        self._init(self._arena.ctypes.data)

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """Run one sample; stored arrays by input name, stored arrays by output name.

        Raises VerificationError when memory around the arena was written.
        """
        slots = self.unit.passed
        guarded = [_guarded(s.type.nbytes, max(s.align, 16)) for s in slots]
        self._outside = {s.id: own for s, (_, own) in zip(slots, guarded, strict=True)}
        given = {s.id: fitting(feeds, s).reshape(-1).view(np.uint8) for s in self.unit.inputs}
        for name, array in given.items():
            self._outside[name][...] = array
        status = self._run(
            self._arena.ctypes.data, *(own.ctypes.data for own in self._outside.values())
        )
        if status != 0:
            raise VerificationError(f"{self.unit.name}_run returned {status}")
        for memory, own in ((self._memory, self._arena), *guarded):
            self._check_guards(memory, own)
        for name, array in given.items():
            if not np.array_equal(self._outside[name], array):
                raise VerificationError(f"the network {self.unit.name} wrote to its input {name}")
        return {s.name: _stored(self._outside[s.id], s) for s in self.unit.outputs}

    def run_traced(
        self, feeds: Mapping[str, Array]
    ) -> tuple[dict[str, Array], list[tuple[Array, ...]]]:
        """Run one sample; return its outputs, and the arrays that each layer wrote."""
        if not self._trace:
            raise ValueError("build the library with trace=True")
        layers: list[tuple[Array, ...]] = []

        def after(layer: int) -> None:
            layers.append(tuple(self._slot(s).copy() for s in self.unit.layers[layer]))

        callback = ctypes.CFUNCTYPE(None, ctypes.c_int32)(after)
        pointer = ctypes.c_void_p.in_dll(self.library, "glowmcu_trace")
        pointer.value = ctypes.cast(callback, ctypes.c_void_p).value
        try:
            return self.run(feeds), layers
        finally:
            pointer.value = None

    def _slot(self, slot: Slot) -> Array:
        memory = self._outside[slot.memory] if slot.memory else self._arena
        return _stored(memory[slot.offset : slot.offset + slot.type.nbytes], slot)

    def _check_guards(self, memory: Array, own: Array) -> None:
        start = own.ctypes.data - memory.ctypes.data
        before, after = memory[:start], memory[start + own.size :]
        if np.any(before != _POISON) or np.any(after != _POISON):
            raise VerificationError(
                f"the network {self.unit.name} wrote outside its arena", why="a fault in glowmcu"
            )


def _guarded(size: int, align: int) -> tuple[Array, Array]:
    """Return memory full of poison, and `size` aligned bytes in it between two guards."""
    memory = np.full(size + align + 2 * _GUARD, _POISON, np.uint8)
    start = _GUARD + -(memory.ctypes.data + _GUARD) % align
    return memory, memory[start : start + size]


def _stored(piece: Array, slot: Slot) -> Array:
    return loaded(piece, slot.type)


def fitting(feeds: Mapping[str, Array], slot: Slot) -> Array:
    """Return the array of an input as C has it; raise InvalidModelError where it does not fit."""
    if slot.name not in feeds:
        raise InvalidModelError(
            f"there is no data for the input '{slot.name}'", where=f"given: {', '.join(feeds)}"
        )
    array = np.asarray(feeds[slot.name])
    if array.dtype != slot.type.dtype.numpy or array.size != slot.type.numel:
        raise InvalidModelError(
            f"the data of input '{slot.name}' do not fit it",
            why=f"it is {slot.type}, the array {array.dtype} of shape {array.shape}",
        )
    return stored(array, slot.type)
