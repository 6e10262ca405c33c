"""From a lowered function to C: kernels, memory plan, code, within the limits that were given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from glowmcu.core.passes import Pass, PassRecord, Runner, Stopped, Trace, as_pass
from glowmcu.emit.emitter import emit
from glowmcu.emit.estimate import kernel_code
from glowmcu.emit.memory import arena_align
from glowmcu.emit.unit import CodeUnit, ModelInfo
from glowmcu.errors import DoesNotFitError, Problem
from glowmcu.instr import printer
from glowmcu.instr.cost import cycles
from glowmcu.instr.function import Function
from glowmcu.instr.instruction import Instruction
from glowmcu.instr.striped import Striped
from glowmcu.instr.verify import verify
from glowmcu.lowering.flash import Saving
from glowmcu.lowering.outside import leave_tensors_outside
from glowmcu.lowering.repack import skip_packing
from glowmcu.lowering.select import is_wished, select_kernels
from glowmcu.lowering.stack import stack_maps
from glowmcu.memory import memory_passes
from glowmcu.memory.check import check
from glowmcu.memory.divide import divide
from glowmcu.memory.guard import conditions_first, guard_choices
from glowmcu.memory.limit import ram_problems
from glowmcu.memory.plan import MemoryPlan, plan
from glowmcu.options import Options
from glowmcu.targets.board import RAMS, Board, board, boards_with_room
from glowmcu.targets.kernel import Kernel
from glowmcu.targets.select import why_not
from glowmcu.targets.target import target

Progress = Callable[[str], None]

BALANCED_PART, BALANCED_REST = 1.3, 24 * 1024
"""Flash that balanced does not pass where it can: a multiple of the weights, and the rest."""
_ROUNDS = 4
_ALL = 1 << 40
_CLOSE = 0.98
"""This part of the limit is near enough to it."""


@dataclass(frozen=True)
class Generated:
    """A function with kernels, its plan and its C.

    records  what the passes over the function did
    options  those in force: a limit of flash may ask for leaner ones than were given
    """

    function: Function
    plan: MemoryPlan
    unit: CodeUnit
    records: tuple[PassRecord, ...]
    options: Options

    @property
    def flash(self) -> int:
        """Bytes of weights and of code, the code as estimated."""
        return int(self.unit.report["weights_bytes"] + self.unit.report["code_bytes_estimate"])

    @property
    def cycles(self) -> float:
        """About how long it takes, without what running row by row costs."""
        found = 0.0
        for instruction in self.function.instructions:
            if isinstance(instruction, Striped):
                found += sum(cycles(m.instruction) for m in instruction.members)
            else:
                found += cycles(instruction)
        return found


def function_passes(options: Options, save: int = 0) -> tuple[Pass[Function], ...]:
    """Return the passes from function to function that these options ask for, in order.

    save  bytes of flash to take less than the kernels take that `optimize` alone would choose
    """
    machine = target(options.target)

    def choose_kernels(function: Function) -> Function:
        """Choose a kernel for every instruction and give it its scratch."""
        saving = Saving(save, kernel_code(function, options)) if save else None
        return select_kernels(function, machine, options.optimize, options.kernels, saving)

    def offered(kernel: Kernel, instruction: Instruction) -> bool:
        if save or is_wished(instruction, options.kernels):
            return instruction.kernel is not None and kernel.symbol == instruction.kernel.symbol
        return not why_not(kernel, instruction, machine, options.optimize)

    def tensors_of_the_caller(function: Function) -> Function:
        """Leave inputs and outputs in the caller's memory."""
        return leave_tensors_outside(function, inputs=options.input == "whole")

    outside = (as_pass(tensors_of_the_caller, required=True),) if options.caller_io else ()
    early = (as_pass(skip_packing), as_pass(stack_maps), as_pass(conditions_first))
    chosen = (*outside, *early, as_pass(choose_kernels, required=True))
    return (*chosen, *memory_passes(machine, options, offered), as_pass(guard_choices))


def generate(
    lowered: Function,
    options: Options,
    info: ModelInfo,
    trace: Trace | None = None,
    progress: Progress = lambda _stage: None,
) -> Generated:
    """Choose kernels, plan memory and write the C of a lowered function."""
    trace = trace or Trace()

    def attempt(options: Options, save: int) -> Generated:
        function, layout, records = _planned(lowered, options, save, trace, progress)
        layout = _divided(function, layout, options)
        progress("writing C")
        more = replace(info, passes=(*info.passes, *records))
        unit = emit(function, layout, target(options.target), options, more)
        return Generated(function, layout, unit, records, options)

    found = attempt(options, 0)
    on = board(options.board) if options.board and options.ram_limit is None else None
    if on is not None and found.plan.total > on.largest_room:
        options = replace(options, ram_limit=on.largest_room)
        found = attempt(options, 0)
    _check_ram(found, options, on)
    limit = _flash_limit(lowered, options)
    if limit is not None and found.flash > limit:
        found = _within_flash(found, limit, options, attempt)
    return found


def _planned(
    lowered: Function, options: Options, save: int, trace: Trace, progress: Progress
) -> tuple[Function, MemoryPlan, tuple[PassRecord, ...]]:
    """Return the function with kernels and its plan, within the limit of RAM if it can be."""
    machine = target(options.target)
    function, records = _run_passes(lowered, options, save, trace)
    progress("planning memory")
    layout = plan(function, machine.align)
    if options.ram_limit is not None and layout.size > options.ram_limit:
        # kernels chosen for size need less scratch
        lean = replace(options, optimize="size")
        smaller, more = _run_passes(lowered, lean, save, trace)
        found = plan(smaller, machine.align)
        if found.size < layout.size:
            function, layout, records = smaller, found, more
    check(function, layout)
    if trace.stop_after == "plan":
        raise Stopped(printer.dump(function, layout.offsets, layout.lifetimes))
    return function, layout, records


def _divided(function: Function, layout: MemoryPlan, options: Options) -> MemoryPlan:
    """Return the plan with its arena divided where a board's quickest RAM does not hold it."""
    if not options.board:
        return layout
    on = board(options.board)
    quickest = next(r for r in RAMS if r in on.memory)
    room = on.arena_room(quickest)
    if layout.size <= room or on.slower_region(quickest, 0) is None:
        return layout
    align = target(options.target).align
    found = divide(function, align, room // arena_align(layout) * arena_align(layout))
    if found is None or on.slower_region(quickest, found.slow_size) is None:
        return layout
    check(function, found)
    return found


def _run_passes(
    lowered: Function, options: Options, save: int, trace: Trace
) -> tuple[Function, tuple[PassRecord, ...]]:
    runner = Runner(verify, printer.dump, lambda f: len(f.instructions), trace)
    return runner.run(lowered, function_passes(options, save)), tuple(runner.records)


def _check_ram(found: Generated, options: Options, on: Board | None) -> None:
    """Raise DoesNotFitError where the arena is too large, and say so if the weights are as well.

    on  the board that the limit comes from; None: it is the user's
    """
    problems = list(ram_problems(found.function, found.plan, options.ram_limit))
    if not problems:
        return
    if on is not None:
        problems = [_of_board(problem, found.plan.total, on) for problem in problems]
    weights = found.unit.report["weights_bytes"]
    if options.flash_limit is not None and weights > options.flash_limit:
        what = f"the weights alone need {weights} bytes, the limit is {options.flash_limit}"
        problems.append(Problem(what, hint="raise --flash-limit or quantize to int8"))
    raise DoesNotFitError(problems)


def _of_board(problem: Problem, size: int, on: Board) -> Problem:
    """Return a problem with a limit as one with the board that it comes from."""
    region, memory = on.largest_ram
    larger = ", ".join([b.name for b in boards_with_room(size, on)][:6])
    return replace(
        problem,
        what=f"the network does not fit the board {on.name}: {region} of {memory.length} bytes is "
        f"{size - on.largest_room} bytes too small; {problem.what}",
        hint=f"quantize it, or choose a larger board{': ' if larger else ''}{larger}",
    )


def _flash_limit(lowered: Function, options: Options) -> int | None:
    """Return the bytes not to be passed: those asked for, or what balanced means on a board."""
    if options.optimize != "balanced" or not target(options.target).compiler:
        return options.flash_limit
    constants = (b for b in lowered.buffers() if b.kind == "constant" and b.base is None)
    balanced = int(BALANCED_PART * sum(b.nbytes for b in constants)) + BALANCED_REST
    return balanced if options.flash_limit is None else min(options.flash_limit, balanced)


def _within_flash(
    first: Generated, limit: int, options: Options, attempt: Callable[[Options, int], Generated]
) -> Generated:
    """Return the fastest attempt found whose flash is within the limit.

    Raises DoesNotFitError where the limit is the user's and nothing meets it.
    """
    search = _Search(limit, attempt, [first])
    found = [search.least_saving(options, first)]
    leaner = _leaner(options)
    for mode in leaner[:3]:
        whole = search.at(mode, 0)
        found.append(whole or search.least_saving(mode, search.tried[-1]))
    if not any(found):
        found += [search.at(mode, _ALL) for mode in leaner]
    fitting = [a for a in found if a is not None]
    if fitting:
        return min(fitting, key=lambda a: a.cycles)
    hard = options.flash_limit
    for tried in search.tried:
        if hard is None or tried.flash <= hard:
            return tried
    smallest = min(search.tried, key=lambda a: a.flash)
    report = smallest.unit.report
    raise DoesNotFitError(
        f"the smallest flash found is {smallest.flash} bytes, the limit is {hard}",
        why=f"weights take {report['weights_bytes']} bytes, code about "
        f"{report['code_bytes_estimate']}",
        hint=f"--flash-limit {smallest.flash}, or a smaller network; a float one quantized to int8 "
        "takes a quarter",
    )


@dataclass
class _Search:
    """Attempts with kernels that save flash, all of them within the limit of RAM.

    How much they must save is found by trying: the choice of kernels does not know what will run
    row by row.
    """

    limit: int
    attempt: Callable[[Options, int], Generated]
    tried: list[Generated]

    def at(self, options: Options, save: int) -> Generated | None:
        """Return the attempt that saves so many bytes, None where it does not fit."""
        found = self.attempt(options, save)
        if options.ram_limit is not None and found.plan.total > options.ram_limit:
            return None
        self.tried.append(found)
        return found if found.flash <= self.limit else None

    def least_saving(self, options: Options, whole: Generated) -> Generated | None:
        """Return the attempt that saves least of those that fit, or comes close to the limit.

        whole  the attempt that saves nothing
        """
        over, fits = 0, _ALL
        step = before = whole.flash - self.limit
        best: Generated | None = None
        for _ in range(2 * _ROUNDS):
            save = over + step if best is None else (over + fits) // 2
            found = self.at(options, save)
            if found is not None:
                best, fits = found, save
                if found.flash >= _CLOSE * self.limit:
                    break
            elif best is None and save > whole.flash:
                break
            else:
                gap = self.tried[-1].flash - self.limit
                over, step, before = save, gap if gap < before else 2 * step, gap
        return best


def _leaner(options: Options) -> tuple[Options, ...]:
    """Return options with which there is less code: no copies of kernels, or what is for size.

    Rows that run one after the other take tables in flash, but fewer kernels.
    """
    whole = replace(
        options, specialize="none", stripe=options.stripe and options.ram_limit is not None
    )
    size, few = replace(options, optimize="size"), replace(whole, optimize="size")
    copies = replace(whole, specialize=options.specialize)
    return whole, size, few, replace(whole, optimize="speed"), replace(copies, optimize="speed")
