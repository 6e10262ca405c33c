/* SPDX-License-Identifier: Apache-2.0
 * Softmax of int8 rows in integers: exponentials by table, one division a row. */
#ifndef GM_SOFTMAX_S8_H
#define GM_SOFTMAX_S8_H

#include "gm_requant.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int32_t rows;       /* 0 or more */
    int32_t cols;       /* 1 or more; cols * table[0] < 2^32 */
    int32_t last;       /* 0..255: the table holds what differences of 0..last and more mean */
    int32_t sum_shift;  /* 0..15: table[0] is 2^(15 + sum_shift) */
    int32_t multiplier; /* 2^14 / scale of y, below 2^28 */
    int32_t zero_point; /* of y */
} gm_softmax_s8_t;

GM_INLINE uint32_t gm_softmax_power(const uint32_t *table, int32_t below, int32_t last)
{
    return table[below < last ? below : last];
}

/* table: last + 1 exponentials, table[d] for x = max - d. y may be x. */
GM_INLINE void gm_softmax_s8_core(const gm_softmax_s8_t *p, int8_t *y, const int8_t *x,
                                  const uint32_t *GM_RESTRICT table)
{
    for (int32_t r = 0; r < p->rows; r++) {
        int32_t highest = x[0];
        uint32_t sum = 0;
        for (int32_t i = 1; i < p->cols; i++) {
            highest = x[i] > highest ? x[i] : highest;
        }
        for (int32_t i = 0; i < p->cols; i++) {
            sum += gm_softmax_power(table, highest - x[i], p->last);
        }
        /* the sum has the largest exponential in it: the quotient is at most 2^15 */
        const uint32_t inverse = (UINT32_C(1) << 30) / (sum >> p->sum_shift);
        for (int32_t i = 0; i < p->cols; i++) {
            const uint32_t part =
                (gm_softmax_power(table, highest - x[i], p->last) >> p->sum_shift) * inverse;
            const int32_t fine = gm_mulh_round_s32((int32_t)part, p->multiplier);
            y[i] = (int8_t)gm_clamp_s32(((fine + 2048) >> 12) + p->zero_point, -128, 127);
        }
        x += p->cols;
        y += p->cols;
    }
}

void gm_softmax_s8(const gm_softmax_s8_t *p, int8_t *y, const int8_t *x,
                   const uint32_t *GM_RESTRICT table);

#ifdef __cplusplus
}
#endif

#endif
