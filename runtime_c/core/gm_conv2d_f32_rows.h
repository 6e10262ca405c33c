/* SPDX-License-Identifier: Apache-2.0
 * One row of a convolution, float, from rows that lie anywhere and have no padding of their own. */
#ifndef GM_CONV2D_F32_ROWS_H
#define GM_CONV2D_F32_ROWS_H

#include "gm_conv2d_f32.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All channels of one pixel whose window reaches out of the image, where zeros are. The window
 * starts at pixel `first` of the rows. */
GM_OUTLINE void gm_conv2d_f32_edge(const gm_conv2d_f32_t *p, float *y, const void *const *rows,
                                   int32_t first, const float *w, const float *bias)
{
    const int32_t pitch = p->groups * p->channels;
    for (int32_t g = 0; g < p->groups; g++) {
        for (int32_t n = 0; n < p->out_channels; n += 4) {
            const int32_t last = p->out_channels - n;
            float acc[4] = {bias[0], bias[1], bias[2], bias[3]};
            for (int32_t i = 0; i < p->kernel_height; i++) {
                const float *row = (const float *)rows[i];
                for (int32_t j = 0; j < p->kernel_width; j++) {
                    const int32_t x = first + j * p->dilation_width;
                    const int inside = row && x >= 0 && x < p->width;
                    for (int32_t k = 0; k < p->channels; k++) {
                        const float v = inside ? row[x * pitch + g * p->channels + k] : 0.0f;
                        acc[0] += v * w[0];
                        acc[1] += v * w[1];
                        acc[2] += v * w[2];
                        acc[3] += v * w[3];
                        w += 4;
                    }
                }
            }
            gm_conv2d_f32_store(p, y, last, acc);
            y += last < 4 ? last : 4;
            bias += 4;
        }
    }
}

/* rows: kernel_height rows of x, NULL for padding; w, bias as for gm_conv2d_f32.
 * y may lie over a row of x that is not needed afterwards, as far as each output pixel ends before
 * the first input pixel of the window of the pixel before it. */
GM_INLINE void gm_conv2d_f32_rows_core(const gm_conv2d_f32_t *p, float *y, int32_t oy,
                                       const void *const *rows, const float *GM_RESTRICT w,
                                       const float *GM_RESTRICT bias)
{
    const int32_t in = p->groups * p->channels;
    const int32_t out = p->groups * p->out_channels;
    const int32_t span = (p->kernel_width - 1) * p->dilation_width + 1;
    int complete = 1;
    (void)oy;
    for (int32_t i = 0; i < p->kernel_height; i++) {
        complete = complete && rows[i] != NULL;
    }
    for (int32_t ox = 0; ox < p->out_width;) {
        const int32_t first = ox * p->stride_width - p->pad_left;
        int32_t pixels = 1;
        if (!complete || first < 0 || first + span > p->width) {
            gm_conv2d_f32_edge(p, y, rows, first, w, bias);
        } else if (ox + 1 < p->out_width && first + p->stride_width + span <= p->width) {
            gm_conv2d_f32_pixels(p, 2, y, rows, first * in, w, bias);
            pixels = 2;
        } else {
            gm_conv2d_f32_pixels(p, 1, y, rows, first * in, w, bias);
        }
        ox += pixels;
        y += pixels * out;
    }
}

void gm_conv2d_f32_rows(const gm_conv2d_f32_t *p, float *y, int32_t oy, const void *const *rows,
                        const float *GM_RESTRICT w, const float *GM_RESTRICT bias);

#ifdef __cplusplus
}
#endif

#endif
