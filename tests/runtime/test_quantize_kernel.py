"""gm_quantize.h: the bits of core.types.quantize for every kind of number, on two compilers."""

from __future__ import annotations

import c_calls
import numpy as np
import pytest

from glowmcu.core import dtypes
from glowmcu.core.types import Quant, TensorType, quantize, type_of
from glowmcu.instr.buffer import Buffer
from glowmcu.ops._functions import QUANTIZABLE
from glowmcu.ops._program import Input, Literal, Step
from glowmcu.ops.map import Map

SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 3.4e38, -3.4e38, 1e-45, 2.0**31, -(2.0**31), 2.0**63]


def numbers() -> np.ndarray:
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 1 << 32, 3000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    halves = np.arange(-70000, 70000, 17.5, dtype=np.float32)
    powers = np.ldexp(np.float32(1.0), np.arange(15, 33)).astype(np.float32)
    near = [np.nextafter(p, np.float32(s)) for p in powers for s in (0, np.inf)]
    middle = rng.normal(0, 4e6, 2000).astype(np.float32)
    parts = [bits, halves, powers, -powers, near, middle, middle / 2 + np.float32(0.5), SPECIAL]
    return np.concatenate([np.asarray(p, np.float32) for p in parts])


@pytest.mark.cc
@pytest.mark.parametrize("flags", [(), ("-m32", "-msse2", "-mfpmath=sse")], ids=["native", "m32"])
def test_bits_equal_the_definition(cc: str, flags: tuple[str, ...]) -> None:
    x = numbers()
    cases = []
    wanted = []
    for dtype in QUANTIZABLE:
        zeros = (0,) if dtype.bits == 32 else (0, dtype.low, dtype.high, 3)
        for zero in zeros:
            for scale in (1.0, float(np.float32(0.0371)), 513.5):
                source = Buffer("x", type_of(x), "activation")
                y = Buffer("y", TensorType(dtype, x.shape), "activation")
                args = (Input(0), Literal(scale, dtypes.F32), Literal(zero, dtypes.I32))
                step = Step(f"quantize_{dtype}", args)
                instruction = Map(y=y, xs=(source,), program=(step,))
                cases.append((instruction, {source: x, y: np.zeros(x.shape, dtype.numpy)}))
                with np.errstate(all="ignore"):
                    wanted.append(quantize(x, Quant.per_tensor(scale, zero), dtype))
    if "-m32" in flags and not _can_link(cc, flags):
        pytest.skip(f"{cc} cannot make 32-bit programs here")
    sanitize = () if flags else tuple(c_calls.SANITIZE)
    for (found,), right in zip(c_calls.run(cases, cc, (*flags, *sanitize)), wanted, strict=True):
        np.testing.assert_array_equal(found, right)


def _can_link(cc: str, flags: tuple[str, ...]) -> bool:
    try:
        c_calls.run([], cc, flags)
    except AssertionError:
        return False
    return True
