/* SPDX-License-Identifier: Apache-2.0
 * Real numbers to 64-bit integers: cut towards zero, saturating; NaN becomes the lowest integer. */
#ifndef GM_TO_INT_H
#define GM_TO_INT_H

#include "gm_types.h"

GM_INLINE int64_t gm_to_int64f(float x)
{
    if (x >= 9223372036854775808.0f) {
        return INT64_MAX;
    }
    return x > -9223372036854775808.0f ? (int64_t)x : INT64_MIN;
}

GM_INLINE int64_t gm_to_int64(double x)
{
    if (x >= 9223372036854775808.0) {
        return INT64_MAX;
    }
    return x > -9223372036854775808.0 ? (int64_t)x : INT64_MIN;
}

GM_INLINE uint64_t gm_to_uint64f(float x)
{
    if (x >= 18446744073709551616.0f) {
        return UINT64_MAX;
    }
    return x > 0.0f ? (uint64_t)x : 0;
}

GM_INLINE uint64_t gm_to_uint64(double x)
{
    if (x >= 18446744073709551616.0) {
        return UINT64_MAX;
    }
    return x > 0.0 ? (uint64_t)x : 0;
}

#endif
