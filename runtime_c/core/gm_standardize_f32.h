/* SPDX-License-Identifier: Apache-2.0
 * Rows with mean 0 and variance 1: y = (x - mean) / sqrt(variance + epsilon). */
#ifndef GM_STANDARDIZE_F32_H
#define GM_STANDARDIZE_F32_H

#include "gm_types.h"
#include <math.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int32_t rows;   /* 0 or more */
    int32_t cols;   /* 1 or more */
    float epsilon;  /* added to the variance */
    int32_t centre; /* 1: the mean is subtracted; 0: it is taken as 0 */
} gm_standardize_f32_t;

/* y may be x. */
GM_INLINE void gm_standardize_f32_core(const gm_standardize_f32_t *p, float *y, const float *x)
{
    const int32_t cols = p->cols;
    const float count = (float)cols;
    for (int32_t r = 0; r < p->rows; r++) {
        float mean = 0.0f;
        float sum = 0.0f;
        if (p->centre) {
            for (int32_t i = 0; i < cols; i++) {
                sum += x[i];
            }
            mean = sum / count;
            sum = 0.0f;
        }
        for (int32_t i = 0; i < cols; i++) {
            const float centred = x[i] - mean;
            sum += centred * centred;
        }
        const float factor = 1.0f / sqrtf(sum / count + p->epsilon);
        for (int32_t i = 0; i < cols; i++) {
            y[i] = (x[i] - mean) * factor;
        }
        x += cols;
        y += cols;
    }
}

void gm_standardize_f32(const gm_standardize_f32_t *p, float *y, const float *x);

#ifdef __cplusplus
}
#endif

#endif
