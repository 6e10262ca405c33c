"""Where every buffer lies."""

from glowmcu.core.passes import Pass, as_pass
from glowmcu.instr.function import Function
from glowmcu.memory.chain import Offered
from glowmcu.memory.direction import choose_directions
from glowmcu.memory.feed import feed_rows
from glowmcu.memory.reorder import reorder
from glowmcu.memory.share import eliminate_copies, eliminate_dead_stores, share_in_place
from glowmcu.memory.stripe import stripe
from glowmcu.options import Options
from glowmcu.targets.target import Target

_BEFORE = (eliminate_dead_stores, eliminate_copies, reorder)
_AFTER = (share_in_place, choose_directions)
FUNCTION_PASSES: tuple[Pass[Function], ...] = tuple(map(as_pass, (*_BEFORE, *_AFTER)))
"""The passes that do not depend on options."""


def memory_passes(
    machine: Target, options: Options, offered: Offered
) -> tuple[Pass[Function], ...]:
    """Return the passes that options ask for, in order.

    offered  tells whether an instruction may take a kernel other than the one chosen
    """

    def run_by_rows(function: Function) -> Function:
        """Run chains of layers row by row, where that makes the arena as small as is asked for."""
        return stripe(
            function, machine, options, offered, lambda f: choose_directions(share_in_place(f))
        )

    fed = options.input == "rows"
    feeding = (as_pass(feed_rows, required=True),) if fed else ()
    striping = (as_pass(run_by_rows, required=fed),) if options.stripe or fed else ()
    if not options.share:
        return (*feeding, *striping) if fed else ()
    return (*map(as_pass, _BEFORE), *feeding, *striping, *map(as_pass, _AFTER))
