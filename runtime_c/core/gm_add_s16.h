/* SPDX-License-Identifier: Apache-2.0
 * Sum of two int16 tensors, each times a multiplier, in 64 bits:
 * y = clamp((a * a_multiplier + b * b_multiplier + offset) >> shift). */
#ifndef GM_ADD_S16_H
#define GM_ADD_S16_H

#include "gm_requant.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int32_t rows;         /* 1 or more */
    int32_t cols;         /* 0 or more */
    int32_t b_row;        /* elements from one row of b to the next, 0: the same row again */
    int32_t b_col;        /* 1, or 0 where a row of b is one element */
    int32_t a_multiplier; /* the sum, shifted, fits 32 bits */
    int32_t b_multiplier;
    int64_t offset; /* zero points and rounding */
    int32_t shift;  /* 16..31 */
    int32_t low;    /* clamp of y, -32768 <= low <= high <= 32767 */
    int32_t high;
} gm_add_s16_t;

/* one is 2^(32 - shift) and the offset times that: the result is the upper word of the sum, which
 * costs nothing to take. */
GM_INLINE int16_t gm_add_one_s16(const gm_add_s16_t *p, int32_t one, int64_t offset, int32_t a,
                                 int32_t b)
{
    const int64_t acc =
        offset + (int64_t)(a * one) * p->a_multiplier + (int64_t)(b * one) * p->b_multiplier;
    return (int16_t)gm_clamp_s32((int32_t)(acc >> 32), p->low, p->high);
}

/* y may be a, and b where b is read once. */
GM_INLINE void gm_add_s16_core(const gm_add_s16_t *p, int16_t *y, const int16_t *a,
                               const int16_t *b)
{
    const gm_add_s16_t k = *p; /* stores to y cannot change a copy */
    const int32_t one = INT32_C(1) << (32 - k.shift);
    const int64_t offset = k.offset * one;
    for (int32_t r = 0; r < k.rows; r++) {
        int32_t i = 0;
        for (; i + 2 <= k.cols; i += 2) {
            const int16_t y0 = gm_add_one_s16(&k, one, offset, a[i], b[i * k.b_col]);
            const int16_t y1 = gm_add_one_s16(&k, one, offset, a[i + 1], b[(i + 1) * k.b_col]);
            y[i] = y0;
            y[i + 1] = y1;
        }
        if (i < k.cols) {
            y[i] = gm_add_one_s16(&k, one, offset, a[i], b[i * k.b_col]);
        }
        y += k.cols;
        a += k.cols;
        b += k.b_row;
    }
}

void gm_add_s16(const gm_add_s16_t *p, int16_t *y, const int16_t *a, const int16_t *b);

#ifdef __cplusplus
}
#endif

#endif
