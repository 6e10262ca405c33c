/* SPDX-License-Identifier: Apache-2.0
 * Product of two int8 tensors: y = requantize((a - a_zero) * (b - b_zero)).
 * Its functions serve int16 as well: `size` is the bytes of an element of a, b and y. */
#ifndef GM_MUL_S8_H
#define GM_MUL_S8_H

#include "gm_requant.h"
#include "gm_stored.h"

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

GM_INLINE int32_t gm_mul_one(const gm_mul_s8_t *p, int32_t a, int32_t b)
{
    return gm_requant((a - p->a_zero) * (b - p->b_zero), p->multiplier, p->shift, p->zero_point,
                      p->low, p->high);
}

/* One run of `cols` elements: a row of an image, or all of a tensor. */
GM_INLINE void gm_mul_row(const gm_mul_s8_t *p, int32_t size, void *y, const void *a, const void *b)
{
    const gm_mul_s8_t k = *p; /* stores to y cannot change a copy */
    const int32_t step = k.b_col;
    int32_t i = 0;
    for (; i + 2 <= k.cols; i += 2) {
        const int32_t y0 = gm_mul_one(&k, gm_get(a, i, size), gm_get(b, i * step, size));
        const int32_t y1 = gm_mul_one(&k, gm_get(a, i + 1, size), gm_get(b, (i + 1) * step, size));
        gm_put(y, i, size, y0);
        gm_put(y, i + 1, size, y1);
    }
    if (i < k.cols) {
        gm_put(y, i, size, gm_mul_one(&k, gm_get(a, i, size), gm_get(b, i * step, size)));
    }
}

/* y may be a, and b where b is read once. */
GM_INLINE void gm_mul_stored(const gm_mul_s8_t *p, int32_t size, void *y, const void *a,
                             const void *b)
{
    for (int32_t r = 0; r < p->rows; r++) {
        gm_mul_row(p, size, gm_to(y, r * p->cols, size), gm_from(a, r * p->cols, size),
                   gm_from(b, r * p->b_row, size));
    }
}

GM_INLINE void gm_mul_s8_core(const gm_mul_s8_t *p, int8_t *y, const int8_t *a, const int8_t *b)
{
    gm_mul_stored(p, 1, y, a, b);
}

void gm_mul_s8(const gm_mul_s8_t *p, int8_t *y, const int8_t *a, const int8_t *b);

#ifdef __cplusplus
}
#endif

#endif
