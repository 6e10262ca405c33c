/* SPDX-License-Identifier: Apache-2.0
 * One row of a depthwise convolution, float, from rows that lie anywhere and have no padding of
 * their own. */
#ifndef GM_DEPTHWISE_F32_ROWS_H
#define GM_DEPTHWISE_F32_ROWS_H

#include "gm_depthwise_f32.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One pixel whose window reaches out of the image, where zeros are. The window starts at pixel
 * `first` of the rows. */
GM_OUTLINE void gm_depthwise_f32_edge(const gm_depthwise_f32_t *p, float *y,
                                      const void *const *rows, int32_t first, const float *w,
                                      const float *bias)
{
    const int32_t n = p->channels;
    for (int32_t c = 0; c < n; c++) {
        const float *v = w + c;
        float acc = bias[c];
        for (int32_t i = 0; i < p->kernel_height; i++) {
            const float *row = (const float *)rows[i];
            for (int32_t j = 0; j < p->kernel_width; j++) {
                const int32_t x = first + j * p->dilation_width;
                const int inside = row && x >= 0 && x < p->width;
                acc += (inside ? row[x * n + c] : 0.0f) * *v;
                v += n;
            }
        }
        y[c] = gm_clamp_f32(acc, p->low, p->high);
    }
}

/* rows: kernel_height rows of x, NULL for padding; w, bias as for gm_depthwise_f32.
 * y may lie over a row of x that is not needed afterwards, as far as each output pixel ends before
 * the first input pixel of the window of the pixel three before it. */
GM_INLINE void gm_depthwise_f32_rows_core(const gm_depthwise_f32_t *p, float *y, int32_t oy,
                                          const void *const *rows, const float *GM_RESTRICT w,
                                          const float *GM_RESTRICT bias)
{
    const int32_t n = p->channels;
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
            gm_depthwise_f32_edge(p, y, rows, first, w, bias);
        } else if (ox + 3 < p->out_width && first + 3 * p->stride_width + span <= p->width) {
            gm_depthwise_f32_pixels(p, 4, y, rows, first * n, w, bias);
            pixels = 4;
        } else {
            gm_depthwise_f32_pixels(p, 1, y, rows, first * n, w, bias);
        }
        ox += pixels;
        y += pixels * n;
    }
}

void gm_depthwise_f32_rows(const gm_depthwise_f32_t *p, float *y, int32_t oy,
                           const void *const *rows, const float *GM_RESTRICT w,
                           const float *GM_RESTRICT bias);

#ifdef __cplusplus
}
#endif

#endif
