/* SPDX-License-Identifier: Apache-2.0
 * Matrix product of two tensors, int16, with sums of 64 bits: y = requantize(sum (a - a_zero) *
 * (b - b_zero)) over two loops of matrices. */
#ifndef GM_MATMUL_S16_H
#define GM_MATMUL_S16_H

#include "gm_requant.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int32_t outer; /* y is [outer][middle][rows][cols] */
    int32_t middle;
    int32_t rows;
    int32_t inner;
    int32_t cols;
    int32_t a_outer; /* elements from one matrix to the next; 0 where it is used again */
    int32_t a_middle;
    int32_t b_outer;
    int32_t b_middle;
    int32_t a_zero; /* zero point of a */
    int32_t b_zero;
    int32_t multiplier;
    int32_t shift;      /* of the accumulator to 32 bits, left, or right where negative */
    int32_t zero_point; /* of y */
    int32_t low;        /* clamp of y, -32768 <= low <= high <= 32767 */
    int32_t high;
} gm_matmul_s16_t;

GM_INLINE int16_t gm_matmul_s16_requant(const gm_matmul_s16_t *p, int64_t acc)
{
    return (int16_t)gm_requant_wide(acc, p->multiplier, p->shift, p->zero_point, p->low, p->high);
}

/* One row of y, two columns at a time. */
GM_INLINE void gm_matmul_s16_row(const gm_matmul_s16_t *p, int16_t *GM_RESTRICT y,
                                 const int16_t *GM_RESTRICT a, const int16_t *GM_RESTRICT b)
{
    for (int32_t n = 0; n < p->cols; n += 2) {
        const int32_t next = n + 1 < p->cols ? 1 : 0;
        const int16_t *column = b + n;
        int64_t s0 = 0;
        int64_t s1 = 0;
        for (int32_t k = 0; k < p->inner; k++) {
            const int32_t left = a[k] - p->a_zero;
            s0 += (int64_t)left * (column[0] - p->b_zero);
            s1 += (int64_t)left * (column[next] - p->b_zero);
            column += p->cols;
        }
        y[n] = gm_matmul_s16_requant(p, s0);
        if (next) {
            y[n + 1] = gm_matmul_s16_requant(p, s1);
        }
    }
}

/* y must not overlap a or b. */
GM_INLINE void gm_matmul_s16_core(const gm_matmul_s16_t *p, int16_t *GM_RESTRICT y,
                                  const int16_t *GM_RESTRICT a, const int16_t *GM_RESTRICT b)
{
    for (int32_t o = 0; o < p->outer; o++) {
        for (int32_t m = 0; m < p->middle; m++) {
            const int16_t *left = a + o * p->a_outer + m * p->a_middle;
            const int16_t *right = b + o * p->b_outer + m * p->b_middle;
            for (int32_t r = 0; r < p->rows; r++) {
                gm_matmul_s16_row(p, y, left, right);
                left += p->inner;
                y += p->cols;
            }
        }
    }
}

void gm_matmul_s16(const gm_matmul_s16_t *p, int16_t *GM_RESTRICT y, const int16_t *GM_RESTRICT a,
                   const int16_t *GM_RESTRICT b);

#ifdef __cplusplus
}
#endif

#endif
