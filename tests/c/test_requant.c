/* SPDX-License-Identifier: Apache-2.0
 * Requantization at its extremes, against the definition in wider arithmetic. */
#include "check.h"
#include "gm_requant.h"

static int64_t floor_shift_32(int64_t value)
{
    const int64_t unit = INT64_C(1) << 32;
    return value >= 0 ? value / unit : -((-value + unit - 1) / unit);
}

static int32_t expected(int64_t acc, int32_t multiplier, int32_t shift, int32_t zero_point,
                        int32_t low, int32_t high)
{
    const int64_t scaled = acc * (INT64_C(1) << shift);
    const int64_t value = zero_point + floor_shift_32(scaled * multiplier + (INT64_C(1) << 31));
    return (int32_t)(value < low ? low : value > high ? high : value);
}

static void compare(int32_t acc, int32_t multiplier, int32_t shift, int32_t zero_point)
{
    CHECK(gm_requant_s8(acc, multiplier, shift, zero_point, -128, 127) ==
          expected(acc, multiplier, shift, zero_point, -128, 127));
    CHECK(gm_requant_s8(acc, multiplier, shift, zero_point, -3, 5) ==
          expected(acc, multiplier, shift, zero_point, -3, 5));
}

static void test_extremes(void)
{
    static const int32_t accs[] = {INT32_MIN, INT32_MIN + 1, -65536,   -3, -2, -1, 0, 1, 2, 3, 7,
                                   65535,     INT32_MAX - 1, INT32_MAX};
    static const int32_t multipliers[] = {0, 2, 4, 1 << 20, 1 << 30, INT32_MAX - 1};
    for (size_t i = 0; i < sizeof accs / sizeof accs[0]; i++) {
        for (size_t j = 0; j < sizeof multipliers / sizeof multipliers[0]; j++) {
            compare(accs[i], multipliers[j], 0, -128);
            compare(accs[i], multipliers[j], 0, 0);
            compare(accs[i], multipliers[j], 0, 127);
        }
    }
}

static void test_every_shift(void)
{
    for (int32_t shift = 0; shift <= 15; shift++) {
        const int32_t limit = INT32_MAX >> shift;
        compare(limit, INT32_MAX - 1, shift, 0);
        compare(-limit - 1, INT32_MAX - 1, shift, 0);
        compare(1, 1 << 30, shift, 0);
        compare(-1, 1 << 30, shift, 0);
    }
}

static void test_halves_round_up(void)
{
    /* multiplier 2^30 is a scale of 1/4: 2 * 1/4 = 0.5 rounds to 1, -2 * 1/4 = -0.5 to 0 */
    CHECK(gm_requant_s8(2, 1 << 30, 0, 0, -128, 127) == 1);
    CHECK(gm_requant_s8(-2, 1 << 30, 0, 0, -128, 127) == 0);
    CHECK(gm_requant_s8(6, 1 << 30, 0, 0, -128, 127) == 2);
    CHECK(gm_requant_s8(-6, 1 << 30, 0, 0, -128, 127) == -1);
}

static void test_random(void)
{
    uint32_t state = 1;
    for (int i = 0; i < 200000; i++) {
        state = state * 1664525u + 1013904223u;
        const int32_t acc = (int32_t)(state ^ (state << 16));
        state = state * 1664525u + 1013904223u;
        compare(acc, (int32_t)(state >> 1) & ~1, 0, (int32_t)(state % 256u) - 128);
    }
}

int main(void)
{
    test_extremes();
    test_every_shift();
    test_halves_round_up();
    test_random();
    return 0;
}
