"""Which parts of a function run row by row, so that the arena becomes as small as is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from glowmcu.core import dtypes
from glowmcu.core.passes import record
from glowmcu.core.types import TensorType
from glowmcu.errors import OptionError
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.cost import CYCLES_PER_STEP, cycles, member_cycles, steps_cycles
from glowmcu.instr.function import Function
from glowmcu.instr.instruction import Instruction
from glowmcu.instr.striped import Feed, Striped
from glowmcu.memory.chain import Chain, Offered, make_striped
from glowmcu.memory.lifetime import Lifetimes, lifetimes
from glowmcu.memory.plan import plan
from glowmcu.memory.rows import row_lives
from glowmcu.options import Options
from glowmcu.targets.kernel import Kernel
from glowmcu.targets.target import Target

Cost = Callable[[Instruction], float]
Finish = Callable[[Function], Function]

_LONGEST = 24
LITTLE = 0.05
"""The part of its time that a network may lose for a smaller arena."""
_NO_LIMIT = 1 << 40


@dataclass(frozen=True)
class Goal:
    """What to look for: the cheapest arena of at most `limit` bytes, or the smallest one.

    most_extra  what the smaller arena may cost, as a part of what all instructions cost
    """

    limit: int | None = None
    most_extra: float = float("inf")


@dataclass
class _Edge:
    """Instructions [first, last) run as one: bytes are a lower bound until they are `known`.

    plain   one instruction as a whole, not row by row
    kernel  another kernel for it that needs less scratch
    """

    first: int
    last: int
    nbytes: int
    plain: bool = False
    kernel: Kernel | None = None
    level: int = 0
    cost: float = 0.0
    instruction: Instruction | None = None

    @property
    def known(self) -> bool:
        return self.level == 2


@dataclass(frozen=True)
class Striping:
    """A function some of whose parts run row by row: bytes of its arena, cycles that this costs.

    It is not finished yet.
    """

    function: Function
    nbytes: int
    cost: float


@dataclass
class Stripes:
    """The search over ways to cut a function into chains.

    finish  what is done to a function before its memory is planned
    """

    function: Function
    align: int
    offered: Offered
    cost: Cost
    finish: Finish
    edges: list[list[_Edge]] = field(default_factory=list)
    spans: Lifetimes = field(default_factory=dict)
    member_costs: dict[tuple[Buffer, str, str], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.spans = lifetimes(self.function)
        count = len(self.function.instructions)
        able = [self._is_able(n) for n in range(count)]
        self.edges = [[] for _ in range(count + 1)]
        for first in range(count):
            nbytes = max(self._live(first), self._live(first + 1))
            if not isinstance(self.function.instructions[first], Feed):
                self.edges[first + 1].append(_Edge(first, first + 1, nbytes, plain=True))
                self.edges[first + 1] += [
                    _Edge(first, first + 1, nbytes, plain=True, kernel=kernel, cost=1.0)
                    for kernel in self._leaner(self.function.instructions[first])
                ]
            for last in range(first + 1, min(count, first + _LONGEST) + 1):
                if not all(able[first:last]):
                    break
                nbytes = max(self._live(first), self._live(last))
                least = float(CYCLES_PER_STEP * (last - first))
                self.edges[last].append(_Edge(first, last, nbytes, cost=least))

    def search(self, goal: Goal) -> Striping:
        """Return the best way found for a goal; for a limit that none meets, the smallest."""
        plain = self._plain()
        allowed = goal.most_extra * sum(map(self.cost, self.function.instructions))
        if goal.limit is not None:
            return self._within(plain, goal.limit)
        if goal.most_extra == float("inf"):
            return self.smallest()
        best = plain
        for found in self._ever_smaller(plain.nbytes):
            if found.cost > allowed and best.nbytes < _NO_LIMIT:
                break
            best = min(best, found, key=lambda s: (s.nbytes, s.cost))
        return best

    def _within(self, plain: Striping, limit: int) -> Striping:
        best = plain
        for found in self._ever_smaller(plain.nbytes):
            if best.nbytes <= limit:
                break
            best = min(best, found, key=lambda s: s.nbytes)
        return best

    def smallest(self) -> Striping:
        """Return the smallest way found, whatever it costs."""
        plain = self._plain()
        path = self._path(0)
        found = self._turned(path)
        return min(plain, found, key=lambda s: (s.nbytes, s.cost))

    def _plain(self) -> Striping:
        """Return the function as it is; one that is fed row by row cannot stay so."""
        if self.function.fed:
            return Striping(self.function, _NO_LIMIT, 0.0)
        return self._finished({})

    def _ever_smaller(self, nbytes: int) -> Iterator[Striping]:
        """Yield ways of rising cost and falling peak, the last one of the least peak."""
        limit, before = nbytes - 1, -1
        while True:
            path = self._path(limit)
            peak = max(edge.nbytes for edge in path)
            if peak == before:
                return
            yield self._turned(path)
            if peak > limit:
                return
            before, limit = peak, peak - max(1, peak // 50)

    def _path(self, limit: int) -> list[_Edge]:
        """Return the cheapest cuts whose parts fit the limit; else those of the least peak."""
        while True:
            peak = max(limit, max(e.nbytes for e in self._best(None)))
            path = self._best(peak)
            unknown = [edge for edge in path if not edge.known]
            if not unknown:
                return path
            for edge in unknown:
                self._learn(edge)

    def _best(self, peak: int | None) -> list[_Edge]:
        """Return the path of least peak, or the cheapest one of those below a peak."""
        count = len(self.function.instructions)
        best: list[tuple[float, float]] = [(0, 0)] * (count + 1)
        source: list[_Edge | None] = [None] * (count + 1)
        for last in range(1, count + 1):
            best[last] = (float("inf"), float("inf"))
            for edge in self.edges[last]:
                one, two = best[edge.first]
                if peak is None:
                    found = (max(one, edge.nbytes), two + edge.last - edge.first)
                else:
                    found = (one + (edge.nbytes > peak), two + edge.cost)
                if found < best[last]:
                    best[last], source[last] = found, edge
        path: list[_Edge] = []
        at = count
        while at:
            found_edge = source[at]
            if found_edge is None or found_edge.nbytes >= _NO_LIMIT:
                raise OptionError(
                    "the input cannot be handed over row by row",
                    why="the first layers do not work on rows of it",
                    hint="leave out --input rows",
                )
            path.append(found_edge)
            at = found_edge.first
        return path[::-1]

    def _learn(self, edge: _Edge) -> None:
        """Find out more about an edge: first a better bound, then what it takes."""
        if edge.level == 0 and not edge.plain:
            striped = self._striped(edge, lean=True)
            edge.level = 1
            if striped is None:
                edge.nbytes, edge.level = _NO_LIMIT, 2
                return
            through = frozenset(self._through(edge.first, edge.last))
            rows = row_lives(striped).most_live(through) + sum(b.nbytes for b in through)
            edge.nbytes, edge.cost = max(edge.nbytes, rows), self._cost(striped)
            return
        best: tuple[int, float] | None = None
        for instruction in self._ways(edge):
            found = self._place(edge, instruction), self._cost(instruction)
            if best is None or found < best:
                best, edge.instruction = found, instruction
            if best[0] <= edge.nbytes:
                break
        edge.level = 2
        edge.nbytes, edge.cost = best if best is not None else (_NO_LIMIT, 0.0)

    def _ways(self, edge: _Edge) -> Iterator[Instruction]:
        if edge.plain:
            instruction = self.function.instructions[edge.first]
            if edge.kernel is not None:
                instruction = _with_kernel(instruction, edge.kernel)
            yield instruction
            turned = instruction.turned()
            if turned is not None:
                yield turned
            return
        for descending in (False, True):
            for lean in (False, True):
                striped = self._striped(edge, lean=lean, descending=descending)
                if striped is not None:
                    yield striped

    def _striped(
        self, edge: _Edge, *, lean: bool = False, descending: bool = False
    ) -> Striped | None:
        chain = Chain(self.function, edge.first, edge.last)
        return make_striped(chain, self.offered, self.align, descending=descending, lean=lean)

    def _leaner(self, instruction: Instruction) -> list[Kernel]:
        """Return the kernels that need less scratch than the one chosen."""
        if instruction.scratch is None:
            return []
        return [
            kernel
            for kernel in instruction.kernels
            if kernel is not instruction.kernel
            and self.offered(kernel, instruction)
            and kernel.scratch(instruction) < instruction.scratch.nbytes
        ]

    def _is_able(self, number: int) -> bool:
        """Tell whether an instruction can be in a chain, be it only as a sum over rows."""
        if isinstance(self.function.instructions[number], Feed):
            return True
        if self.function.instructions[number].loop is not None:
            return False
        return self._striped(_Edge(number, number + 1, 0), lean=True) is not None

    def _live(self, number: int) -> int:
        """Return the bytes that lie whole between two instructions."""
        return sum(b.nbytes for b, (a, z) in self.spans.items() if a < number <= z)

    def _through(self, first: int, last: int) -> list[Buffer]:
        return [b for b, (a, z) in self.spans.items() if a < first and z >= last]

    def _place(self, edge: _Edge, instruction: Instruction) -> int:
        """Return the bytes of an arena for these instructions alone."""
        spans = self.spans.items()
        inputs = tuple(b for b, (a, z) in spans if a < edge.first <= z)
        outputs = tuple(b for b, (a, z) in spans if a < edge.last <= z)
        names = tuple(b.name for b in outputs)
        outside = replace(instruction, loop=None)  # type: ignore[type-var]
        alone = Function("", inputs, outputs, names, (outside,))
        return plan(alone, self.align, quick=True).size

    def _cost(self, instruction: Instruction) -> float:
        """Return the cycles that running row by row costs, or another kernel."""
        if not isinstance(instruction, Striped):
            original = self._original(instruction.outputs()[0])
            other = instruction.kernel is not original.kernel
            return max(self.cost(instruction) - self.cost(original), 1.0) if other else 0.0
        extra = steps_cycles(instruction)
        for member in instruction.members:
            kernel = member.instruction.kernel
            key = member.y, member.form, "" if kernel is None else kernel.symbol
            if key not in self.member_costs:
                before = self.cost(self._original(member.y))
                self.member_costs[key] = member_cycles(member) - before
            extra += self.member_costs[key]
        return max(extra, 1.0)

    def _original(self, y: Buffer) -> Instruction:
        return next(i for i in self.function.instructions if y in i.outputs())

    def _finished(self, chosen: dict[tuple[int, int], Instruction]) -> Striping:
        starts = {first: (last, i) for (first, last), i in chosen.items()}
        instructions: list[Instruction] = []
        number = 0
        while number < len(self.function.instructions):
            last, instruction = starts.get(number, (number + 1, self.function.instructions[number]))
            instructions.append(instruction)
            number = last
        changed = replace(self.function, instructions=tuple(instructions))
        size = plan(self.finish(changed), self.align, quick=True).size
        return Striping(changed, size, sum(map(self._cost, chosen.values())))

    def _turned(self, path: list[_Edge]) -> Striping:
        """Return a path as a function; chains change direction where that helps the whole."""
        chosen = {
            (e.first, e.last): e.instruction
            for e in path
            if e.instruction is not None and (e.kernel is not None or not e.plain)
        }
        edges = {(e.first, e.last): e for e in path}
        peak = max(edge.nbytes for edge in path)
        best = self._finished(dict(chosen))
        for key in [*chosen, *chosen]:
            if best.nbytes <= peak:
                break
            current = chosen[key]
            if not isinstance(current, Striped):
                continue
            lean = all(m.form != "call" or m.scratch is None for m in current.members)
            edge = edges[key]
            turned = self._striped(edge, lean=lean, descending=not current.descending)
            if turned is not None:
                found = self._finished({**chosen, key: turned})
                if found.nbytes < best.nbytes:
                    best, chosen = found, {**chosen, key: turned}
        return best


def _with_kernel(instruction: Instruction, kernel: Kernel) -> Instruction:
    """Return an instruction with another kernel and its scratch."""
    size, scratch = kernel.scratch(instruction), None
    if size:
        type_ = TensorType(dtypes.U8, (size,))
        scratch = Buffer(f"{instruction.name}.scratch", type_, "scratch")
    return replace(instruction, kernel=kernel, scratch=scratch)  # type: ignore[type-var]


def stripe(
    function: Function,
    machine: Target,
    options: Options,
    offered: Offered,
    finish: Finish = lambda f: f,
) -> Function:
    """Return a function parts of which run row by row.

    For size: the smallest arena. Balanced: the smallest one that costs little time. With a limit:
    the fastest function that meets it. Kernels that are `offered` may take the place of those
    chosen. `finish` is what will be done to the function afterwards.
    """

    if not function.instructions:
        return function
    if options.ram_limit is not None and options.optimize != "size":
        goal = Goal(options.ram_limit)
    elif options.optimize == "speed" and options.input == "whole":
        return function
    else:
        most = {"size": float("inf"), "balanced": LITTLE, "speed": 0.0}[options.optimize]
        goal = Goal(None, most)
    stripes = Stripes(function, machine.align, offered, cycles, finish)
    found = stripes.search(goal).function
    for instruction in found.instructions:
        if isinstance(instruction, Striped):
            record("chain of rows")
    return found
