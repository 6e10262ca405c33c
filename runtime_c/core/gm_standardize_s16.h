/* SPDX-License-Identifier: Apache-2.0
 * Rows with mean 0 and variance 1 in integers, scaled and shifted per column: layer normalization.
 * A square root and a division of integers a row. */
#ifndef GM_STANDARDIZE_S16_H
#define GM_STANDARDIZE_S16_H

#include "gm_requant.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int32_t rows;         /* 0 or more */
    int32_t cols;         /* 1..8192 */
    int32_t centre;       /* 1: the mean is subtracted; 0: it is taken as the zero point */
    int32_t x_zero_point; /* of x */
    int64_t epsilon;      /* added to the variance times cols^2, in units of x, below 2^60 */
    int32_t shift;        /* `scale` is in 2^(shift - 23)ths of a unit of y, 8..46 */
    int32_t zero_point;   /* of y */
    int32_t low;          /* clamp of y */
    int32_t high;
} gm_standardize_s16_t;

/* The largest integer whose square is at most v, for v below 2^62. */
GM_INLINE uint32_t gm_square_root_u64(uint64_t v)
{
    uint32_t root = 0;
    for (uint32_t bit = UINT32_C(0x40000000); bit > 0; bit >>= 1) {
        const uint64_t tried = root | bit;
        if (tried * tried <= v) {
            root |= bit;
        }
    }
    return root;
}

/* One row: y = (x * cols - sum) / sqrt(cols * sum of squares - sum^2), scaled and shifted. */
GM_INLINE void gm_standardize_row_s16(const gm_standardize_s16_t *p, int16_t *y, const int16_t *x,
                                      const int32_t *scale, const int32_t *bias)
{
    int32_t sum = 0;
    int64_t squares = 0;
    for (int32_t i = 0; i < p->cols; i++) {
        const int32_t v = x[i] - p->x_zero_point;
        sum += v;
        squares += (int64_t)v * v;
    }
    sum = p->centre ? sum : 0;
    const int64_t spread = p->cols * squares - (int64_t)sum * sum + p->epsilon;
    uint64_t v = spread > 0 ? (uint64_t)spread : 1;
    int32_t doubled = 0;
    while (v < UINT64_C(0x1000000000000000)) {
        v <<= 2;
        doubled++;
    }
    const int64_t inverse = (int64_t)(UINT64_C(0x2000000000000000) / gm_square_root_u64(v));
    const int32_t down = 38 - doubled; /* to 2^-23ths */
    const int64_t half = INT64_C(1) << (down - 1);
    for (int32_t i = 0; i < p->cols; i++) {
        const int32_t centred = (x[i] - p->x_zero_point) * p->cols - sum;
        const int64_t z = (centred * inverse + half) >> down;
        const int64_t fine = ((z * scale[i]) >> (p->shift - 8)) + bias[i];
        const int64_t stored = ((fine + 128) >> 8) + p->zero_point;
        y[i] = (int16_t)(stored < p->low ? p->low : stored > p->high ? p->high : stored);
    }
}

/* scale, bias: a factor for each column, and what is added in 256ths of a unit of y. y may be x. */
GM_INLINE void gm_standardize_s16_core(const gm_standardize_s16_t *p, int16_t *y, const int16_t *x,
                                       const int32_t *GM_RESTRICT scale,
                                       const int32_t *GM_RESTRICT bias)
{
    for (int32_t r = 0; r < p->rows; r++) {
        gm_standardize_row_s16(p, y, x, scale, bias);
        x += p->cols;
        y += p->cols;
    }
}

void gm_standardize_s16(const gm_standardize_s16_t *p, int16_t *y, const int16_t *x,
                        const int32_t *GM_RESTRICT scale, const int32_t *GM_RESTRICT bias);

#ifdef __cplusplus
}
#endif

#endif
