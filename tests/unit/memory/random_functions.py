"""Random functions of simple instructions: in-place pairs, views, copies, parts, scratch."""

from __future__ import annotations

import random

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.types import Array, TensorType
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Function
from glowmcu.instr.instruction import In, InOut, Ins, Instruction, Out
from glowmcu.targets.kernel import Kernel, Overlap


class Copy(Instruction):
    """y = x."""

    y: Out
    x: In
    is_copy = True

    def reference(self, x: Array) -> Array:
        return x.copy()


class Twist(Instruction):
    """y[i] = 3 x[i] + i, in place."""

    y: Out
    x: In
    may_share = (("y", "x"),)

    def reference(self, x: Array) -> Array:
        return (x.reshape(-1) * np.uint8(3) + np.arange(x.size).astype(np.uint8)).astype(np.uint8)


class Mix(Instruction):
    """y = a + 5 b, over a or over b."""

    y: Out
    a: In
    b: In
    may_share = (("y", "a"), ("y", "b"))

    def reference(self, a: Array, b: Array) -> Array:
        return (a.reshape(-1) + np.uint8(5) * b.reshape(-1)).astype(np.uint8)


class Shrink(Instruction):
    """y[i] = x[2 i] + x[2 i + 1]: a smaller result, in place."""

    y: Out
    x: In
    may_share = (("y", "x"),)

    def reference(self, x: Array) -> Array:
        return (x.reshape(-1, 2).sum(axis=1)).astype(np.uint8)


class Reverse(Instruction):
    """y = x backwards: never in place."""

    y: Out
    x: In

    def reference(self, x: Array) -> Array:
        return x.reshape(-1)[::-1].copy()


class Both(Instruction):
    """Two results: y over x, and the sum of all operands z."""

    y: Out
    z: Out
    x: In
    more: Ins
    may_share = (("y", "x"),)

    def reference(self, x: Array, more: list[Array]) -> tuple[Array, Array]:
        total = np.sum([int(m.sum()) for m in more]) + int(x.sum())
        return x.reshape(-1) + np.uint8(1), np.asarray([total % 251], np.uint8)


class Widen(Instruction):
    """A result twice as long, which may trail behind its operand."""

    y: Out
    x: In

    def reference(self, x: Array) -> Array:
        return np.repeat(x.reshape(-1), 2) ^ np.uint8(1)


WIDEN = Kernel("widen", overlap=lambda i: (Overlap("y", "x", -i.x.nbytes, i.x.nbytes),))


class Bump(Instruction):
    """x[0] changes, the rest stays."""

    x: InOut
    by: In

    def reference(self, x: Array, by: Array) -> Array:
        result = x.copy()
        result.reshape(-1)[:1] += by.reshape(-1)[-1:]
        return result


def u8(size: int) -> TensorType:
    return TensorType(dtypes.U8, (size,))


class Maker:
    """Writes a random function: every instruction uses values that earlier ones made."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.count = 0
        self.instructions: list[Instruction] = []
        self.values: list[Buffer] = []
        self.frozen: set[Buffer] = set()

    def buffer(self, size: int) -> Buffer:
        self.count += 1
        return Buffer(f"b{self.count}", u8(size), "activation")

    def emit(self, instruction: Instruction) -> None:
        self.instructions.append(instruction)

    def any_value(self) -> Buffer:
        recent = self.values[-5:] if self.chance.random() < 0.7 else self.values
        return self.chance.choice(recent)

    def step(self) -> None:
        x = self.any_value()
        n = x.nbytes
        kind = self.chance.randrange(11)
        name = f"i{len(self.instructions)}"
        if kind <= 1:
            y = self.buffer(n)
            self.emit(Twist(y=y, x=x, name=name))
        elif kind == 2:
            y = self.buffer(n)
            same = [v for v in self.values if v.nbytes == n]
            self.emit(Mix(y=y, a=x, b=self.chance.choice(same), name=name))
        elif kind == 3 and n % 2 == 0:
            y = self.buffer(n // 2)
            self.emit(Shrink(y=y, x=x, name=name))
        elif kind == 4:
            y = self.buffer(n)
            scratch = Buffer(f"{name}.scratch", u8(12), "scratch")
            self.emit(Reverse(y=y, x=x, name=name, scratch=scratch))
        elif kind == 5:
            y = self.buffer(n)
            self.emit(Copy(y=y, x=x, name=name))
        elif kind == 6:
            start = self.chance.randrange(n)
            stop = self.chance.randrange(start, n) + 1
            y = Buffer(f"{x.name}.v", u8(stop - start), "activation", None, x, start)
        elif kind == 7:
            y = self.concat(name)
        elif kind == 8:
            y, z = self.buffer(n), self.buffer(1)
            more = tuple(self.any_value() for _ in range(self.chance.randrange(3)))
            self.emit(Both(y=y, z=z, x=x, more=more, name=name))
            self.values.append(z)
        elif kind == 9 and n < 64:
            y = self.buffer(2 * n)
            self.emit(Widen(y=y, x=x, name=name, kernel=WIDEN))
        else:
            y = self.bumped(x, name)
        self.values.append(y)

    def concat(self, name: str) -> Buffer:
        """Copies into parts of a whole: the parts of one value after the other."""
        parts = [self.any_value() for _ in range(self.chance.randrange(1, 4))]
        whole = self.buffer(sum(p.nbytes for p in parts))
        start = 0
        for part in parts:
            place = Buffer(f"{whole.name}.p", part.type, "activation", None, whole, start)
            self.emit(Copy(y=place, x=part, name=name))
            start += part.nbytes
        return whole

    def bumped(self, x: Buffer, name: str) -> Buffer:
        """A copy that is changed afterwards while the original may live on."""
        y = self.buffer(x.nbytes)
        self.emit(Copy(y=y, x=x, name=name))
        self.emit(Bump(x=y, by=self.any_value(), name=name + ".bump"))
        return y


def random_function(seed: int) -> Function:
    chance = random.Random(seed)
    maker = Maker(chance)
    sizes = [4 * chance.randrange(1, 9) for _ in range(chance.randrange(1, 4))]
    inputs = tuple(Buffer(f"in{n}", u8(s), "input") for n, s in enumerate(sizes))
    maker.values += inputs
    for _ in range(chance.randrange(2, 16)):
        maker.step()
    outputs = {maker.values[-1]: None}
    for _ in range(chance.randrange(3)):
        outputs[chance.choice(maker.values)] = None
    names = tuple(f"out{n}" for n in range(len(outputs)))
    return Function(f"random{seed}", inputs, tuple(outputs), names, tuple(maker.instructions))


def random_feeds(function: Function, seed: int) -> dict[str, Array]:
    generator = np.random.default_rng(seed)
    return {b.name: generator.integers(0, 256, b.nbytes).astype(np.uint8) for b in function.inputs}
