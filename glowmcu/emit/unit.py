"""CodeUnit: emitted files and facts as pure data; only `write` touches the disk."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from glowmcu.core.passes import PassRecord
from glowmcu.core.types import Array, TensorType
from glowmcu.errors import OptionError
from glowmcu.instr.buffer import Buffer
from glowmcu.targets.target import Target


class Plan(Protocol):
    """What emission needs of a memory plan."""

    @property
    def offsets(self) -> Mapping[Buffer, int]:
        """Bytes from the start of the arena, for every root buffer in it."""

    @property
    def size(self) -> int:
        """Bytes of the arena."""

    @property
    def align(self) -> int:
        """Alignment of the arena and of every offset."""

    @property
    def outside(self) -> Mapping[Buffer, int]:
        """The tensors that stay in the caller's memory, and the alignment of each."""

    @property
    def slow(self) -> Mapping[Buffer, int]:
        """Bytes from the start of a second, slower memory, for root buffers that lie there."""

    @property
    def slow_size(self) -> int:
        """Bytes of that memory."""

    @property
    def lower_bound(self) -> int:
        """Bytes that no plan for this order of instructions can go below."""

    @property
    def lifetimes(self) -> Mapping[Buffer, tuple[int, int]]:
        """First and last instruction during which a root buffer holds something, closed."""


@dataclass(frozen=True)
class ModelInfo:
    """Where a network comes from: what the banner and the report say beside the code.

    name    the model's file or graph name
    notes   sentences about what was decided on the way
    passes  records of the passes that ran, for the report
    quantization  how a float model was quantized, for the report
    extents  outputs whose shape depends on data -> the output that says their actual shape
    """

    name: str = ""
    sha256: str = ""
    notes: tuple[str, ...] = ()
    passes: tuple[PassRecord, ...] = ()
    opset: int = 0
    quantization: Mapping[str, Any] | None = None
    extents: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Slot:
    """A tensor that is visible from outside: an input, an output, a layer's result.

    name    the tensor's name; `id` its C identifier
    offset  bytes from the start of the arena, or of what `memory` names
    perm    the slot holds the ONNX tensor transposed by this, None: as it is
    memory  C identifier of the caller's tensor in whose memory it lies, "" for the arena
    align   what the address of that memory must be a multiple of, where that is asked for
    section the macro, after the network's prefix, that places that memory, "" for none
    """

    name: str
    id: str
    type: TensorType
    offset: int
    tensor: str = ""
    perm: tuple[int, ...] | None = None
    memory: str = ""
    align: int = 0
    section: str = ""


class Files(MutableMapping[str, str]):
    """Names of files with their texts; one given as a function is written when it is asked for."""

    def __init__(self, texts: Mapping[str, str | Callable[[], str]]) -> None:
        self._texts = dict(texts)

    def __getitem__(self, name: str) -> str:
        text = self._texts[name]
        if not isinstance(text, str):
            text = self._texts[name] = text()
        return text

    def __setitem__(self, name: str, text: str) -> None:
        self._texts[name] = text

    def __delitem__(self, name: str) -> None:
        del self._texts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


@dataclass(frozen=True)
class CodeUnit:
    """A network as C.

    files    name -> text, flat: everything that a compiler needs
    inputs   in the order of NAME_run's parameters, then the outputs
    layers   for each layer the slots that it writes
    headers  names of C library headers that the code includes beside those of freestanding C
    extents  outputs whose shape depends on data -> the output that says their actual shape
    constants  names and contents of the arrays in NAME_weights.c, where they are known
    work     slow memory that NAME_run gets last, where the arena is divided
    """

    name: str
    files: Mapping[str, str]
    report: dict[str, Any]
    target: Target
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    layers: tuple[tuple[Slot, ...], ...]
    arena_size: int
    arena_align: int
    headers: tuple[str, ...] = field(default=())
    extents: Mapping[str, str] = field(default_factory=dict)
    constants: tuple[tuple[str, Array], ...] = field(default=(), compare=False, repr=False)
    work: tuple[Slot, ...] = field(default=())

    @property
    def passed(self) -> tuple[Slot, ...]:
        """What NAME_run gets beside the arena."""
        return (*self.inputs, *self.outputs, *self.work)

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the C files to compile."""
        return tuple(n for n in self.files if n.endswith(".c"))

    def write(self, directory: Path | str) -> None:
        """Write every file; see `write_files`."""
        write_files(self.files, directory)


def write_files(files: Mapping[str, str], directory: Path | str) -> None:
    """Write files into a folder; nothing is replaced unless everything could be written.

    Files of other origin in the folder stay. Raise OptionError where the folder cannot be written.
    """
    place = Path(directory)
    try:
        place.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=".glowmcu-", dir=place))
    except OSError as error:
        raise _unwritable(place, error) from error
    try:
        for name, text in files.items():
            (fresh / name).write_text(text, encoding="utf-8", newline="\n")
        blocked = next((n for n in files if (place / n).is_dir()), None)
        if blocked:
            raise IsADirectoryError(None, "a folder has that name", blocked)
        for name in files:
            os.replace(fresh / name, place / name)
    except OSError as error:
        raise _unwritable(place, error) from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _unwritable(place: Path, error: OSError) -> OptionError:
    reason = error.strerror or str(error)
    return OptionError(
        f"the output folder '{place}' cannot be written",
        why=f"{reason}: {error.filename}" if error.filename else reason,
        hint="choose another folder, or make this one writable",
    )
