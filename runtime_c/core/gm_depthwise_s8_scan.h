/* SPDX-License-Identifier: Apache-2.0
 * A depthwise convolution whose window is as tall as the image, int8, from one row after the other:
 * sums are kept until the last row has come. */
#ifndef GM_DEPTHWISE_S8_SCAN_H
#define GM_DEPTHWISE_S8_SCAN_H

#include "gm_depthwise_s8.h"

#ifdef __cplusplus
extern "C" {
#endif

/* row: row `iy` of x, the first one first; the last one completes y.
 * w, bias, multiplier as for gm_depthwise_s8; sums: out_width * channels of 32 bits, kept between
 * calls. y, row and sums must not overlap. */
GM_INLINE void gm_depthwise_s8_scan_core(const gm_depthwise_s8_t *p, int8_t *GM_RESTRICT y,
                                         int32_t iy, const int8_t *GM_RESTRICT row,
                                         const int8_t *GM_RESTRICT w,
                                         const int32_t *GM_RESTRICT bias,
                                         const int32_t *GM_RESTRICT multiplier,
                                         void *GM_RESTRICT sums)
{
    const int32_t n = p->channels;
    const int8_t *line = w + iy * p->kernel_width * n;
    int32_t *acc = (int32_t *)sums;
    for (int32_t ox = 0; ox < p->out_width; ox++) {
        for (int32_t c = 0; c < n; c++) {
            int32_t sum = iy == 0 ? bias[c] : acc[c];
            for (int32_t j = 0; j < p->kernel_width; j++) {
                const int32_t x = ox * p->stride_width - p->pad_left + j * p->dilation_width;
                const int inside = x >= 0 && x < p->width;
                sum += (inside ? row[x * n + c] : p->fill) * line[j * n + c];
            }
            acc[c] = sum;
            if (iy == p->height - 1) {
                y[c] = gm_requant_s8(sum, multiplier[c], p->shift, p->zero_point, p->low, p->high);
            }
        }
        acc += n;
        y += n;
    }
}

void gm_depthwise_s8_scan(const gm_depthwise_s8_t *p, int8_t *GM_RESTRICT y, int32_t iy,
                          const int8_t *GM_RESTRICT row, const int8_t *GM_RESTRICT w,
                          const int32_t *GM_RESTRICT bias, const int32_t *GM_RESTRICT multiplier,
                          void *GM_RESTRICT sums);

#ifdef __cplusplus
}
#endif

#endif
