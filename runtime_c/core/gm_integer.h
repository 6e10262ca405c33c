/* SPDX-License-Identifier: Apache-2.0
 * Integer division, remainder and power for every operand: nothing is undefined. A division by
 * zero gives 0; what does not fit wraps. */
#ifndef GM_INTEGER_H
#define GM_INTEGER_H

#include "gm_types.h"

/* Quotient cut towards zero. */
GM_INLINE int32_t gm_div_s32(int32_t a, int32_t b)
{
    if (b == 0 || b == -1) {
        return (int32_t)((uint32_t)a * (uint32_t)b); /* the one quotient that may not fit */
    }
    return a / b;
}

GM_INLINE int64_t gm_div_s64(int64_t a, int64_t b)
{
    if (b == 0 || b == -1) {
        return (int64_t)((uint64_t)a * (uint64_t)b);
    }
    return a / b;
}

/* Remainder with the sign of a. */
GM_INLINE int32_t gm_rem_s32(int32_t a, int32_t b)
{
    return b == 0 || b == -1 ? 0 : a % b;
}

GM_INLINE int64_t gm_rem_s64(int64_t a, int64_t b)
{
    return b == 0 || b == -1 ? 0 : a % b;
}

/* Remainder with the sign of b. */
GM_INLINE int32_t gm_mod_s32(int32_t a, int32_t b)
{
    const int32_t rest = gm_rem_s32(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

GM_INLINE int64_t gm_mod_s64(int64_t a, int64_t b)
{
    const int64_t rest = gm_rem_s64(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

/* A negative exponent gives the integer part of the inverse. */
GM_INLINE int64_t gm_pow_s64(int64_t base, int64_t exponent)
{
    uint64_t result = 1;
    uint64_t factor = (uint64_t)base;
    if (exponent < 0) {
        const int64_t odd = base == -1 && exponent % 2 != 0 ? -1 : 1;
        return base == 1 || base == -1 ? odd : 0;
    }
    while (exponent > 0) {
        if (exponent % 2 != 0) {
            result *= factor;
        }
        factor *= factor;
        exponent /= 2;
    }
    return (int64_t)result;
}

#endif
