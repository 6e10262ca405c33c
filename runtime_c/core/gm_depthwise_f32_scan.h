/* SPDX-License-Identifier: Apache-2.0
 * A depthwise convolution whose window is as tall as the image, float, from one row after the
 * other: sums are kept until the last row has come. */
#ifndef GM_DEPTHWISE_F32_SCAN_H
#define GM_DEPTHWISE_F32_SCAN_H

#include "gm_depthwise_f32.h"

#ifdef __cplusplus
extern "C" {
#endif

/* row: row `iy` of x, the first one first; the last one completes y. w, bias as for
 * gm_depthwise_f32; sums: out_width * channels floats, kept between calls. y, row and sums must not
 * overlap. */
GM_INLINE void gm_depthwise_f32_scan_core(const gm_depthwise_f32_t *p, float *GM_RESTRICT y,
                                          int32_t iy, const float *GM_RESTRICT row,
                                          const float *GM_RESTRICT w, const float *GM_RESTRICT bias,
                                          void *GM_RESTRICT sums)
{
    const int32_t n = p->channels;
    const float *line = w + iy * p->kernel_width * n;
    float *acc = (float *)sums;
    for (int32_t ox = 0; ox < p->out_width; ox++) {
        const int32_t first = ox * p->stride_width - p->pad_left;
        for (int32_t c = 0; c < n; c++) {
            float sum = iy == 0 ? bias[c] : acc[c];
            for (int32_t j = 0; j < p->kernel_width; j++) {
                const int32_t x = first + j * p->dilation_width;
                sum += (x >= 0 && x < p->width ? row[x * n + c] : 0.0f) * line[j * n + c];
            }
            acc[c] = sum;
            if (iy == p->height - 1) {
                y[c] = gm_clamp_f32(sum, p->low, p->high);
            }
        }
        acc += n;
        y += n;
    }
}

void gm_depthwise_f32_scan(const gm_depthwise_f32_t *p, float *GM_RESTRICT y, int32_t iy,
                           const float *GM_RESTRICT row, const float *GM_RESTRICT w,
                           const float *GM_RESTRICT bias, void *GM_RESTRICT sums);

#ifdef __cplusplus
}
#endif

#endif
