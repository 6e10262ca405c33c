/* SPDX-License-Identifier: Apache-2.0
 * Logarithm of the softmax of rows: y = x - max - log(sum(exp(x - max))). */
#ifndef GM_LOG_SOFTMAX_F32_H
#define GM_LOG_SOFTMAX_F32_H

#include "gm_types.h"
#include <math.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int32_t rows; /* 0 or more */
    int32_t cols; /* 1 or more */
} gm_log_softmax_f32_t;

/* y may be x. */
GM_INLINE void gm_log_softmax_f32_core(const gm_log_softmax_f32_t *p, float *y, const float *x)
{
    for (int32_t r = 0; r < p->rows; r++) {
        float highest = x[0];
        float sum = 0.0f;
        for (int32_t i = 1; i < p->cols; i++) {
            highest = x[i] > highest ? x[i] : highest;
        }
        for (int32_t i = 0; i < p->cols; i++) {
            sum += expf(x[i] - highest);
        }
        const float offset = highest + logf(sum);
        for (int32_t i = 0; i < p->cols; i++) {
            y[i] = x[i] - offset;
        }
        x += p->cols;
        y += p->cols;
    }
}

void gm_log_softmax_f32(const gm_log_softmax_f32_t *p, float *y, const float *x);

#ifdef __cplusplus
}
#endif

#endif
