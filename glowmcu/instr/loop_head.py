"""LoopHead: the first instruction of a loop, which counts and decides whether to go on."""

from __future__ import annotations

from typing import Any

from glowmcu.instr.instruction import In, Instruction, Out
from glowmcu.targets.kernel import Kernel


class LoopHead(Instruction):
    """y = how many iterations are done; one more follows unless that is enough.

    It is run once more than the rest of the loop. The loop ends when y is loop.count or `limit`,
    or when `condition` is false; y is the number of iterations from then on.
    """

    y: Out
    limit: In | None = None
    condition: In | None = None

    kernels = (Kernel("gm_loop"),)

    def reference(self, *arrays: Any) -> Any:
        """Only the loop as a whole has a meaning (see instr.evaluate)."""
        raise NotImplementedError("a loop is evaluated as a whole")
