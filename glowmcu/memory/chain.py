"""A chain of instructions as one Striped: the order of its steps, pools for its inner rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from glowmcu.core import dtypes
from glowmcu.core.types import TensorType
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Function
from glowmcu.instr.instruction import Instruction, RowWindow
from glowmcu.instr.striped import Feed, Form, Member, Pooled, Striped, height, row_bytes, spatial
from glowmcu.targets.kernel import Kernel

Steps = tuple[tuple[int, int], ...]
MAX_PLACES = 255

Offered = Callable[[Kernel, Instruction], bool]
"""Tells whether a kernel can be used for an instruction."""


@lru_cache(maxsize=1024)
def row_form(
    instruction: Instruction, offered: Offered, *, lean: bool = False
) -> tuple[Instruction, Form] | None:
    """Return an instruction with a kernel that makes rows, and how; None if there is none.

    lean: rather with a kernel that needs no scratch.
    """
    if not _has_rows(instruction) or instruction.kernel is None:
        return None
    found: tuple[Instruction, Form] | None = None
    inputs = spatial(instruction).values()
    if all(_is_one_piece(x, w) for x, w in inputs):
        one = instruction.at_row(0)
        if one is not None and not instruction.kernel.accepts(one):
            found = instruction, "call"
            if not lean or not instruction.kernel.scratch(one):
                return found
    for kernel in dict.fromkeys((instruction.kernel, *instruction.kernels)):
        if kernel.row is not None and offered(kernel, instruction):
            return replace(instruction, kernel=kernel), "row"  # type: ignore[type-var]
    return found


def _is_one_piece(x: Buffer, w: RowWindow) -> bool:
    """Tell whether what a row takes of an input lies in one piece: one row of it, or all."""
    return w.pad == 0 and (w.kernel == 1 or _is_whole(x, w))


def _is_whole(x: Buffer, w: RowWindow) -> bool:
    return (w.kernel, w.stride) == (height(x), 0)


@lru_cache(maxsize=1024)
def scan_form(instruction: Instruction, offered: Offered) -> Instruction | None:
    """Return an instruction with a kernel that takes one input row after the other, if it can."""
    if not _has_rows(instruction) or instruction.kernel is None:
        return None
    windows = spatial(instruction)
    (y,) = instruction.outputs()
    if len(windows) != 1 or height(y) != 1:
        return None
    ((x, w),) = windows.values()
    rows = height(x)
    if (w.kernel, w.pad, w.dilation) != (rows, 0, 1) or rows == 1:
        return None
    for kernel in dict.fromkeys((instruction.kernel, *instruction.kernels)):
        if kernel.scan is not None and offered(kernel, instruction):
            return replace(instruction, kernel=kernel)  # type: ignore[type-var]
    return None


@lru_cache(maxsize=1024)
def _has_rows(instruction: Instruction) -> bool:
    """Tell whether all run-time operands are images of one sample, the inputs with windows."""
    images = {x for x, _ in spatial(instruction).values()}
    outputs = instruction.outputs()
    moving = [o for o in instruction.operands() if o.buffer.root.kind != "constant"]
    if not images or len(outputs) != 1 or any(o.role == "inout" for o in moving):
        return False
    if any(o.role == "in" and o.buffer not in images for o in moving):
        return False
    if any(o.buffer.type.rank != 4 or o.buffer.type.shape[0] != 1 for o in moving):
        return False
    if any(0 in o.buffer.type.shape for o in moving):
        return False
    return all(instruction.at_row(r) is not None for r in range(height(outputs[0])))


@dataclass(frozen=True)
class Chain:
    """Instructions [first, last) of a function."""

    function: Function
    first: int
    last: int

    @property
    def instructions(self) -> tuple[Instruction, ...]:
        """The instructions of the chain."""
        return self.function.instructions[self.first : self.last]

    def inner(self) -> set[Buffer]:
        """Return the roots that only the chain uses, always as the same image."""
        made = {b.root: b for i in self.instructions for b in i.outputs()}
        outside = {b.root for b in (*self.function.given, *self.function.kept)}
        for number, instruction in enumerate(self.function.instructions):
            for operand in instruction.operands():
                root, buffer = operand.buffer.root, operand.buffer
                inside = self.first <= number < self.last
                if root in made and (
                    not inside
                    or buffer.nbytes != root.nbytes
                    or buffer.type.shape[1:2] != made[root].type.shape[1:2]
                ):
                    outside.add(root)
        return set(made) - outside


def make_striped(
    chain: Chain, offered: Offered, align: int, *, descending: bool = False, lean: bool = False
) -> Striped | None:
    """Return a chain as one instruction; None where a member cannot run on rows.

    descending: from the last row to the first; lean: with kernels that need no scratch.
    """
    inner = chain.inner()
    members = _members(chain, inner, offered, lean=lean)
    if members is None or any(_reads_whole(m, inner) for m in members):
        return None
    if descending and any(m.form == "scan" for m in members):
        return None
    leaving = [b for m in members for b in [m.y] if b.root not in inner]
    entering = _entering(members)
    out = {b.root: b for b in leaving}
    if any(out.get(b.root, b) is not b for m in members for b in m.instruction.inputs()):
        return None  # a tensor that leaves is read in the chain under another shape
    is_fed = isinstance(members[0].instruction, Feed)
    if is_fed and (descending or members[0].y.root not in inner):
        return None
    steps = _schedule(members, inner, descending=descending)
    counter = None
    if is_fed:
        counter = Buffer("steps done", TensorType(dtypes.I32, (1,)), "scratch")
        entering = tuple(b for b in entering if b is not members[0].instruction.inputs()[0])
    draft = Striped(
        ys=tuple(dict.fromkeys(leaving)),
        pools=(),
        xs=entering,
        members=members,
        steps=steps,
        places={},
        descending=descending,
        counter=counter,
    )
    places = _pool_rows(draft, inner, max(4, align))
    if places is None:
        return None
    scratch = [m.scratch for m in members if m.scratch is not None]
    pools = [*dict.fromkeys(p.pool for p in places.values()), *scratch]
    pools += [] if counter is None else [counter]
    name = members[0].instruction.name
    if len(members) > 1:
        name += f" .. {members[-1].instruction.name}"
    origin = tuple(dict.fromkeys(o for m in members for o in m.instruction.origin))
    kernels = (m.instruction.kernel for m in members)
    requires = frozenset().union(*(k.requires for k in kernels if k is not None))
    kernel = replace(Striped.kernels[0], requires=requires)
    return replace(  # type: ignore[call-arg]
        draft, pools=tuple(pools), places=places, name=name, origin=origin, kernel=kernel
    )


def _members(
    chain: Chain, inner: set[Buffer], offered: Offered, *, lean: bool
) -> tuple[Member, ...] | None:
    members: list[Member] = []
    for number, whole in enumerate(chain.instructions):
        instruction = whole.by_rows()
        sources = [b.root for b in instruction.inputs() if b.root.kind != "constant"]
        scanning = scan_form(instruction, offered) if all(s in inner for s in sources) else None
        form: Form = "scan"
        if scanning is not None:
            bound = scanning
            assert bound.kernel is not None and bound.kernel.scan is not None
            size = bound.kernel.scan.scratch(bound)
        else:
            found = row_form(instruction, offered, lean=lean)
            if found is None:
                return None
            bound, form = found
            assert bound.kernel is not None
            if form == "row":
                assert bound.kernel.row is not None
                size = bound.kernel.row.scratch(bound)
            else:
                size = bound.kernel.scratch(bound.at_row(0))
        scratch = None
        if size:
            what = "sums" if form == "scan" else "scratch"
            name = f"{instruction.name}.{what}{chain.first + number}"
            scratch = Buffer(name, TensorType(dtypes.U8, (size,)), "scratch")
        bound = replace(bound, scratch=None)  # type: ignore[type-var]
        members.append(Member(bound, form, scratch))
    return tuple(members)


def _reads_whole(member: Member, inner: set[Buffer]) -> bool:
    """Tell whether a member takes more rows in one piece than there are of a tensor in a pool."""
    return member.form == "call" and any(
        w.kernel > 1 and x.root in inner for x, w in member.fields.values()
    )


def _entering(members: Sequence[Member]) -> tuple[Buffer, ...]:
    """Return what members read and none of them makes, constants included."""
    made = {m.y.root for m in members}
    every = [b for m in members for b in m.instruction.inputs()]
    return tuple(dict.fromkeys(b for b in every if b.root not in made))


def _schedule(members: Sequence[Member], inner: set[Buffer], *, descending: bool) -> Steps:
    """Return steps on demand: a row of the last member makes what it lacks, no row twice."""
    maker = {m.y.root: k for k, m in enumerate(members)}
    done = [0] * len(members)
    steps: list[tuple[int, int]] = []

    def row_of(k: int, turn: int) -> int:
        return members[k].count - 1 - turn if descending else turn

    def make(k: int) -> None:
        row = row_of(k, done[k])
        for _, x, rows in members[k].reads(row):
            source = maker.get(x.root)
            if source is None or not rows:
                continue
            count = members[source].count
            if members[source].form == "scan":
                need = count
            else:
                need = count - rows[0] if descending else rows[-1] + 1
            while done[source] < need:
                make(source)
        steps.append((k, row))
        done[k] += 1

    last = len(members) - 1
    for k in [last, *range(len(members))]:
        is_fed = isinstance(members[k].instruction, Feed)
        if k == last or is_fed or members[k].y.root not in inner:
            while done[k] < members[k].count:
                make(k)
    return tuple(steps)


def _pool_rows(draft: Striped, inner: set[Buffer], align: int) -> dict[Buffer, Pooled] | None:
    """Give every row of every inner tensor a place: rows of one size share a pool.

    In the order in which rows are made, each takes a place whose row is dead, best one that dies in
    this very step where the kernel allows that; so there are as many places as rows live at once.
    """
    lives = _row_lives(draft, inner)
    classes: dict[int, list[tuple[int, int, Buffer, int]]] = {}
    for (tensor, row), (birth, death) in lives.items():
        pitch = -(-row_bytes(_image(draft, tensor)) // align) * align
        classes.setdefault(pitch, []).append((birth, death, tensor, row))
    places: dict[Buffer, Pooled] = {}
    for pitch, rows in classes.items():
        rows.sort(key=lambda r: (r[0], r[3]))
        chosen, count = _colour(draft, rows)
        if count > MAX_PLACES:
            return None
        pool = Buffer(f"rows of {pitch} bytes", TensorType(dtypes.U8, (count * pitch,)), "scratch")
        for tensor in dict.fromkeys(r[2] for r in rows):
            image = _image(draft, tensor)
            spots = tuple(chosen.get((tensor, r), 0) for r in range(height(image)))
            places[tensor] = Pooled(pool, pitch, spots)
    return places


def _image(draft: Striped, tensor: Buffer) -> Buffer:
    return next(m.y for m in draft.members if m.y.root is tensor)


def _row_lives(draft: Striped, inner: set[Buffer]) -> dict[tuple[Buffer, int], tuple[int, int]]:
    lives: dict[tuple[Buffer, int], tuple[int, int]] = {}
    for number in range(len(draft.steps)):
        for access in draft.accesses[number]:
            if access.tensor in inner:
                key = (access.tensor, access.row)
                lives[key] = (lives.get(key, (number, number))[0], number)
    return lives


def _colour(
    draft: Striped, rows: Sequence[tuple[int, int, Buffer, int]]
) -> tuple[dict[tuple[Buffer, int], int], int]:
    """Return the place of every (tensor, row), and how many places there are."""
    busy: list[tuple[int, Buffer]] = []
    chosen: dict[tuple[Buffer, int], int] = {}
    for birth, death, tensor, row in rows:
        member = draft.members[draft.steps[birth][0]]
        place = None
        for k, (end, before) in enumerate(busy):
            if end == birth and member.form != "scan":
                read = any(x.root is before for x, _ in member.fields.values())
                if read and not any(low < 0 < high for low, high in member.forbidden(before)):
                    place = k
        if place is None:
            free = (k for k, (end, _) in enumerate(busy) if end < birth)
            place = next(free, len(busy))
        if place == len(busy):
            busy.append((death, tensor))
        busy[place] = (death, tensor)
        chosen[tensor, row] = place
    return chosen, len(busy)
