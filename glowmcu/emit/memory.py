"""How C reaches a buffer: in the arena, or in other memory that NAME_run is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from glowmcu.emit.unit import Plan
from glowmcu.instr.buffer import Buffer

SLOW = "slow"
"""The parameter that points to the slow memory of a network whose arena is divided."""


@dataclass(frozen=True)
class Memory:
    """The memory of a network, as its C code names it.

    outside  the parameter that points to each tensor of the caller's
    """

    plan: Plan
    outside: Mapping[Buffer, str] = field(default_factory=dict)

    def home(self, buffer: Buffer) -> tuple[str, int]:
        """Return the parameter in whose memory a buffer (or view) lies, "" for the arena; and how
        many bytes from the start."""
        if buffer.nbytes and buffer.root in self.outside:
            return self.outside[buffer.root], buffer.root_offset
        if buffer.nbytes and buffer.root in self.plan.slow:
            return SLOW, self.plan.slow[buffer.root] + buffer.root_offset
        return "", address(buffer, self.plan)

    def pointer(self, buffer: Buffer) -> str:
        """Return the expression of a buffer's address, `void *` or `const void *`."""
        parameter, offset = self.home(buffer)
        if not parameter:
            return f"AT({offset})"
        const = "const " if buffer.root.kind == "argument" else ""
        if not offset:
            return f"({const}void *){parameter}"
        return f"({const}void *)(({const}uint8_t *){parameter} + {offset})"


def address(buffer: Buffer, plan: Plan) -> int:
    """Return the offset of a buffer (or view) in the arena; its end for a buffer without bytes.

    The plan may put a buffer without bytes where another one lies, which a kernel's `restrict`
    would not allow.
    """
    if buffer.nbytes == 0:
        return arena_size(plan)
    return plan.offsets[buffer.root] + buffer.root_offset


def arena_align(plan: Plan) -> int:
    """Return the alignment of the arena's type."""
    return max(plan.align, 8)


def arena_size(plan: Plan) -> int:
    """Return the size of the arena's type: that of the plan, aligned, and not zero."""
    return rounded(max(plan.size, 1), arena_align(plan))


def rounded(size: int, align: int) -> int:
    """Return a size rounded up to a multiple of an alignment, as C does with that of a type."""
    return -(-size // align) * align
