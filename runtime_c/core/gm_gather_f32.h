/* SPDX-License-Identifier: Apache-2.0
 * The windows of a float convolution, gathered by kernels that multiply several at once. */
#ifndef GM_GATHER_F32_H
#define GM_GATHER_F32_H

#include "gm_conv2d_f32.h"

/* Append `count` pixels of a row from pixel `first` on, zeros where they lie outside. */
GM_INLINE float *gm_gather_f32_part(const gm_conv2d_f32_t *p, float *to, const float *row,
                                    int32_t first, int32_t count)
{
    for (int32_t j = 0; j < count; j++) {
        const int32_t x = first + j;
        const size_t bytes = (size_t)p->channels * sizeof(float);
        if (row != NULL && x >= 0 && x < p->width) {
            memcpy(to, row + x * p->channels, bytes);
        } else {
            memset(to, 0, bytes);
        }
        to += p->channels;
    }
    return to;
}

/* The values of one window, which starts at pixel `first` of the rows; NULL is a row of zeros. */
GM_INLINE void gm_gather_f32(const gm_conv2d_f32_t *p, float *to, const void *const *rows,
                             int32_t first)
{
    const int32_t span = p->kernel_width;
    for (int32_t i = 0; i < p->kernel_height; i++) {
        const float *const row = (const float *)rows[i];
        if (row != NULL && p->dilation_width == 1 && first >= 0 && first + span <= p->width) {
            memcpy(to, row + first * p->channels, (size_t)(span * p->channels) * sizeof(float));
            to += span * p->channels;
        } else if (p->dilation_width == 1) {
            to = gm_gather_f32_part(p, to, row, first, span);
        } else {
            for (int32_t j = 0; j < span; j++) {
                to = gm_gather_f32_part(p, to, row, first + j * p->dilation_width, 1);
            }
        }
    }
}

#endif
