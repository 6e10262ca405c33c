"""ONNX's Loop: a loop in C, or its iterations one after the other where that is better."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import onnx

from glowmcu.core import dtypes
from glowmcu.errors import GlowmcuError, UnsupportedError
from glowmcu.frontend.bound import MANY, most
from glowmcu.frontend.choice import Importing, Refused
from glowmcu.frontend.loop_body import Body, Rolled, rolled, stacked
from glowmcu.frontend.rolled import is_better_unrolled
from glowmcu.frontend.scope import Scope
from glowmcu.graph.graph import Value, constant
from glowmcu.ops.bounded import Bounded
from glowmcu.ops.cast import Cast
from glowmcu.ops.onnx_node import OnnxNode, inputs_of
from glowmcu.ops.reshape import Reshape

Results = tuple[Value | None, ...]


def import_loop(
    node: onnx.NodeProto, scope: Scope, seen: OnnxNode, importing: Importing
) -> Results:
    """Return the outputs of Loop: carried values, then one row of each scan output an iteration."""
    body = Body(seen.attr("body"), scope, seen, importing)
    carried = tuple(seen.value(n) for n in range(2, len(seen.inputs)))
    body.check_signature(2 + len(carried), 1 + len(node.output))
    limit = _scalar(seen, seen.optional(0), "trip count")
    loop = _Loop(body, carried, limit, _scalar(seen, seen.optional(1), "condition"))
    made = importing.attempt(loop.roll)
    if isinstance(made, Refused) or loop.is_better_unrolled(made):
        unrolled = importing.attempt(loop.unroll)
        if not isinstance(unrolled, Refused):
            return unrolled
        if isinstance(made, Refused):
            if loop.limit is None:
                raise unrolled.error
            raise _neither(made.error, unrolled.error)
    return loop.looped(made)


def _neither(rolled_: GlowmcuError, unrolled: GlowmcuError) -> UnsupportedError:
    """Return why there is no loop in C, with the inputs that would have to be known without one."""
    needs = tuple(dict.fromkeys(n for p in unrolled.problems for n in p.needs))
    names = " ".join(f"--fix-input {n}=..." for n in needs)
    also = f"; or unroll the loop by {names}" if needs else ""
    return UnsupportedError(
        [
            p if p.needs else replace(p, hint=f"{p.hint}{also}", needs=needs)
            for p in rolled_.problems
        ]
    )


def _scalar(seen: OnnxNode, value: Value | None, what: str) -> Value | None:
    """Return a value of one element without dimensions."""
    if value is None or value.type.rank == 0:
        return value
    if value.type.numel != 1:
        seen.fail(f"the {what} has {value.type.numel} elements instead of one")
    if value.data is not None:
        return constant(value.name, value.data.reshape(()), value.type.with_shape(()))
    return seen.apply(Reshape(()), value, suffix=what).output


@dataclass
class _Loop:
    """One Loop node: its body, what it carries, its trip count and its first condition."""

    body: Body
    carried: tuple[Value, ...]
    limit: Value | None
    condition: Value | None

    @property
    def trips(self) -> int | None:
        """The number of iterations if it is known now and nothing else ends the loop."""
        if self.condition is not None and self.condition.data is not None:
            if not self.condition.data.item():
                return 0
        if self.limit is None or self.limit.data is None:
            return None
        return max(0, int(self.limit.data.item()))

    def is_better_unrolled(self, made: Rolled) -> bool:
        """Tell whether the iterations, whose number is known, are better one after the other."""
        runtime = self.condition is not None and self.condition.data is None
        if self.trips is None or made.op.goes_on or runtime:
            return False
        return self.trips == 0 or is_better_unrolled(self.trips, made.op.body)

    def unroll(self) -> Results:
        """Import the body once for every iteration."""
        body, seen, carried = self.body, self.body.seen, list[Value | None](self.carried)
        condition: Value | None = self.condition
        results = body.graph.output[1 + len(carried) :]
        rows: list[list[Value | None]] = [[] for _ in results]
        if self.limit is not None:
            seen.const(0, "the trip count")
        while (self.trips is None or body.done < self.trips) and self._goes_on(condition):
            number = constant(f"{seen.label}/{body.done}/number", np.asarray(body.done, np.int64))
            going = constant(f"{seen.label}/{body.done}/condition", np.asarray(True))
            condition, *found = body.run_again((number, going, *carried))
            carried = found[: len(carried)]
            for row, value in zip(rows, found[len(carried) :], strict=True):
                row.append(value)
            if condition is None:
                break
        together = zip(rows, results, strict=True)
        return (
            *carried,
            *(stacked(seen, r, 0, o, f"scan{n}") for n, (r, o) in enumerate(together)),
        )

    def _goes_on(self, condition: Value | None) -> bool:
        """Tell whether there is another iteration, which must be known now."""
        condition = _scalar(self.body.seen, condition, "condition")
        if condition is None:
            return True
        if condition.data is None:
            needs = inputs_of(condition)
            fix = f", or fix it with --fix-input {needs[0]}=..." if len(needs) == 1 else ""
            self.body.seen.fail(
                "it ends by a condition that is known at run time only",
                why="it cannot become a loop in C: without a trip count there is no bound on the "
                "iterations, or its values change their shapes",
                hint=f"give the loop a constant trip count when exporting{fix}",
                needs=needs,
            )
        return bool(condition.data.item())

    def roll(self) -> Rolled:
        """Import the body once, as a graph."""
        body, seen = self.body, self.body.seen
        count = self._bound()
        number = body.number()
        states = [body.value(f"state{n}", v) for n, v in enumerate(self.carried)]
        wide = seen.apply(Cast(dtypes.I64), number, suffix="number").output
        going = constant(f"{seen.label}/condition", np.asarray(True))
        condition, *found = body.run((wide, going, *states))
        goes_on = _scalar(seen, condition, "condition")
        if goes_on is not None and goes_on.data is not None:
            count = count if goes_on.data.item() else min(count, 1)
            goes_on = None
        extra = [] if goes_on is None else [goes_on]
        axes = [0] * (len(found) - len(states))
        if axes and count > MANY:
            seen.fail(
                f"its outputs would have room for {count} iterations",
                why=f"more than {MANY} are not stacked",
                hint="give the loop fewer iterations, as a constant or by Min, when exporting",
            )
        return rolled(body, number, states, [*found, *extra], axes, count)

    def _bound(self) -> int:
        """Return the most iterations there can be."""
        seen = self.body.seen
        if self.trips is not None:
            if self.trips >= 1 << 31:
                seen.fail(
                    f"its trip count of {self.trips} is no bound on the iterations",
                    why=f"they are counted in 32 bits, up to {(1 << 31) - 1}",
                    hint="give the loop the most iterations that there can be, as a constant, when "
                    "exporting",
                )
            return self.trips
        if self.limit is None:
            seen.fail("it has no trip count, which bounds its iterations", hint=_HINT)
        found = most(self.limit)
        if found is None:
            needs = inputs_of(self.limit)
            fix = f"fix it with --fix-input {needs[0]}=..., or " if len(needs) == 1 else ""
            seen.fail(
                "the trip count is computed at run time, and nothing bounds it",
                why="the C code needs to know the most iterations when it is compiled",
                hint=f"{fix}bound it in the model, as by Min(trip count, 100)",
                needs=needs,
            )
        return max(0, found)

    def looped(self, made: Rolled) -> Results:
        """Return the outputs of a loop in C; what it stacked may be meant in part only."""
        seen, limit, condition = self.body.seen, self.limit, self.condition
        limit = None if limit is None or limit.data is not None else limit
        condition = None if condition is None or condition.data is not None else condition
        *found, done = made.applied(self.body, self.carried, limit, condition)
        if limit is None and condition is None and not made.op.goes_on:
            return tuple(found)
        states = len(self.carried)
        return (
            *found[:states],
            *(
                seen.apply(Bounded(0), rows, done, suffix=f"{rows.name}.rows").output
                for rows in found[states:]
            ),
        )


_HINT = "give the loop a constant trip count when exporting, or one that Min bounds"
