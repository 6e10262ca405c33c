/* SPDX-License-Identifier: Apache-2.0
 * Sum of two int8 tensors: y = clamp((a * a_multiplier + b * b_multiplier + offset) >> shift). */
#ifndef GM_ADD_S8_H
#define GM_ADD_S8_H

#include "gm_requant.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int32_t rows;         /* 1 or more */
    int32_t cols;         /* 0 or more */
    int32_t b_row;        /* elements from one row of b to the next, 0: the same row again */
    int32_t b_col;        /* 1, or 0 where a row of b is one element */
    int32_t a_multiplier; /* the sum of both products and the offset fits 32 bits */
    int32_t b_multiplier;
    int32_t offset; /* zero points and rounding */
    int32_t shift;  /* 8..30 */
    int32_t low;    /* clamp of y, -128 <= low <= high <= 127 */
    int32_t high;
} gm_add_s8_t;

GM_INLINE int8_t gm_add_one_s8(const gm_add_s8_t *p, int32_t a, int32_t b)
{
    const int32_t acc = a * p->a_multiplier + b * p->b_multiplier + p->offset;
    return (int8_t)gm_clamp_s32(acc >> p->shift, p->low, p->high);
}

/* One run of `cols` elements: a row of an image, or all of a tensor. */
GM_INLINE void gm_add_s8_row(const gm_add_s8_t *p, int8_t *y, const int8_t *a, const int8_t *b)
{
    const gm_add_s8_t k = *p; /* stores to y cannot change a copy */
    const int32_t step = k.b_col;
    int32_t i = 0;
    for (; i + 4 <= k.cols; i += 4) {
        const int8_t y0 = gm_add_one_s8(&k, a[i], b[i * step]);
        const int8_t y1 = gm_add_one_s8(&k, a[i + 1], b[(i + 1) * step]);
        const int8_t y2 = gm_add_one_s8(&k, a[i + 2], b[(i + 2) * step]);
        const int8_t y3 = gm_add_one_s8(&k, a[i + 3], b[(i + 3) * step]);
        y[i] = y0;
        y[i + 1] = y1;
        y[i + 2] = y2;
        y[i + 3] = y3;
    }
    for (; i < k.cols; i++) {
        y[i] = gm_add_one_s8(&k, a[i], b[i * step]);
    }
}

/* y may be a, and b where b is read once. */
GM_INLINE void gm_add_s8_core(const gm_add_s8_t *p, int8_t *y, const int8_t *a, const int8_t *b)
{
    for (int32_t r = 0; r < p->rows; r++) {
        gm_add_s8_row(p, y + r * p->cols, a + r * p->cols, b + r * p->b_row);
    }
}

void gm_add_s8(const gm_add_s8_t *p, int8_t *y, const int8_t *a, const int8_t *b);

#ifdef __cplusplus
}
#endif

#endif
