/* SPDX-License-Identifier: Apache-2.0
 * Fully connected layer, float: y[r][n] = clamp(bias[n] + sum_k x[r][k] * w[n][k]). */
#ifndef GM_DENSE_F32_H
#define GM_DENSE_F32_H

#include "gm_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int32_t rows;  /* 1 or more */
    int32_t inner; /* K, 0 or more */
    int32_t cols;  /* N, 1 or more */
    float low;     /* clamp of y; infinities where there is none */
    float high;
} gm_dense_f32_t;

/* w: [N][K]; bias: [N] or NULL. y must not overlap x. */
GM_INLINE void gm_dense_f32_core(const gm_dense_f32_t *p, float *GM_RESTRICT y,
                                 const float *GM_RESTRICT x, const float *GM_RESTRICT w,
                                 const float *GM_RESTRICT bias)
{
    for (int32_t r = 0; r < p->rows; r++) {
        for (int32_t n = 0; n < p->cols; n += 4) {
            const int32_t last = p->cols - n < 4 ? p->cols - n : 4;
            /* a row past the end is row n again: its sum is dropped */
            const float *w0 = w + n * p->inner;
            const float *w1 = w0 + (last > 1 ? p->inner : 0);
            const float *w2 = w0 + (last > 2 ? 2 * p->inner : 0);
            const float *w3 = w0 + (last > 3 ? 3 * p->inner : 0);
            float acc[4] = {0.0f, 0.0f, 0.0f, 0.0f};
            for (int32_t k = 0; k < p->inner; k++) {
                const float xv = x[k];
                acc[0] += xv * w0[k];
                acc[1] += xv * w1[k];
                acc[2] += xv * w2[k];
                acc[3] += xv * w3[k];
            }
            for (int32_t i = 0; i < last; i++) {
                float value = acc[i] + (bias ? bias[n + i] : 0.0f);
                value = value < p->low ? p->low : value;
                y[n + i] = value > p->high ? p->high : value;
            }
        }
        x += p->inner;
        y += p->cols;
    }
}

void gm_dense_f32(const gm_dense_f32_t *p, float *GM_RESTRICT y, const float *GM_RESTRICT x,
                  const float *GM_RESTRICT w, const float *GM_RESTRICT bias);

#ifdef __cplusplus
}
#endif

#endif
