/* SPDX-License-Identifier: Apache-2.0
 * Product of two int8 tensors: y = requantize((a - a_zero) * (b - b_zero)). */
#ifndef GM_MUL_S8_H
#define GM_MUL_S8_H

#include "gm_requant.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int32_t rows;   /* 1 or more */
    int32_t cols;   /* 0 or more */
    int32_t b_row;  /* elements from one row of b to the next, 0: the same row again */
    int32_t b_col;  /* 1, or 0 where a row of b is one element */
    int32_t a_zero; /* -128..127 */
    int32_t b_zero;
    int32_t multiplier;
    int32_t shift;      /* 0..15 */
    int32_t zero_point; /* of y */
    int32_t low;        /* clamp of y, -128 <= low <= high <= 127 */
    int32_t high;
} gm_mul_s8_t;

GM_INLINE int8_t gm_mul_one_s8(const gm_mul_s8_t *p, int32_t a, int32_t b)
{
    return gm_requant_s8((a - p->a_zero) * (b - p->b_zero), p->multiplier, p->shift, p->zero_point,
                         p->low, p->high);
}

/* One run of `cols` elements: a row of an image, or all of a tensor. */
GM_INLINE void gm_mul_s8_row(const gm_mul_s8_t *p, int8_t *y, const int8_t *a, const int8_t *b)
{
    const gm_mul_s8_t k = *p; /* stores to y cannot change a copy */
    const int32_t step = k.b_col;
    int32_t i = 0;
    for (; i + 2 <= k.cols; i += 2) {
        const int8_t y0 = gm_mul_one_s8(&k, a[i], b[i * step]);
        const int8_t y1 = gm_mul_one_s8(&k, a[i + 1], b[(i + 1) * step]);
        y[i] = y0;
        y[i + 1] = y1;
    }
    if (i < k.cols) {
        y[i] = gm_mul_one_s8(&k, a[i], b[i * step]);
    }
}

/* y may be a, and b where b is read once. */
GM_INLINE void gm_mul_s8_core(const gm_mul_s8_t *p, int8_t *y, const int8_t *a, const int8_t *b)
{
    for (int32_t r = 0; r < p->rows; r++) {
        gm_mul_s8_row(p, y + r * p->cols, a + r * p->cols, b + r * p->b_row);
    }
}

void gm_mul_s8(const gm_mul_s8_t *p, int8_t *y, const int8_t *a, const int8_t *b);

#ifdef __cplusplus
}
#endif

#endif
