/* SPDX-License-Identifier: Apache-2.0
 * An average over a window as tall as the image, int8, from one row after the other: sums are kept
 * until the last row has come. */
#ifndef GM_AVERAGE_POOL_S8_SCAN_H
#define GM_AVERAGE_POOL_S8_SCAN_H

#include "gm_average_pool_s8.h"

#ifdef __cplusplus
extern "C" {
#endif

/* row: row `iy` of x, the first one first; the last one completes y. multiplier as for
 * gm_average_pool_s8; sums: out_width * channels of 32 bits, kept between calls. y, row and sums
 * must not overlap. */
GM_INLINE void gm_average_pool_s8_scan_core(const gm_average_pool_s8_t *p, int8_t *GM_RESTRICT y,
                                            int32_t iy, const int8_t *GM_RESTRICT row,
                                            const int32_t *GM_RESTRICT multiplier,
                                            void *GM_RESTRICT sums)
{
    const int32_t n = p->channels;
    const int32_t rows_counted =
        gm_average_pool_counted(0, p->kernel_height, 1, 0, p->height + p->count_bottom);
    int32_t *acc = (int32_t *)sums;
    for (int32_t ox = 0; ox < p->out_width; ox++) {
        const int32_t first = ox * p->stride_width - p->pad_left;
        const int32_t from = gm_window_from(first, p->kernel_width, p->dilation_width, 0);
        const int32_t to = gm_window_to(first, p->kernel_width, p->dilation_width, p->width);
        const int32_t count =
            rows_counted * gm_average_pool_counted(first, p->kernel_width, p->dilation_width,
                                                   -p->count_left, p->width + p->count_right);
        const int32_t m = multiplier[p->multipliers == 1 ? 0 : count - 1];
        for (int32_t c = 0; c < n; c++) {
            int32_t sum = (iy == 0 ? 0 : acc[c]) - p->fill * (to - from);
            for (int32_t j = from; j < to; j++) {
                sum += row[(first + j * p->dilation_width) * n + c];
            }
            acc[c] = sum;
            if (iy == p->height - 1) {
                y[c] = gm_requant_average_s8(sum, m, p->shift, p->zero_point, p->low, p->high);
            }
        }
        acc += n;
        y += n;
    }
}

void gm_average_pool_s8_scan(const gm_average_pool_s8_t *p, int8_t *GM_RESTRICT y, int32_t iy,
                             const int8_t *GM_RESTRICT row, const int32_t *GM_RESTRICT multiplier,
                             void *GM_RESTRICT sums);

#ifdef __cplusplus
}
#endif

#endif
