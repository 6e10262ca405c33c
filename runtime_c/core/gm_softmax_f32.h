/* SPDX-License-Identifier: Apache-2.0
 * Softmax of rows: y = exp(x - max) / sum(exp(x - max)). */
#ifndef GM_SOFTMAX_F32_H
#define GM_SOFTMAX_F32_H

#include "gm_types.h"
#include <math.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int32_t rows; /* 0 or more */
    int32_t cols; /* 1 or more */
} gm_softmax_f32_t;

/* y may be x. */
GM_INLINE void gm_softmax_f32_core(const gm_softmax_f32_t *p, float *y, const float *x)
{
    for (int32_t r = 0; r < p->rows; r++) {
        float highest = x[0];
        float sum = 0.0f;
        for (int32_t i = 1; i < p->cols; i++) {
            highest = x[i] > highest ? x[i] : highest;
        }
        for (int32_t i = 0; i < p->cols; i++) {
            y[i] = expf(x[i] - highest);
            sum += y[i];
        }
        const float inverse = 1.0f / sum;
        for (int32_t i = 0; i < p->cols; i++) {
            y[i] *= inverse;
        }
        x += p->cols;
        y += p->cols;
    }
}

void gm_softmax_f32(const gm_softmax_f32_t *p, float *y, const float *x);

#ifdef __cplusplus
}
#endif

#endif
