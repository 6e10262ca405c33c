"""Between elements that share bytes and elements of a byte each: small types in memory."""

from __future__ import annotations

from glowmcu.core.packing import loaded, stored
from glowmcu.core.types import Array
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder
from glowmcu.instr.instruction import In, Instruction, Out
from glowmcu.targets.kernel import Kernel


class Repack(Instruction):
    """y = x with elements of 4 or 2 bits a byte each, sign-extended, or packed as in ONNX."""

    y: Out
    x: In
    count: int
    bits: int
    is_signed: int

    kernels = (
        Kernel(
            "gm_pack",
            core=True,
            accepts=lambda i: "" if i.y.type.packed else "packs",
            in_place=lambda _: (("y", "x"),),
        ),
        Kernel("gm_unpack", core=True),
    )
    takes_packed = True

    def reference(self, x: Array) -> Array:
        if self.y.type.packed:
            return stored(x, self.y.type)
        return loaded(x, self.x.type)


def unpacked(b: Builder, x: Buffer) -> Buffer:
    """Return a buffer with a byte or more for each element of x: x itself where it is such."""
    if not x.type.packed:
        return x
    y = b.activation(x.type.in_bytes(), f"{x.name}.bytes")
    _emit(b, y, x)
    return y


def emit_packed(b: Builder, y: Buffer, x: Buffer) -> None:
    """Emit what packs x into y."""
    _emit(b, y, x)


def _emit(b: Builder, y: Buffer, x: Buffer) -> None:
    dtype = x.type.dtype
    signed = int(dtype.kind == "int")
    b.emit(Repack(y=y, x=x, count=x.type.numel, bits=dtype.bits, is_signed=signed))
