"""Buffer: a named piece of memory with a type; a view lies inside another buffer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from glowmcu.core.types import Array, TensorType

Kind = Literal["input", "state", "constant", "activation", "scratch", "argument", "result"]


@dataclass(frozen=True, eq=False)
class Buffer:
    """Memory for one tensor, dense and row-major.

    input       a slot in the arena that the caller fills
    state       in the arena, kept from one call to the next
    constant    in flash, with data
    activation  in the arena
    scratch     in the arena during one instruction
    argument    the caller's memory of an input: outside the arena, only read
    result      the caller's memory of an output: outside the arena
    A buffer with a `base` is a view: it lies `offset` bytes into its base and takes no memory.
    `tensor` and `perm` say which ONNX tensor the buffer holds (transposed by perm), "" if none.
    """

    name: str
    type: TensorType
    kind: Kind
    data: Array | None = field(default=None, repr=False)
    base: Buffer | None = field(default=None, repr=False)
    offset: int = 0
    tensor: str = ""
    perm: tuple[int, ...] | None = None

    @property
    def in_arena(self) -> bool:
        """Tell whether the memory belongs to the arena: not flash, not the caller's."""
        return self.root.kind not in ("constant", "argument", "result")

    @property
    def is_outside(self) -> bool:
        """Tell whether the memory is the caller's."""
        return self.root.kind in ("argument", "result")

    @property
    def nbytes(self) -> int:
        """Bytes of the dense tensor."""
        return self.type.nbytes

    @property
    def root(self) -> Buffer:
        """The buffer that owns the memory: the end of the chain of bases."""
        buffer = self
        while buffer.base is not None:
            buffer = buffer.base
        return buffer

    @property
    def root_offset(self) -> int:
        """Bytes from the start of the root to the start of this buffer."""
        total, buffer = 0, self
        while buffer.base is not None:
            total, buffer = total + buffer.offset, buffer.base
        return total
