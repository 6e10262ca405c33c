"""Give a compiled network a self-test: what it must compute, from a run that was verified."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from glowmcu.core.types import Array
from glowmcu.emit.golden import Golden
from glowmcu.errors import VerificationError
from glowmcu.frontend.samples import Samples, load_samples
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.evaluate import evaluate, is_skipped, value_of
from glowmcu.instr.instruction import Instruction
from glowmcu.verify.host import HostLibrary
from glowmcu.verify.typical import typical_sample

if TYPE_CHECKING:
    from glowmcu.driver import Compilation


def golden(compilation: Compilation, data: Samples | None = None) -> Golden:
    """Return what the network gives for the first sample of `data`; without data, for some sample.

    The layers are those of the numpy instructions; raises VerificationError where the C, run on
    this machine, gives other outputs.
    """
    unit = compilation.unit
    samples = load_samples(data, unit.inputs, 1) if data is not None else []
    feed = samples[0] if samples else typical_sample(unit.inputs)
    layers: list[tuple[Array, ...]] = [() for _ in compilation.function.instructions]

    def keep(index: int, instruction: Instruction, memory: Mapping[Buffer, Array]) -> None:
        if instruction.loop is None and not is_skipped(instruction, memory):
            layers[index] = tuple(value_of(memory[b], b) for b in instruction.outputs())

    plan = compilation.plan
    expected = evaluate(compilation.function, feed, plan.offsets, plan.extent, watch=keep)
    outputs = HostLibrary(compilation.for_host().unit).run(feed)
    for name, array in outputs.items():
        same = (
            np.allclose(array, expected[name], rtol=1e-4, atol=1e-5, equal_nan=True)
            if array.dtype.kind == "f"
            else np.array_equal(array, expected[name].reshape(array.shape))
        )
        if not same:
            raise VerificationError(
                f"the self-test cannot be made: output '{name}' of the C is not what it should be",
                hint="`glowmcu verify` finds the first layer that differs",
            )
    return Golden(feed, outputs, layers)
