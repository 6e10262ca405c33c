/* SPDX-License-Identifier: Apache-2.0
 * Bilinear resizing of NHWC, float. */
#ifndef GM_RESIZE_LINEAR_F32_H
#define GM_RESIZE_LINEAR_F32_H

#include "gm_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int32_t batch;
    int32_t height; /* of x */
    int32_t width;
    int32_t channels;
    int32_t out_height; /* of y */
    int32_t out_width;
} gm_resize_linear_f32_t;

/* Row i of y lies between rows[i] and the row after it, row_weights[i] (in [0, 1)) of the way; the
 * row after is not read where the weight is 0. Columns likewise. y must not overlap x. */
GM_INLINE void gm_resize_linear_f32_core(const gm_resize_linear_f32_t *p, float *GM_RESTRICT y,
                                         const float *GM_RESTRICT x,
                                         const int32_t *GM_RESTRICT rows,
                                         const float *GM_RESTRICT row_weights,
                                         const int32_t *GM_RESTRICT cols,
                                         const float *GM_RESTRICT col_weights)
{
    const int32_t pitch = p->width * p->channels;
    for (int32_t n = 0; n < p->batch; n++) {
        for (int32_t i = 0; i < p->out_height; i++) {
            const float down = row_weights[i];
            const float *top = x + rows[i] * pitch;
            const float *bottom = down > 0.0f ? top + pitch : top;
            for (int32_t j = 0; j < p->out_width; j++) {
                const float right = col_weights[j];
                const int32_t here = cols[j] * p->channels;
                const int32_t next = right > 0.0f ? here + p->channels : here;
                for (int32_t c = 0; c < p->channels; c++) {
                    const float t = top[here + c];
                    const float b = bottom[here + c];
                    const float upper = t + (top[next + c] - t) * right;
                    const float lower = b + (bottom[next + c] - b) * right;
                    y[c] = upper + (lower - upper) * down;
                }
                y += p->channels;
            }
        }
        x += p->height * pitch;
    }
}

void gm_resize_linear_f32(const gm_resize_linear_f32_t *p, float *GM_RESTRICT y,
                          const float *GM_RESTRICT x, const int32_t *GM_RESTRICT rows,
                          const float *GM_RESTRICT row_weights, const int32_t *GM_RESTRICT cols,
                          const float *GM_RESTRICT col_weights);

#ifdef __cplusplus
}
#endif

#endif
