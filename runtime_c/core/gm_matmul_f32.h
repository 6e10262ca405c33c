/* SPDX-License-Identifier: Apache-2.0
 * Matrix product of two tensors, float: y = a . b over two loops of matrices. */
#ifndef GM_MATMUL_F32_H
#define GM_MATMUL_F32_H

#include "gm_types.h"

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
} gm_matmul_f32_t;

/* `height` (1 or 2, a constant at every call) rows of y: each value of b read serves them all. */
GM_INLINE void gm_matmul_f32_rows(const gm_matmul_f32_t *p, int32_t height, float *GM_RESTRICT y,
                                  const float *GM_RESTRICT a, const float *GM_RESTRICT b)
{
    const int32_t next = height == 2 ? p->inner : 0;
    int32_t n = 0;
    for (; n <= p->cols - 2; n += 2) {
        float s[4] = {0, 0, 0, 0};
        const float *column = b + n;
        for (int32_t k = 0; k < p->inner; k++) {
            const float b0 = column[0];
            const float b1 = column[1];
            const float a0 = a[k];
            const float a1 = a[next + k];
            s[0] += a0 * b0;
            s[1] += a0 * b1;
            s[2] += a1 * b0;
            s[3] += a1 * b1;
            column += p->cols;
        }
        y[n] = s[0];
        y[n + 1] = s[1];
        if (height == 2) {
            y[p->cols + n] = s[2];
            y[p->cols + n + 1] = s[3];
        }
    }
    if (n < p->cols) {
        float s[2] = {0, 0};
        const float *column = b + n;
        for (int32_t k = 0; k < p->inner; k++) {
            const float b0 = *column;
            s[0] += a[k] * b0;
            s[1] += a[next + k] * b0;
            column += p->cols;
        }
        y[n] = s[0];
        if (height == 2) {
            y[p->cols + n] = s[1];
        }
    }
}

/* y must not overlap a or b. */
GM_INLINE void gm_matmul_f32_core(const gm_matmul_f32_t *p, float *GM_RESTRICT y,
                                  const float *GM_RESTRICT a, const float *GM_RESTRICT b)
{
    for (int32_t o = 0; o < p->outer; o++) {
        for (int32_t m = 0; m < p->middle; m++) {
            const float *left = a + o * p->a_outer + m * p->a_middle;
            const float *right = b + o * p->b_outer + m * p->b_middle;
            int32_t r = 0;
            for (; r <= p->rows - 2; r += 2) {
                gm_matmul_f32_rows(p, 2, y, left, right);
                left += 2 * p->inner;
                y += 2 * p->cols;
            }
            if (r < p->rows) {
                gm_matmul_f32_rows(p, 1, y, left, right);
                y += p->cols;
            }
        }
    }
}

void gm_matmul_f32(const gm_matmul_f32_t *p, float *GM_RESTRICT y, const float *GM_RESTRICT a,
                   const float *GM_RESTRICT b);

#ifdef __cplusplus
}
#endif

#endif
