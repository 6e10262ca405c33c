/* SPDX-License-Identifier: Apache-2.0
 * Element-wise work on four int8 values a word, for the DSP extension of Armv7E-M and Armv8-M. */
#ifndef GM_BYTES_H
#define GM_BYTES_H

#include "gm_raw_product.h"

/* The larger of each two bytes. */
GM_INLINE uint32_t gm_max4_s8(uint32_t a, uint32_t b)
{
#if GM_ASM
    uint32_t larger;
    __asm__("ssub8 %0, %1, %2\n\tsel %0, %1, %2" : "=&r"(larger) : "r"(a), "r"(b) : "cc");
    return larger;
#else
    uint32_t larger = 0;
    for (int32_t n = 0; n < 32; n += 8) {
        const uint32_t u = a >> n & 0xFFU;
        const uint32_t v = b >> n & 0xFFU;
        larger |= ((int8_t)u > (int8_t)v ? u : v) << n;
    }
    return larger;
#endif
}

/* The smaller of each two bytes. */
GM_INLINE uint32_t gm_min4_s8(uint32_t a, uint32_t b)
{
#if GM_ASM
    uint32_t smaller;
    __asm__("ssub8 %0, %1, %2\n\tsel %0, %2, %1" : "=&r"(smaller) : "r"(a), "r"(b) : "cc");
    return smaller;
#else
    return ~gm_max4_s8(~a, ~b);
#endif
}

/* Add bytes 0 and 2 of a word to two int16 lanes. */
GM_INLINE uint32_t gm_add_even_bytes(uint32_t lanes, uint32_t value)
{
#if GM_ASM
    uint32_t sums;
    __asm__("sxtab16 %0, %1, %2" : "=r"(sums) : "r"(lanes), "r"(value));
    return sums;
#else
    const uint32_t even = gm_even_bytes(value);
    return ((lanes + even) & 0xFFFFU) | ((lanes & 0xFFFF0000U) + (even & 0xFFFF0000U));
#endif
}

/* Add bytes 1 and 3 of a word to two int16 lanes. */
GM_INLINE uint32_t gm_add_odd_bytes(uint32_t lanes, uint32_t value)
{
#if GM_ASM
    uint32_t sums;
    __asm__("sxtab16 %0, %1, %2, ror #8" : "=r"(sums) : "r"(lanes), "r"(value));
    return sums;
#else
    return gm_add_even_bytes(lanes, value >> 8);
#endif
}

/* sum + (factor * lane >> 16), exact where the product is a multiple of 2^16. */
GM_INLINE int32_t gm_mla_low(int32_t sum, int32_t factor, uint32_t lanes)
{
#if GM_ASM
    int32_t found;
    __asm__("smlawb %0, %1, %2, %3" : "=r"(found) : "r"(factor), "r"(lanes), "r"(sum));
    return found;
#else
    return sum + (int32_t)((int64_t)factor * (int16_t)(lanes & 0xFFFFU) >> 16);
#endif
}

GM_INLINE int32_t gm_mla_high(int32_t sum, int32_t factor, uint32_t lanes)
{
#if GM_ASM
    int32_t found;
    __asm__("smlawt %0, %1, %2, %3" : "=r"(found) : "r"(factor), "r"(lanes), "r"(sum));
    return found;
#else
    return sum + (int32_t)((int64_t)factor * (int16_t)(lanes >> 16) >> 16);
#endif
}

/* Products of the low, of the high lanes of two words. */
GM_INLINE int32_t gm_mul_low(uint32_t a, uint32_t b)
{
    return (int16_t)(a & 0xFFFFU) * (int16_t)(b & 0xFFFFU);
}

GM_INLINE int32_t gm_mul_high(uint32_t a, uint32_t b)
{
    return (int16_t)(a >> 16) * (int16_t)(b >> 16);
}

/* sum + ((value * multiplier + 2^31) >> 32) */
GM_INLINE int32_t gm_mla_round(int32_t value, int32_t multiplier, int32_t sum)
{
#if GM_ASM
    int32_t found;
    __asm__("smmlar %0, %1, %2, %3" : "=r"(found) : "r"(value), "r"(multiplier), "r"(sum));
    return found;
#else
    return gm_mulh_round_s32(value, multiplier) + sum;
#endif
}

/* value >> shift, saturated to int8; shift is a constant from 1 to 31. */
#if GM_ASM
#define GM_SATURATE(result, value) __asm__("ssat %0, #8, %1" : "=r"(result) : "r"(value))
#define GM_NARROW(result, value, shift)                                                            \
    __asm__("ssat %0, #8, %1, asr %2" : "=r"(result) : "r"(value), "I"(shift))
#else
#define GM_SATURATE(result, value) ((result) = gm_clamp_s32(value, -128, 127))
#define GM_NARROW(result, value, shift) ((result) = gm_clamp_s32((value) >> (shift), -128, 127))
#endif

/* The low bytes of four values. */
GM_INLINE uint32_t gm_pack4(int32_t a, int32_t b, int32_t c, int32_t d)
{
#if GM_ASM
    __asm__("bfi %0, %1, #8, #8" : "+r"(a) : "r"(b));
    __asm__("bfi %0, %1, #8, #8" : "+r"(c) : "r"(d));
    return ((uint32_t)a & 0xFFFFU) | (uint32_t)c << 16;
#else
    return ((uint32_t)a & 0xFFU) | ((uint32_t)b & 0xFFU) << 8 | ((uint32_t)c & 0xFFU) << 16 |
           (uint32_t)d << 24;
#endif
}

#endif
