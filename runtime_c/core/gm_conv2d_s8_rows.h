/* SPDX-License-Identifier: Apache-2.0
 * One row of a convolution, int8, from rows that lie anywhere and have no padding of their own. */
#ifndef GM_CONV2D_S8_ROWS_H
#define GM_CONV2D_S8_ROWS_H

#include "gm_conv2d_s8.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What `count` values of padding add: returns the weights that follow. */
GM_INLINE const int8_t *gm_conv2d_s8_padding(int32_t acc[4], int32_t count, int32_t fill,
                                             const int8_t *w)
{
    int32_t a = 0;
    int32_t b = 0;
    int32_t c = 0;
    int32_t d = 0;
    for (int32_t k = 0; k < count; k++) {
        a += w[0];
        b += w[1];
        c += w[2];
        d += w[3];
        w += 4;
    }
    acc[0] += a * fill;
    acc[1] += b * fill;
    acc[2] += c * fill;
    acc[3] += d * fill;
    return w;
}

/* All channels of one pixel whose window reaches out of the image. The window starts at pixel
 * `first` of the rows. */
GM_OUTLINE void gm_conv2d_s8_edge(const gm_conv2d_s8_t *p, int8_t *y, const void *const *rows,
                                  int32_t first, const int8_t *w, const int32_t *bias,
                                  const int32_t *multiplier)
{
    const int32_t pitch = p->groups * p->channels;
    const int32_t channels = p->channels;
    for (int32_t g = 0; g < p->groups; g++) {
        for (int32_t n = 0; n < p->out_channels; n += 4) {
            const int32_t last = p->out_channels - n;
            int32_t acc[4] = {bias[0], bias[1], bias[2], bias[3]};
            for (int32_t i = 0; i < p->kernel_height; i++) {
                const int8_t *row = (const int8_t *)rows[i];
                if (!row) {
                    w = gm_conv2d_s8_padding(acc, p->kernel_width * channels, p->fill, w);
                    continue;
                }
                int32_t x = first;
                for (int32_t j = 0; j < p->kernel_width; j++) {
                    if (x < 0 || x >= p->width) {
                        w = gm_conv2d_s8_padding(acc, channels, p->fill, w);
                    } else {
                        const int8_t *u = row + x * pitch + g * channels;
                        for (int32_t k = 0; k < channels; k++) {
                            const int32_t v = u[k];
                            acc[0] += v * w[0];
                            acc[1] += v * w[1];
                            acc[2] += v * w[2];
                            acc[3] += v * w[3];
                            w += 4;
                        }
                    }
                    x += p->dilation_width;
                }
            }
            gm_conv2d_store(p, 1, y, last, acc, multiplier);
            y += last < 4 ? last : 4;
            bias += 4;
            multiplier += 4;
        }
    }
}

/* rows: kernel_height rows of x, NULL for padding; w, bias, multiplier as for gm_conv2d_s8.
 * y may lie over a row of x that is not needed afterwards, as far as each output pixel ends before
 * the first input pixel of the window of the pixel before it. */
GM_INLINE void gm_conv2d_s8_rows_core(const gm_conv2d_s8_t *p, int8_t *y, int32_t oy,
                                      const void *const *rows, const int8_t *GM_RESTRICT w,
                                      const int32_t *GM_RESTRICT bias,
                                      const int32_t *GM_RESTRICT multiplier)
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
        if (!complete || first < 0 || first + span > p->width) {
            gm_conv2d_s8_edge(p, y, rows, first, w, bias, multiplier);
            ox += 1;
            y += out;
        } else if (ox + 1 < p->out_width && first + p->stride_width + span <= p->width) {
            gm_conv2d_pixels(p, 1, 2, y, rows, first * in, w, bias, multiplier);
            ox += 2;
            y += 2 * out;
        } else {
            gm_conv2d_pixels(p, 1, 1, y, rows, first * in, w, bias, multiplier);
            ox += 1;
            y += out;
        }
    }
}

void gm_conv2d_s8_rows(const gm_conv2d_s8_t *p, int8_t *y, int32_t oy, const void *const *rows,
                       const int8_t *GM_RESTRICT w, const int32_t *GM_RESTRICT bias,
                       const int32_t *GM_RESTRICT multiplier);

#ifdef __cplusplus
}
#endif

#endif
