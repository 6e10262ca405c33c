"""Mutated bytes of small models: a graph or a GlowmcuError comes out, nothing else, and quickly."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from toy import model

from glowmcu.errors import GlowmcuError
from glowmcu.frontend import load

SMALL = (
    "(float[N, 4] X) => (float[4] Y) { s = Shape(X) z = ConstantOfShape(s) Y = toy.Double(X) }",
    "(float[2] X) => (float[2] Y) <float[2] C = {5, 6}> { c = toy.Sum(C, C) Y = toy.Sum(X, c) }",
    """(float[4] X) => (float[4] Y) { a, b = toy.Halves(X) c = toy.Grow<times = 2>(a)
    d = Selu(c) i = Constant<value_ints = [2, 2]>() f = Reshape(d, i) g = Transpose(f)
    h = Constant<value_ints = [4]>() Y = Reshape(g, h) }""",
    """(float[2] X) => (float[2] Y) <bool c = {1}> { Y = If (c) <
    then_branch = one () => (float[2] a) { a = toy.Double(X) },
    else_branch = two () => (float[2] b) { b = toy.Same(X) } > }""",
)


def mutated(data: bytes, random: np.random.Generator) -> bytes:
    """Change, delete, insert or repeat a few bytes."""
    out = bytearray(data)
    for _ in range(int(random.integers(1, 5))):
        at = int(random.integers(0, len(out)))
        match int(random.integers(0, 6)):
            case 0:
                out[at] = int(random.integers(0, 256))
            case 1:
                out[at] ^= 1 << int(random.integers(0, 8))
            case 2:
                del out[at : at + int(random.integers(1, 5))]
            case 3:
                out[at:at] = bytes(random.integers(0, 256, 2, np.uint8))
            case 4:
                out[at:at] = out[at : at + int(random.integers(1, 40))]
            case 5:
                out[at] = int(random.choice([0, 1, 0x7F, 0x80, 0xFF]))
        if not out:
            return b"\0"
    return bytes(out)


def check(data: bytes, count: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    for number in range(count):
        changed = mutated(data, random)
        start = time.perf_counter()
        try:
            load(changed)
        except GlowmcuError:
            pass
        except Exception as error:
            raise AssertionError(f"mutation {number} of seed {seed}: {error!r}") from error
        assert time.perf_counter() - start < 5


@pytest.mark.parametrize("number", range(len(SMALL)))
def test_mutated_toys(number: int) -> None:
    check(model(SMALL[number]).SerializeToString(), 300, number)


def test_truncations() -> None:
    data = model(SMALL[2]).SerializeToString()
    for length in range(len(data) - 30):  # the last bytes are opsets that it can do without
        with pytest.raises(GlowmcuError):
            load(data[:length])


def test_mutated_cases(shared: Path) -> None:
    for seed, path in enumerate(sorted((shared / "cases").glob("*.onnx"))):
        if path.stat().st_size:
            check(path.read_bytes(), 12, seed)
