"""Requantization without a long multiply gives the same bits as with one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

CORE = Path(__file__).resolve().parents[2] / "runtime_c" / "core"
PROGRAM = r"""
#define GM_NO_LONG_MULTIPLY
#include "gm_requant.h"
#include <stdio.h>
static const int32_t edges[] = {0, 1, -1, 65535, 65536, -65536, -65535, 32767, 32768, -32768,
                                INT32_MAX, INT32_MIN, INT32_MIN + 1, 0x7FFF0000, 0x7FFFFFFE, 2};
int main(void)
{
    uint64_t state = 88172645463325252u;
    for (int32_t i = 0; i < 1000000; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        int32_t acc = (int32_t)(uint32_t)(state >> 32) >> (int)(state & 31);
        int32_t multiplier = (int32_t)((uint32_t)state >> 1) & ~1;
        if (i < 256) {
            acc = edges[i % 16];
            multiplier = edges[i / 16] & 0x7FFFFFFE;
        }
        const int64_t product = (int64_t)acc * multiplier + INT64_C(0x80000000);
        if (gm_mulh_round_s32(acc, multiplier) != (int32_t)(product >> 32)) {
            printf("%ld * %ld\n", (long)acc, (long)multiplier);
            return 1;
        }
    }
    return 0;
}
"""


@pytest.mark.cc
def test_four_products_of_16_bits_are_one_of_32(tmp_path: Path, cc: str) -> None:
    source = tmp_path / "parts.c"
    source.write_text(PROGRAM)
    flags = ["-std=c99", "-O1", "-fsanitize=undefined", "-fno-sanitize-recover=all", f"-I{CORE}"]
    subprocess.run([cc, *flags, source, "-o", tmp_path / "parts"], check=True)
    ran = subprocess.run([tmp_path / "parts"], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
