/* SPDX-License-Identifier: Apache-2.0
 * One axis resampled, float: y[a][o][c] = bias[o] + sum_t x[a][index[o][t]][c] * weight[o][t]. */
#ifndef GM_INTERPOLATE_F32_H
#define GM_INTERPOLATE_F32_H

#include "gm_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int32_t outer; /* product of the dimensions before the axis */
    int32_t size;  /* of the axis in x */
    int32_t inner; /* product of the dimensions after the axis */
    int32_t out;   /* of the axis in y */
    int32_t taps;  /* 1 or more */
} gm_interpolate_f32_t;

/* index: [out][taps], in [0, size); weight: [out][taps]; bias: [out] or NULL. y must not overlap x.
 */
GM_INLINE void gm_interpolate_f32_core(const gm_interpolate_f32_t *p, float *GM_RESTRICT y,
                                       const float *GM_RESTRICT x, const int32_t *GM_RESTRICT index,
                                       const float *GM_RESTRICT weight,
                                       const float *GM_RESTRICT bias)
{
    for (int32_t a = 0; a < p->outer; a++) {
        for (int32_t o = 0; o < p->out; o++) {
            const int32_t *places = index + o * p->taps;
            const float *weights = weight + o * p->taps;
            for (int32_t c = 0; c < p->inner; c++) {
                float sum = 0.0f;
                for (int32_t t = 0; t < p->taps; t++) {
                    sum += x[places[t] * p->inner + c] * weights[t];
                }
                y[c] = bias ? sum + bias[o] : sum;
            }
            y += p->inner;
        }
        x += p->size * p->inner;
    }
}

void gm_interpolate_f32(const gm_interpolate_f32_t *p, float *GM_RESTRICT y,
                        const float *GM_RESTRICT x, const int32_t *GM_RESTRICT index,
                        const float *GM_RESTRICT weight, const float *GM_RESTRICT bias);

#ifdef __cplusplus
}
#endif

#endif
