"""Random functions with loops: carried values that swap or stay, inner loops, early ends."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
from random_functions import Bump, Copy, Maker, u8

from glowmcu.core import dtypes
from glowmcu.core.types import Array, TensorType
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Function
from glowmcu.instr.instruction import In, Instruction, Out
from glowmcu.instr.loop import Loop
from glowmcu.instr.loop_head import LoopHead


class Odd(Instruction):
    """y = whether the sum of x is no multiple of three: a condition."""

    y: Out
    x: In

    def reference(self, x: Array) -> Array:
        return np.asarray(int(x.sum()) % 3 != 0)


class Count(Instruction):
    """y = the first byte of x modulo seven: a trip count."""

    y: Out
    x: In

    def reference(self, x: Array) -> Array:
        return np.asarray(int(x.reshape(-1)[0]) % 7, np.int32)


class LoopMaker(Maker):
    """Writes a random function with loops."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__(chance)
        self.loop: Loop | None = None

    def emit(self, instruction: Instruction) -> None:
        super().emit(replace(instruction, loop=self.loop))  # type: ignore[type-var]

    def steps(self, count: int, depth: int) -> None:
        for _ in range(count):
            if depth and self.chance.random() < 0.3:
                self.looped(depth - 1)
            else:
                self.step()

    def scalar(self, dtype: dtypes.DType) -> Buffer:
        self.count += 1
        return Buffer(f"s{self.count}", TensorType(dtype, ()), "activation")

    def looped(self, depth: int) -> None:
        chance = self.chance
        carried = []
        for _ in range(chance.randrange(4)):
            first = self.any_value()
            carried.append(self.buffer(first.nbytes))
            self.emit(Copy(y=carried[-1], x=first, name="init"))
        whole = self.buffer(4 * chance.randrange(1, 5))
        self.emit(
            Copy(
                y=whole,
                x=Buffer("k", whole.type, "constant", np.arange(whole.nbytes, dtype=np.uint8)),
                name="fill",
            )
        )
        limit = condition = None
        if chance.random() < 0.5:
            limit = self.scalar(dtypes.I32)
            self.emit(Count(y=limit, x=self.any_value(), name="limit"))
        if chance.random() < 0.5:
            condition = self.scalar(dtypes.BOOL)
            self.emit(Odd(y=condition, x=self.any_value(), name="first"))
        outer, outside = self.loop, list(self.values)
        self.loop = Loop(f"loop{self.count}", chance.randrange(5), outer)
        number = self.scalar(dtypes.I32)
        self.emit(LoopHead(y=number, limit=limit, condition=condition, name="head"))
        self.values += carried
        self.steps(chance.randrange(1, 6), depth)
        if chance.random() < 0.6:
            self.emit(Bump(x=whole, by=self.any_value(), name="row"))
        self.assign(carried)
        if condition is not None and chance.random() < 0.7:
            self.emit(Odd(y=condition, x=self.any_value(), name="again"))
        self.loop, self.values = outer, outside
        self.values += [*carried, whole] if chance.random() < 0.8 else carried[:1]

    def assign(self, carried: list[Buffer]) -> None:
        """New values for all that is carried, at once."""
        aside = []
        for to in carried:
            fitting = [v for v in self.values if v.nbytes == to.nbytes]
            source = self.chance.choice([*fitting, *(v for v in carried if v in fitting)])
            if source.root in carried and source is not to:
                held = self.buffer(to.nbytes)
                self.emit(Copy(y=held, x=source, name="aside"))
                source = held
            aside.append((to, source))
        for to, source in aside:
            if source is not to:
                self.emit(Copy(y=to, x=source, name="next"))


def random_loops(seed: int) -> Function:
    chance = random.Random(seed)
    maker = LoopMaker(chance)
    sizes = [4 * chance.randrange(1, 5) for _ in range(chance.randrange(1, 4))]
    inputs = tuple(Buffer(f"in{n}", u8(s), "input") for n, s in enumerate(sizes))
    maker.values += inputs
    maker.steps(chance.randrange(2, 8), 2)
    maker.looped(1)
    maker.steps(chance.randrange(3), 1)
    outputs = {maker.values[-1]: None}
    for _ in range(chance.randrange(3)):
        outputs[chance.choice(maker.values)] = None
    names = tuple(f"out{n}" for n in range(len(outputs)))
    return Function(f"loops{seed}", inputs, tuple(outputs), names, tuple(maker.instructions))
