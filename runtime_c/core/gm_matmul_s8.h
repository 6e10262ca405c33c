/* SPDX-License-Identifier: Apache-2.0
 * Matrix product of two tensors, int8: y = requantize(sum (a - a_zero) * (b - b_zero)) over two
 * loops of matrices. */
#ifndef GM_MATMUL_S8_H
#define GM_MATMUL_S8_H

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
    int32_t shift;      /* left shift of the accumulator, 0..15 */
    int32_t zero_point; /* of y */
    int32_t low;        /* clamp of y, -128 <= low <= high <= 127 */
    int32_t high;
} gm_matmul_s8_t;

GM_INLINE int8_t gm_matmul_s8_requant(const gm_matmul_s8_t *p, int32_t acc)
{
    return gm_requant_s8(acc, p->multiplier, p->shift, p->zero_point, p->low, p->high);
}

/* `height` (1 or 2, a constant at every call) rows of y: each value of b read serves them all. */
GM_INLINE void gm_matmul_s8_rows(const gm_matmul_s8_t *p, int32_t height, int8_t *GM_RESTRICT y,
                                 const int8_t *GM_RESTRICT a, const int8_t *GM_RESTRICT b)
{
    const int32_t next = height == 2 ? p->inner : 0;
    int32_t n = 0;
    for (; n <= p->cols - 2; n += 2) {
        int32_t s[4] = {0, 0, 0, 0};
        const int8_t *column = b + n;
        for (int32_t k = 0; k < p->inner; k++) {
            const int32_t b0 = column[0] - p->b_zero;
            const int32_t b1 = column[1] - p->b_zero;
            const int32_t a0 = a[k] - p->a_zero;
            const int32_t a1 = a[next + k] - p->a_zero;
            s[0] += a0 * b0;
            s[1] += a0 * b1;
            s[2] += a1 * b0;
            s[3] += a1 * b1;
            column += p->cols;
        }
        y[n] = gm_matmul_s8_requant(p, s[0]);
        y[n + 1] = gm_matmul_s8_requant(p, s[1]);
        if (height == 2) {
            y[p->cols + n] = gm_matmul_s8_requant(p, s[2]);
            y[p->cols + n + 1] = gm_matmul_s8_requant(p, s[3]);
        }
    }
    if (n < p->cols) {
        int32_t s[2] = {0, 0};
        const int8_t *column = b + n;
        for (int32_t k = 0; k < p->inner; k++) {
            const int32_t b0 = *column - p->b_zero;
            s[0] += (a[k] - p->a_zero) * b0;
            s[1] += (a[next + k] - p->a_zero) * b0;
            column += p->cols;
        }
        y[n] = gm_matmul_s8_requant(p, s[0]);
        if (height == 2) {
            y[p->cols + n] = gm_matmul_s8_requant(p, s[1]);
        }
    }
}

/* y must not overlap a or b. */
GM_INLINE void gm_matmul_s8_core(const gm_matmul_s8_t *p, int8_t *GM_RESTRICT y,
                                 const int8_t *GM_RESTRICT a, const int8_t *GM_RESTRICT b)
{
    for (int32_t o = 0; o < p->outer; o++) {
        for (int32_t m = 0; m < p->middle; m++) {
            const int8_t *left = a + o * p->a_outer + m * p->a_middle;
            const int8_t *right = b + o * p->b_outer + m * p->b_middle;
            int32_t r = 0;
            for (; r <= p->rows - 2; r += 2) {
                gm_matmul_s8_rows(p, 2, y, left, right);
                left += 2 * p->inner;
                y += 2 * p->cols;
            }
            if (r < p->rows) {
                gm_matmul_s8_rows(p, 1, y, left, right);
                y += p->cols;
            }
        }
    }
}

void gm_matmul_s8(const gm_matmul_s8_t *p, int8_t *GM_RESTRICT y, const int8_t *GM_RESTRICT a,
                  const int8_t *GM_RESTRICT b);

#ifdef __cplusplus
}
#endif

#endif
