/* SPDX-License-Identifier: Apache-2.0
 * Maximum over windows, float, NHWC, and where it lies: the element's place in the image as
 * [batch][channels][height][width], or with the last two exchanged; the first one of equals.
 * NaN is larger than any number. */
#ifndef GM_MAX_POOL_INDICES_F32_H
#define GM_MAX_POOL_INDICES_F32_H

#include "gm_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int32_t batch;
    int32_t height; /* of x */
    int32_t width;
    int32_t out_height;
    int32_t out_width;
    int32_t kernel_height;
    int32_t kernel_width;
    int32_t stride_height;
    int32_t stride_width;
    int32_t dilation_height;
    int32_t dilation_width;
    int32_t pad_top;
    int32_t pad_left;
    int32_t channels;
    int32_t column_major; /* 1: places count down columns first */
} gm_max_pool_indices_f32_t;

/* Returns the place of the maximum of one window in x, counted in pixels; every window has a tap in
 * the image. x: the first pixel's channel; iy, ix: the first tap. */
GM_INLINE int32_t gm_max_pool_indices_f32_find(const gm_max_pool_indices_f32_t *p,
                                               const float *GM_RESTRICT x, int32_t iy, int32_t ix)
{
    int32_t best = -1;
    for (int32_t i = 0; i < p->kernel_height; i++) {
        const int32_t row = iy + i * p->dilation_height;
        for (int32_t j = 0; j < p->kernel_width; j++) {
            const int32_t col = ix + j * p->dilation_width;
            if (row >= 0 && row < p->height && col >= 0 && col < p->width) {
                const int32_t at = row * p->width + col;
                const float top = x[(best < 0 ? at : best) * p->channels];
                const int larger = top == top && !(x[at * p->channels] <= top);
                best = best < 0 || larger ? at : best;
            }
        }
    }
    return best;
}

/* y and indices must not overlap x. */
GM_INLINE void gm_max_pool_indices_f32_core(const gm_max_pool_indices_f32_t *p,
                                            float *GM_RESTRICT y, int64_t *GM_RESTRICT indices,
                                            const float *GM_RESTRICT x)
{
    const int32_t plane = p->height * p->width;
    for (int32_t n = 0; n < p->batch; n++) {
        for (int32_t oy = 0; oy < p->out_height; oy++) {
            const int32_t iy = oy * p->stride_height - p->pad_top;
            for (int32_t ox = 0; ox < p->out_width; ox++) {
                const int32_t ix = ox * p->stride_width - p->pad_left;
                for (int32_t c = 0; c < p->channels; c++) {
                    const int32_t at = gm_max_pool_indices_f32_find(p, x + c, iy, ix);
                    const int32_t row = at / p->width;
                    const int32_t col = at - row * p->width;
                    const int32_t place = p->column_major ? col * p->height + row : at;
                    *y++ = x[at * p->channels + c];
                    *indices++ = (int64_t)((n * p->channels + c) * plane + place);
                }
            }
        }
        x += plane * p->channels;
    }
}

void gm_max_pool_indices_f32(const gm_max_pool_indices_f32_t *p, float *GM_RESTRICT y,
                             int64_t *GM_RESTRICT indices, const float *GM_RESTRICT x);

#ifdef __cplusplus
}
#endif

#endif
