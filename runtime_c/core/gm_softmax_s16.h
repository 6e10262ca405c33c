/* SPDX-License-Identifier: Apache-2.0
 * Softmax of int16 rows in integers: powers of two by table, one division a row. */
#ifndef GM_SOFTMAX_S16_H
#define GM_SOFTMAX_S16_H

#include "gm_requant.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int32_t rows;                /* 0 or more */
    int32_t cols;                /* 1 or more */
    int32_t last;                /* larger differences from the largest value are taken for it */
    int32_t exponent_multiplier; /* exp(-d * scale of x) is 2^-t, t in 2^-26ths the product */
    int32_t exponent_shift;      /* of d and this, shifted right */
    int32_t sum_shift;           /* the sum of powers, 2^30 at most, is shifted right */
    int32_t multiplier;          /* of the result and the sum's logarithm to units of y, */
    int32_t log_multiplier;      /* shifted left */
    int32_t shift;
    int32_t zero_point; /* of y */
    int32_t low;        /* clamp of y */
    int32_t high;
} gm_softmax_s16_t;

/* The power of two for a value that lies d below the largest of its row; table: 129 powers. */
GM_INLINE int32_t gm_softmax_power_s16(const gm_softmax_s16_t *p, const int32_t *table, int32_t d)
{
    const int64_t below = d < p->last ? d : p->last;
    const int32_t t = (int32_t)((below * p->exponent_multiplier) >> p->exponent_shift);
    const int32_t *v = table + ((t >> 19) & 127);
    const int64_t step = (int64_t)(v[0] - v[1]) * (t & 0x7FFFF);
    return (v[0] - (int32_t)(step >> 19)) >> (t >> 26);
}

GM_INLINE int32_t gm_softmax_highest_s16(const int16_t *x, int32_t cols)
{
    int32_t highest = x[0];
    for (int32_t i = 1; i < cols; i++) {
        highest = x[i] > highest ? x[i] : highest;
    }
    return highest;
}

/* The sum of the powers of a row, below 2^31 and at least 2^(30 - sum_shift). */
GM_INLINE int32_t gm_softmax_sum_s16(const gm_softmax_s16_t *p, const int16_t *x,
                                     const int32_t *table, int32_t highest)
{
    int64_t sum = 0;
    for (int32_t i = 0; i < p->cols; i++) {
        sum += gm_softmax_power_s16(p, table, highest - x[i]);
    }
    return (int32_t)(sum >> p->sum_shift);
}

GM_INLINE int16_t gm_softmax_store_s16(const gm_softmax_s16_t *p, int64_t acc)
{
    const int64_t half = INT64_C(1) << (p->shift - 1);
    const int64_t stored = ((acc + half) >> p->shift) + p->zero_point;
    return (int16_t)(stored < p->low ? p->low : stored > p->high ? p->high : stored);
}

/* table: 2^30 * 2^(-i / 128) for i = 0..128. y may be x. */
GM_INLINE void gm_softmax_s16_core(const gm_softmax_s16_t *p, int16_t *y, const int16_t *x,
                                   const int32_t *GM_RESTRICT table)
{
    for (int32_t r = 0; r < p->rows; r++) {
        const int32_t highest = gm_softmax_highest_s16(x, p->cols);
        const int32_t sum = gm_softmax_sum_s16(p, x, table, highest);
        /* the sum has the largest power in it: the quotient is at most 2^31 */
        const int64_t inverse = (INT64_C(1) << (61 - p->sum_shift)) / sum;
        for (int32_t i = 0; i < p->cols; i++) {
            const int64_t power = gm_softmax_power_s16(p, table, highest - x[i]);
            y[i] = gm_softmax_store_s16(p, ((power * inverse) >> 30) * p->multiplier);
        }
        x += p->cols;
        y += p->cols;
    }
}

void gm_softmax_s16(const gm_softmax_s16_t *p, int16_t *y, const int16_t *x,
                    const int32_t *GM_RESTRICT table);

#ifdef __cplusplus
}
#endif

#endif
