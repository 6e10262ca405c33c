"""A network written by hand, so that the boards are tested without the compiler."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from glowmcu.core import dtypes
from glowmcu.core.types import TensorType
from glowmcu.emit.unit import CodeUnit, Slot
from glowmcu.targets.target import target

_HEADER = """\
#include <stddef.h>
#include <stdint.h>
typedef union {{ uint8_t bytes[{arena}]; float alignment; }} toy_arena;
void toy_init(toy_arena *arena);
int toy_run(toy_arena *arena, const float *x, const int8_t *q, float *y, int32_t *total);
"""

_SOURCE = """\
#include "toy.h"
#include <math.h>
#ifdef TOY_HOOK_HEADER
#include TOY_HOOK_HEADER
#endif
#ifndef TOY_HOOK_BEGIN
#define TOY_HOOK_BEGIN(layer)
#endif
#ifndef TOY_HOOK_END
#define TOY_HOOK_END(layer)
#endif
static const float offsets[4] = {{0.25f, -1.5f, 3.0f, 1e-7f}};
static volatile int32_t base = 42; /* initialised data must arrive in RAM */

void toy_init(toy_arena *arena)
{{
    (void)arena;
}}

static volatile int zero;

int toy_run(toy_arena *arena, const float *x, const int8_t *q, float *y, int32_t *total)
{{
    const float *in = x ? x : (const float *)(const void *)arena->bytes;
    const int8_t *in8 = q ? q : (const int8_t *)arena->bytes + 16;
    float *out = y ? y : (float *)(void *)(arena->bytes + 32);
    int32_t *sum = total ? total : (int32_t *)(void *)(arena->bytes + 48);
    TOY_HOOK_BEGIN(0);
    for (int i = 0; i < 4; i++) {{
        out[i] = expf(in[i]) + offsets[i];
    }}
    TOY_HOOK_END(0);
    TOY_HOOK_BEGIN(1);
    *sum = base;
    for (int i = 0; i < 5; i++) {{
        *sum += in8[i];
    }}
    {body}
    TOY_HOOK_END(1);
    return zero;
}}
"""


@pytest.fixture
def toy() -> Callable[..., CodeUnit]:
    """Return a function that makes the network; `body` is C at its end, `arena` its bytes."""

    def make(body: str = "", arena: int = 64, compiled_for: str = "host") -> CodeUnit:
        f32, i8, i32 = dtypes.F32, dtypes.I8, dtypes.I32
        y = Slot("y", "y", TensorType(f32, (2, 2)), 32)
        total = Slot("total", "total", TensorType(i32, ()), 48)
        return CodeUnit(
            name="toy",
            files={"toy.h": _HEADER.format(arena=arena), "toy.c": _SOURCE.format(body=body)},
            report={},
            target=target(compiled_for),
            inputs=(
                Slot("x", "x", TensorType(f32, (2, 2)), 0),
                Slot("q", "q", TensorType(i8, (5,)), 16),
            ),
            outputs=(y, total),
            layers=((y,), (total,)),
            arena_size=arena,
            arena_align=4,
        )

    return make
