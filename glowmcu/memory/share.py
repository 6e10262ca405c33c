"""Passes that save memory and copies: results over dying operands, parts straight into the whole.

They rest on what instructions declare (which operands are written, which pairs may share an
address, what is a plain copy), never on what an instruction is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from glowmcu.core.passes import record
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Function
from glowmcu.instr.instruction import Instruction
from glowmcu.instr.loop import Loop, loop_spans, nest_of
from glowmcu.instr.loop_head import LoopHead
from glowmcu.memory.lifetime import through_loops
from glowmcu.memory.uses import THROUGH, Move, Places, Use

Pairs = set[tuple[str, str]]
"""(output field, input field) pairs of an instruction that may lie at one address."""


def eliminate_dead_stores(function: Function) -> Function:
    """Drop instructions whose results are neither read nor returned."""
    wanted: dict[Buffer, list[tuple[int, int]]] = {}

    def want(buffer: Buffer) -> None:
        wanted.setdefault(buffer.root, []).append(_range(buffer))

    def is_wanted(buffer: Buffer) -> bool:
        start, stop = _range(buffer)
        return any(start < b and a < stop for a, b in wanted.get(buffer.root, ()))

    for output in function.kept:
        want(output)
    kept: list[Instruction] = []
    turning: set[Loop] = set()
    next_turn = _read_in_next_turn(function)
    for index, instruction in reversed(tuple(enumerate(function.instructions))):
        for buffer in next_turn.get(index, ()):
            want(buffer)
        is_head = isinstance(instruction, LoopHead) and instruction.loop in turning
        if is_head or any(is_wanted(b) for b in instruction.outputs()):
            kept.append(instruction)
            turning.update(nest_of(instruction.loop))
            for buffer in instruction.inputs():
                want(buffer)
        else:
            record("dead store")
    return replace(function, instructions=tuple(reversed(kept)))


def _read_in_next_turn(function: Function) -> dict[int, list[Buffer]]:
    """Return, for the last instruction of each loop, what the next iteration may read of this one.

    That is what is read in the loop and lives through it.
    """
    spans = loop_spans(function.instructions)
    if not spans:
        return {}
    uses = Places(function).uses.items()
    through = set(through_loops(function, [(u.index, root) for root, us in uses for u in us]))
    found: dict[int, list[Buffer]] = {}
    for first, last in spans.values():
        for instruction in function.instructions[first : last + 1]:
            read = (b for b in instruction.inputs() if (b.root, (first, last)) in through)
            found.setdefault(last, []).extend(read)
    return found


def _range(buffer: Buffer) -> tuple[int, int]:
    start = buffer.root_offset
    return start, start + buffer.nbytes


def eliminate_copies(function: Function) -> Function:
    """Drop copies by giving both sides one place, where that does not raise the peak of memory."""
    places = Places(function)
    saved = [_in_place_bytes(places, i, n) for n, i in enumerate(function.instructions)]
    removed: set[int] = set()
    for index, instruction in enumerate(function.instructions):
        if instruction.is_copy and _eliminate(places, index, instruction, saved):
            places.forget(index)
            removed.add(index)
    kept = tuple(i for n, i in enumerate(function.instructions) if n not in removed)
    return places.rebuild(replace(function, instructions=kept))


def _in_place_bytes(places: Places, instruction: Instruction, index: int) -> int:
    """Return the bytes that sharing in place may save at an instruction."""
    saved = 0
    for y in instruction.outputs():
        saved += max(
            (
                min(y.nbytes, x.nbytes)
                for out, x in _pairs(instruction)
                if out is y and places.span(x.root)[1] == index
            ),
            default=0,
        )
    return saved


def _eliminate(places: Places, index: int, copy: Instruction, saved: list[int]) -> bool:
    """Put both sides of a copy in one place if that is sound and cheap."""
    target, origin = copy.operands()
    y, x, pair = target.buffer, origin.buffer, {(target.field, origin.field)}
    if places.where(y) == places.where(x):
        record("copy onto itself")
        return True
    # Sharing in place comes later and lowers the peak: a move is measured against that.
    peak = max(live - s for live, s in zip(places.live, (0, *saved, 0), strict=True))
    source = places.where(x)[0]
    for move in places.moves(y, x):
        before, after = places.peaks(move)
        sound = _stays_equal(places, move, index) or _takes_turns(places, move, index, pair)
        written = any(u.role != "in" and u.index != index for u in places.uses[move.root])
        if move.into.kind == "argument" and written:
            continue
        if sound and after <= max(before, peak):
            record("written in place" if move.root is source else "copy forwarded")
            places.merge(move)
            return True
    return False


def _stays_equal(places: Places, move: Move, index: int) -> bool:
    """Tell whether both sides of a copy hold the same bytes as long as both are needed.

    Before the copy only the source may be in use; after it neither may change, or only one of them
    is used any more.
    """
    mine, theirs = places.around(move)
    copied = next(use for use in mine if use.index == index and use.field != THROUGH)
    if copied.stop - copied.start != move.root.nbytes:
        return False
    mine = [use for use in mine if use.index != index]
    theirs = [use for use in theirs if use.index != index]
    if copied.role == "in":  # the source moves to where its copy goes
        born = min((use.index for use in mine), default=index)
        early = any(born < use.index < index for use in theirs)
        early = early or not _gives_way(places, mine, theirs, born)
    else:
        early = any(use.index < index for use in mine)
    after = [[use for use in uses if use.index > index] for uses in (mine, theirs)]
    changed = any(use.role != "in" for uses in after for use in uses)
    return not early and not (changed and all(after))


def _gives_way(places: Places, mine: list[Use], theirs: list[Use], born: int) -> bool:
    """Tell whether the instruction that writes `mine` first may do so over what it uses there."""
    pairs = set(places.function.instructions[born].shares()) if mine else set()
    return all(
        may_overlap(pairs, one, other)
        for one in mine
        for other in theirs
        if one.index == other.index == born and one.meets(other.start, other.stop)
    )


def share_in_place(function: Function) -> Function:
    """Put results over operands that die in the same instruction, where the kernel allows it."""
    places = Places(function)
    for index, instruction in enumerate(function.instructions):
        for y in dict.fromkeys(out for out, _ in _pairs(instruction)):
            moves = [
                (places.peaks(move)[1], number, move)
                for number, move in enumerate(_in_place_moves(places, index, instruction, y))
            ]
            if moves:
                record("in place")
                places.merge(min(moves)[2])
    return places.rebuild(function)


def _in_place_moves(
    places: Places, index: int, instruction: Instruction, y: Buffer
) -> Iterator[Move]:
    """Yield the sound and useful ways to put result y over an operand."""
    for out, x in _pairs(instruction):
        if out is not y:
            continue
        for move in places.moves(y, x):
            allowed = move.into.kind != "argument"
            sound = allowed and _takes_turns(places, move, index, set(instruction.shares()))
            if sound and _pays(places, move, index):
                yield move


def _pays(places: Places, move: Move, index: int) -> bool:
    """Tell whether a move saves memory.

    One buffer for two of different sizes keeps the larger size for the life of both. Where the two
    meet at this instruction only, the plan can overlap them without that price.
    """
    if move.root.nbytes == move.into.nbytes or not move.into.in_arena:
        return True
    (first, last), (start, stop) = places.span(move.root), places.span(move.into)
    if last == start == index or stop == first == index:
        return False
    before, after = places.peaks(move)
    return after < before


def _takes_turns(places: Places, move: Move, index: int, pairs: Pairs) -> bool:
    """Tell whether the bytes of a move have one owner up to an instruction and one from there on.

    At the instruction itself operands may lie over one another only as its declared pairs say.
    """
    mine, theirs = places.around(move)
    if not (_ends_before(mine, theirs, index) or _ends_before(theirs, mine, index)):
        return False
    return all(
        may_overlap(pairs, a, b)
        for a in mine
        for b in theirs
        if a.index == b.index and a.meets(b.start, b.stop)
    )


def _ends_before(one: list[Use], other: list[Use], index: int) -> bool:
    return all(use.index <= index for use in one) and all(use.index >= index for use in other)


def may_overlap(pairs: Pairs, one: Use, other: Use) -> bool:
    """Tell whether two overlapping operands are a declared pair, lying exactly in place."""
    y, x = (one, other) if one.role == "out" else (other, one)
    in_place = (y.role, x.role) == ("out", "in") and y.start == x.start and y.stop <= x.stop
    return in_place and (y.field, x.field) in pairs


def _pairs(instruction: Instruction) -> Iterator[tuple[Buffer, Buffer]]:
    """Yield the results and operands that an instruction may compute at one address."""
    declared = set(instruction.shares())
    if not declared or instruction.is_copy:
        return
    operands = tuple(instruction.operands())
    for y in operands:
        for x in operands:
            is_pair = (y.role, x.role) == ("out", "in") and (y.field, x.field) in declared
            if is_pair and y.buffer.nbytes <= x.buffer.nbytes and x.buffer.root.kind != "constant":
                yield y.buffer, x.buffer
