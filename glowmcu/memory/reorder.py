"""The order of instructions once kernels are known: scratch, and results over dying operands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

from glowmcu.core.order import Step, Steps, best_order
from glowmcu.core.passes import record
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Function
from glowmcu.instr.instruction import Instruction, Operand
from glowmcu.memory.lifetime import lifetimes
from glowmcu.memory.plan import plan
from glowmcu.memory.share import share_in_place

_MOST = 200


def reorder(function: Function) -> Function:
    """Return the function in an order of less memory, if there is one.

    The graph was scheduled by the sizes of its tensors alone; here scratch counts too, and what
    kernels declare about results in place of operands.
    """
    count = len(function.instructions)
    settled = any(i.choices() or i.loop is not None for i in function.instructions)
    if not 2 < count <= _MOST or settled:
        return function
    steps = steps_of(function)
    order, given = best_order(steps), range(count)
    if steps.run(order)[0] >= steps.run(given)[0]:
        return function
    changed = replace(function, instructions=tuple(function.instructions[n] for n in order))
    before, after = (plan(share_in_place(f), quick=True).size for f in (function, changed))
    if after >= before:
        return function
    record("order")
    return changed


def steps_of(function: Function) -> Steps:
    """Return what every instruction does to the bytes that are live."""
    spans = lifetimes(function)
    roots = [root for root in spans if root.kind != "scratch"]
    numbers = {root: number for number, root in enumerate(roots)}
    given = {b.root for b in function.given}
    kept = {b.root for b in function.kept}
    born = {root: -1 if root in given else spans[root][0] for root in roots}

    def step(index: int, instruction: Instruction) -> Step:
        written = {b.root for b in instruction.outputs()}
        new = [root for root in roots if root in written and born[root] == index]
        used = dict.fromkeys(o.buffer.root for o in operands(instruction) if o.role != "out")
        used |= dict.fromkeys(root for root in roots if root in written and root not in new)
        scratch = instruction.scratch.nbytes if instruction.scratch is not None else 0
        over = {
            numbers[x.root]: size
            for x, size in overlaps(instruction)
            if x.root in numbers and x.root not in kept
        }
        return Step(
            tuple(numbers[root] for root in used if root in numbers),
            tuple(numbers[root] for root in new),
            sum(root.nbytes for root in new) + scratch,
            over=tuple(over.items()),
        )

    return Steps(
        [step(n, i) for n, i in enumerate(function.instructions)],
        [root.nbytes for root in roots],
        frozenset(numbers[root] for root in kept if root in numbers),
        _pairs(function),
    )


def operands(instruction: Instruction) -> Iterator[Operand]:
    """Yield the operands of an instruction, the condition that guards it among them."""
    yield from instruction.operands()
    if instruction.guard is not None:
        yield Operand("", "in", instruction.guard.condition)


def _pairs(function: Function) -> Iterator[tuple[int, int]]:
    """Yield pairs of instructions that use one root, where one of them writes it."""
    uses: dict[Buffer, list[tuple[int, bool]]] = {}
    for index, instruction in enumerate(function.instructions):
        for operand in operands(instruction):
            if operand.buffer.root.kind != "constant":
                uses.setdefault(operand.buffer.root, []).append((index, operand.role != "in"))
    for found in uses.values():
        for (first, writes), (second, also) in combinations(found, 2):
            if first != second and (writes or also):
                yield first, second


def overlaps(instruction: Instruction) -> Iterator[tuple[Buffer, int]]:
    """Yield the operands over which a result may lie, and how many bytes they can share."""
    pairs = set(instruction.shares())
    found = list(instruction.operands())
    for y in found:
        for x in found:
            if (y.role, x.role) != ("out", "in") or not (_is_whole(y) and _is_whole(x)):
                continue
            size, other = y.buffer.nbytes, x.buffer.nbytes
            spans = [size + other]
            if (y.field, x.field) in pairs and size <= other:
                spans.append(other)
            for promise in instruction.overlaps():
                if (promise.output, promise.input) == (y.field, x.field):
                    low, high = min(promise.low, 0), max(promise.high, 0)
                    spans += [max(other, low + size) - low, max(other, high + size)]
            if min(spans) < size + other:
                yield x.buffer, size + other - min(spans)


def _is_whole(operand: Operand) -> bool:
    return operand.buffer.nbytes == operand.buffer.root.nbytes
