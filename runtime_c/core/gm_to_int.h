/* SPDX-License-Identifier: Apache-2.0
 * Real numbers to integers: cut towards zero, saturating; NaN becomes the lowest integer. */
#ifndef GM_TO_INT_H
#define GM_TO_INT_H

#include "gm_types.h"

/* Narrower integers by their range: low and high + 1 are exact as float, or high is INT32_MAX. */
GM_INLINE int32_t gm_to_int32f(float x, int32_t low, int32_t high)
{
    if (x >= (float)high + 1.0f) {
        return high;
    }
    return x > (float)low ? (int32_t)x : low;
}

GM_INLINE int32_t gm_to_int32(double x, int32_t low, int32_t high)
{
    if (x >= (double)high + 1.0) {
        return high;
    }
    return x > (double)low ? (int32_t)x : low;
}

GM_INLINE uint32_t gm_to_uint32f(float x)
{
    if (x >= 4294967296.0f) {
        return UINT32_MAX;
    }
    return x > 0.0f ? (uint32_t)x : 0;
}

GM_INLINE uint32_t gm_to_uint32(double x)
{
    if (x >= 4294967296.0) {
        return UINT32_MAX;
    }
    return x > 0.0 ? (uint32_t)x : 0;
}

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
