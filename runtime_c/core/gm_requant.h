/* SPDX-License-Identifier: Apache-2.0
 * Requantization: y = clamp(zero_point + ((acc * multiplier + 2^31) >> 32)). */
#ifndef GM_REQUANT_H
#define GM_REQUANT_H

#include "gm_types.h"

/* The arithmetic right shift of a negative number is the compiler's choice in C; every compiler
 * this is meant for shifts arithmetically, and this line fails to compile where one does not. */
typedef char gm_assert_arithmetic_shift[((-2 >> 1) == -1) ? 1 : -1];

GM_INLINE int32_t gm_clamp_s32(int32_t value, int32_t low, int32_t high)
{
    value = value < low ? low : value;
    return value > high ? high : value;
}

#if defined(__ARM_ARCH_6M__) || defined(__ARM_ARCH_8M_BASE__)
/* No multiplication with a result of 64 bits; define it for any other processor without one. */
#define GM_NO_LONG_MULTIPLY
#endif

#if defined(GM_NO_LONG_MULTIPLY)
/* (acc * multiplier + 2^31) >> 32 from four products of 16 bits; the multiplier is 0 or more. */
GM_OUTLINE int32_t gm_mulh_round_s32(int32_t acc, int32_t multiplier)
{
    const int32_t a_high = acc >> 16;
    const int32_t a_low = acc & 0xFFFF;
    const int32_t m_high = multiplier >> 16;
    const int32_t m_low = multiplier & 0xFFFF;
    const uint32_t low = (uint32_t)a_low * (uint32_t)m_low;
    const int32_t x = a_low * m_high + (int32_t)(low >> 16); /* below 2^31 */
    const int32_t y = a_high * m_low;
    const int32_t carry = ((x & 0xFFFF) + (y & 0xFFFF) + 0x8000) >> 16;
    return a_high * m_high + (x >> 16) + (y >> 16) + carry;
}
#else
/* (acc * multiplier + 2^31) >> 32, round half up; |result| < 2^30. */
GM_INLINE int32_t gm_mulh_round_s32(int32_t acc, int32_t multiplier)
{
    return (int32_t)(((int64_t)acc * multiplier + INT64_C(0x80000000)) >> 32);
}
#endif

/* acc * 2^shift must fit 32 bits; the multiplier is even and below 2^31; low and high lie in int8
 * or int16. */
GM_INLINE int32_t gm_requant(int32_t acc, int32_t multiplier, int32_t shift, int32_t zero_point,
                             int32_t low, int32_t high)
{
    const int32_t scaled = gm_mulh_round_s32(acc * (INT32_C(1) << shift), multiplier);
    return gm_clamp_s32(scaled + zero_point, low, high);
}

GM_INLINE int8_t gm_requant_s8(int32_t acc, int32_t multiplier, int32_t shift, int32_t zero_point,
                               int32_t low, int32_t high)
{
    return (int8_t)gm_requant(acc, multiplier, shift, zero_point, low, high);
}

/* The same of a sum of 64 bits; a negative shift goes right, rounding half up, to 32 bits. */
GM_INLINE int32_t gm_requant_wide(int64_t acc, int32_t multiplier, int32_t shift,
                                  int32_t zero_point, int32_t low, int32_t high)
{
    if (shift < 0) {
        acc = (acc + (INT64_C(1) << (-shift - 1))) >> -shift;
        shift = 0;
    }
    return gm_requant((int32_t)acc, multiplier, shift, zero_point, low, high);
}

/* The same with ties away from zero in the stored integers, TensorFlow Lite's rule for averages:
 * dividing by 2^n meets a tie once in 2^n sums, and always up would add a bias. */
GM_INLINE int32_t gm_requant_average(int32_t acc, int32_t multiplier, int32_t shift,
                                     int32_t zero_point, int32_t low, int32_t high)
{
    const int64_t wide = (int64_t)(acc * (INT32_C(1) << shift)) * multiplier + INT64_C(0x80000000);
    const int32_t stored = (int32_t)(wide >> 32) + zero_point;
    const int32_t down = (uint32_t)wide == 0 && stored <= 0;
    return gm_clamp_s32(stored - down, low, high);
}

GM_INLINE int8_t gm_requant_average_s8(int32_t acc, int32_t multiplier, int32_t shift,
                                       int32_t zero_point, int32_t low, int32_t high)
{
    return (int8_t)gm_requant_average(acc, multiplier, shift, zero_point, low, high);
}

#endif
