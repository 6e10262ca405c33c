"""Proof that a memory plan is sound, written apart from the code that makes plans.

Three questions, none of which looks at the plan's own lifetimes: do buffers that hold something at
the same time lie apart; does every instruction lay operands over one another only as it declares;
and, walking through the function, does every operand read what was last written there?
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Protocol

from glowmcu.core.passes import IllFormedError
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Function
from glowmcu.instr.instruction import Instruction, Operand
from glowmcu.instr.loop import loop_spans
from glowmcu.instr.striped import Striped
from glowmcu.memory.check_rows import Contents, check_steps, walk_steps


class Plan(Protocol):
    """What is checked of a plan."""

    @property
    def offsets(self) -> Mapping[Buffer, int]:
        """Address of every root buffer."""

    @property
    def size(self) -> int:
        """Bytes of the arena."""

    @property
    def extent(self) -> int:
        """Bytes of the arena and of the caller's memory, which lies at addresses beyond it."""

    @property
    def align(self) -> int:
        """Alignment of the arena."""

    @property
    def outside(self) -> Mapping[Buffer, int]:
        """Alignment of each tensor of the caller's."""

    @property
    def slow(self) -> Mapping[Buffer, int]:
        """What lies in a second memory, and how far from its start."""

    @property
    def slow_size(self) -> int:
        """Bytes of that memory."""

    @property
    def slow_at(self) -> int:
        """The address that stands for its start."""


def check(function: Function, plan: Plan) -> None:
    """Raise IllFormedError, with names and addresses, unless the plan is sound."""
    _check_bounds(function, plan)
    _check_outside(function, plan)
    _check_apart(function, plan)
    for number, instruction in enumerate(function.instructions):
        if isinstance(instruction, Striped):
            check_steps(number, instruction, lambda b: _addresses(b, plan)[0])
        else:
            _check_operands(number, instruction, plan)
    _check_contents(function, plan)


def _check_bounds(function: Function, plan: Plan) -> None:
    for buffer in function.buffers():
        root = buffer.root
        if root.kind == "constant":
            continue
        if root not in plan.offsets:
            raise IllFormedError(f"the plan has no address for {root.name}")
        start, stop = _addresses(buffer, plan)
        need = buffer.type.dtype.nbytes if buffer.kind != "scratch" else 4
        align = plan.align
        if root.is_outside:
            start, align = buffer.root_offset, plan.outside[root]
        elif root in plan.slow:
            low, high = plan.slow_at, plan.slow_at + plan.slow_size
            if start < low or stop > high or plan.offsets[root] != low + plan.slow[root]:
                raise IllFormedError(f"{_at(buffer, plan)} leaves the slow memory [{low}, {high})")
            start -= low
        elif start < 0 or stop > plan.size:
            raise IllFormedError(f"{_at(buffer, plan)} leaves the arena of {plan.size} bytes")
        if start % need or align % need:
            raise IllFormedError(f"{_at(buffer, plan)} is not aligned to {need} bytes")


def _check_outside(function: Function, plan: Plan) -> None:
    """The caller's tensors lie beyond the arena, apart from all others; inputs are only read."""
    outside = {b.root for b in function.buffers() if b.is_outside and b.root.nbytes}
    end = plan.slow_at + plan.slow_size if plan.slow else plan.size
    for root in sorted(outside, key=lambda b: plan.offsets[b]):
        start, stop = _addresses(root, plan)
        if start < end or stop > plan.extent:
            raise IllFormedError(f"{_at(root, plan)} does not lie by itself outside the arena")
        end = stop
    for number, instruction in enumerate(function.instructions):
        for operand in instruction.operands():
            if operand.role != "in" and operand.buffer.root.kind == "argument":
                raise IllFormedError(
                    f"instruction {number} '{instruction.name}' writes the caller's "
                    f"{_at(operand.buffer, plan)}"
                )


def _check_apart(function: Function, plan: Plan) -> None:
    """Every two roots that are used over a common span of instructions must lie apart.

    An instruction that both ends one and begins the other is left to the check of its operands.
    """
    used: dict[Buffer, list[int]] = {}
    for buffer in function.given:
        used.setdefault(buffer.root, []).append(-1)
    for number, instruction in enumerate(function.instructions):
        for buffer in _operand_buffers(instruction):
            used.setdefault(buffer.root, []).append(number)
    for buffer in function.kept:
        used.setdefault(buffer.root, []).append(len(function.instructions))
    for indices in used.values():
        indices += _back_edges(function, indices)
    arena = [b for b in used if b.kind != "constant" and b.nbytes]
    for one, other in combinations(arena, 2):
        (a, b), (c, d) = _addresses(one, plan), _addresses(other, plan)
        if b <= c or d <= a:
            continue
        start = max(min(used[one]), min(used[other]))
        stop = min(max(used[one]), max(used[other]))
        handed_over = start == stop and 0 <= start < len(function.instructions)
        if start < stop or (start == stop and not handed_over):
            raise IllFormedError(
                f"{_at(one, plan)} and {_at(other, plan)} overlap and are both in use from "
                f"instruction {start} to {stop}"
            )


def _back_edges(function: Function, used: list[int]) -> list[int]:
    """Return the ends of the loops that a root enters or leaves: from turn to turn it stays."""
    ends: list[int] = []
    for first, last in loop_spans(function.instructions).values():
        inside = [index for index in used if first <= index <= last]
        if inside and len(inside) < len(used):
            ends += [first, last]
    return ends


def _check_operands(number: int, instruction: Instruction, plan: Plan) -> None:
    """Overlapping operands must both be read, or be a declared pair at one address."""
    operands = [o for o in instruction.operands() if o.buffer.root.kind != "constant"]
    if instruction.scratch is not None:
        operands.append(Operand("scratch", "out", instruction.scratch))
    for one, other in combinations(operands, 2):
        (a, b), (c, d) = _addresses(one.buffer, plan), _addresses(other.buffer, plan)
        if b <= c or d <= a or one.role == other.role == "in":
            continue
        y, x = (one, other) if one.role == "out" else (other, one)
        if (y.role, x.role) != ("out", "in") or not _is_declared(instruction, y, x, plan):
            raise IllFormedError(
                f"instruction {number} {type(instruction).__name__} '{instruction.name}' does not "
                f"allow {y.field} {_at(y.buffer, plan)} over {x.field} {_at(x.buffer, plan)}"
            )


def _is_declared(instruction: Instruction, y: Operand, x: Operand, plan: Plan) -> bool:
    distance = _addresses(y.buffer, plan)[0] - _addresses(x.buffer, plan)[0]
    pair = (y.field, x.field)
    in_place = pair in instruction.shares() and y.buffer.nbytes <= x.buffer.nbytes
    return (in_place and distance == 0) or any(
        (o.output, o.input) == pair and not o.low < distance < o.high
        for o in instruction.overlaps()
    )


def _check_contents(function: Function, plan: Plan) -> None:
    """Walk through the function: what a root would hold alone, the arena must hold in its place."""
    contents = Contents.of(function, lambda b: _addresses(b, plan)[0])
    for buffer in function.given:
        contents.write(buffer, "the caller")
    _walk(function, contents, 0, len(function.instructions))
    for buffer in function.kept:
        contents.read(buffer, "the caller")


def _walk(function: Function, contents: Contents, start: int, stop: int) -> None:
    """Walk through instructions [start, stop): a loop twice, and past it as if it had no turn.

    The second turn meets everything that a turn leaves behind; later ones are like it.
    """
    ends = {first: last for first, last in loop_spans(function.instructions).values()}
    index = start
    while index < stop:
        _step(function, contents, index)
        if index in ends:
            untouched = contents.copy()
            for _ in range(2):
                _walk(function, contents, index + 1, ends[index] + 1)
                _step(function, contents, index)
            contents.lose(untouched, f"what the loop at instruction {index} may leave out")
            index = ends[index]
        index += 1


def _step(function: Function, contents: Contents, number: int) -> None:
    """Run the marks through one instruction."""
    instruction = function.instructions[number]
    name = f"instruction {number} '{instruction.name}'"
    if instruction.guard is not None:
        contents.read(instruction.guard.condition, name)
    if isinstance(instruction, Striped):
        walk_steps(number, instruction, contents)
        return
    for buffer in instruction.inputs():
        if buffer.root.kind != "constant":
            contents.read(buffer, name)
    written = list(instruction.outputs())
    written += [instruction.scratch] if instruction.scratch else []
    for buffer in written:
        contents.write(buffer, name)


def _operand_buffers(instruction: Instruction) -> list[Buffer]:
    scratch = [instruction.scratch] if instruction.scratch is not None else []
    guard = [instruction.guard.condition] if instruction.guard is not None else []
    return [*(o.buffer for o in instruction.operands()), *scratch, *guard]


def _addresses(buffer: Buffer, plan: Plan) -> tuple[int, int]:
    start = plan.offsets[buffer.root] + buffer.root_offset
    return start, start + buffer.nbytes


def _at(buffer: Buffer, plan: Plan) -> str:
    start, stop = _addresses(buffer, plan)
    return f"{buffer.name} [{start}, {stop})"
