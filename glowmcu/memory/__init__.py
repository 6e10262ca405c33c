"""Where every buffer lies."""

from glowmcu.core.passes import Pass, as_pass
from glowmcu.instr.function import Function
from glowmcu.memory.direction import choose_directions
from glowmcu.memory.share import eliminate_copies, eliminate_dead_stores, share_in_place

FUNCTION_PASSES: tuple[Pass[Function], ...] = (
    as_pass(eliminate_dead_stores),
    as_pass(eliminate_copies),
    as_pass(share_in_place),
    as_pass(choose_directions),
)
