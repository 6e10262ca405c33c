/* SPDX-License-Identifier: Apache-2.0
 * Transposed convolution, int8, NHWC, as a gather: y = requantize(bias + sum (x - fill) * w) over
 * the taps for which output + pad - tap * dilation is a multiple of the stride.
 * Its functions serve int16 as well: `size` is the bytes of an element of x and y. */
#ifndef GM_CONV_TRANSPOSE2D_S8_H
#define GM_CONV_TRANSPOSE2D_S8_H

#include "gm_requant.h"
#include "gm_stored.h"
#include "gm_window.h"

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
    int32_t groups;
    int32_t channels;     /* input channels of one group */
    int32_t out_channels; /* output channels of one group */
    int32_t fill;         /* the zero point of x */
    int32_t shift;        /* left shift of the accumulator, 0..15 */
    int32_t zero_point;   /* of y */
    int32_t low;          /* clamp of y, -128 <= low <= high <= 127 */
    int32_t high;
} gm_conv_transpose2d_s8_t;

/* The row (or column) of x that a tap reads, -1 where it reads none. */
GM_INLINE int32_t gm_conv_transpose2d_source(int32_t place, int32_t stride, int32_t size)
{
    const int32_t source = place / stride;
    return place >= 0 && source < size && source * stride == place ? source : -1;
}

/* Four channels of a pixel: acc += x * w over the rows that are there. x lies `offset` elements
 * into a row, for the group; column ox of the output. */
GM_INLINE void gm_conv_transpose2d_gather(const gm_conv_transpose2d_s8_t *p, int32_t size,
                                          int32_t acc[4], const void *const *rows, int32_t offset,
                                          int32_t ox, const int8_t *GM_RESTRICT w)
{
    const int32_t pitch = p->groups * p->channels;
    for (int32_t i = 0; i < p->kernel_height; i++) {
        for (int32_t j = 0; rows[i] && j < p->kernel_width; j++) {
            const int32_t ix = gm_conv_transpose2d_source(ox + p->pad_left - j * p->dilation_width,
                                                          p->stride_width, p->width);
            if (ix < 0) {
                continue;
            }
            const void *x = gm_from(rows[i], ix * pitch + offset, size);
            const int8_t *wk = w + (i * p->kernel_width + j) * p->channels * 4;
            for (int32_t k = 0; k < p->channels; k++) {
                const int32_t v = gm_get(x, k, size) - p->fill;
                acc[0] += v * wk[0];
                acc[1] += v * wk[1];
                acc[2] += v * wk[2];
                acc[3] += v * wk[3];
                wk += 4;
            }
        }
    }
}

/* One row of the output. rows[i] is the row of x that tap row i reads, NULL where it reads none. */
GM_INLINE void gm_conv_transpose2d_row(const gm_conv_transpose2d_s8_t *p, int32_t size,
                                       void *GM_RESTRICT y, const void *const *rows,
                                       const int8_t *GM_RESTRICT w, const int32_t *GM_RESTRICT bias,
                                       const int32_t *GM_RESTRICT multiplier)
{
    const int32_t block = p->kernel_height * p->kernel_width * p->channels * 4;
    const int32_t blocks = (p->out_channels + 3) / 4;
    for (int32_t ox = 0; ox < p->out_width; ox++) {
        for (int32_t b = 0; b < p->groups * blocks; b++) {
            const int32_t group = b / blocks;
            const int32_t left = p->out_channels - (b - group * blocks) * 4;
            const int32_t last = left < 4 ? left : 4;
            int32_t acc[4] = {bias[4 * b], bias[4 * b + 1], bias[4 * b + 2], bias[4 * b + 3]};
            gm_conv_transpose2d_gather(p, size, acc, rows, group * p->channels, ox, w + b * block);
            for (int32_t i = 0; i < last; i++) {
                gm_put(y, i, size,
                       gm_requant(acc[i], multiplier[4 * b + i], p->shift, p->zero_point, p->low,
                                  p->high));
            }
            y = gm_to(y, last, size);
        }
    }
}

/* w: per group [ceil(out_channels / 4)][kernel_height][kernel_width][channels][4], missing channels
 * as zeros; bias and multiplier: per group, padded to a multiple of four.
 * scratch: kernel_height pointers where the window is taller than GM_WINDOW_ROWS, else NULL.
 * y must not overlap x. */
GM_INLINE void gm_conv_transpose2d_stored(const gm_conv_transpose2d_s8_t *p, int32_t size,
                                          void *GM_RESTRICT y, const void *GM_RESTRICT x,
                                          const int8_t *GM_RESTRICT w,
                                          const int32_t *GM_RESTRICT bias,
                                          const int32_t *GM_RESTRICT multiplier,
                                          void *GM_RESTRICT scratch)
{
    const int32_t row = p->width * p->groups * p->channels;
    const void *few[GM_WINDOW_ROWS];
    const void **rows = p->kernel_height > GM_WINDOW_ROWS ? (const void **)scratch : few;
    for (int32_t n = 0; n < p->batch; n++) {
        for (int32_t oy = 0; oy < p->out_height; oy++) {
            for (int32_t i = 0; i < p->kernel_height; i++) {
                const int32_t iy = gm_conv_transpose2d_source(
                    oy + p->pad_top - i * p->dilation_height, p->stride_height, p->height);
                rows[i] = iy >= 0 ? gm_from(x, iy * row, size) : NULL;
            }
            gm_conv_transpose2d_row(p, size, y, rows, w, bias, multiplier);
            y = gm_to(y, p->out_width * p->groups * p->out_channels, size);
        }
        x = gm_from(x, p->height * row, size);
    }
}

GM_INLINE void gm_conv_transpose2d_s8_core(const gm_conv_transpose2d_s8_t *p, int8_t *GM_RESTRICT y,
                                           const int8_t *GM_RESTRICT x, const int8_t *GM_RESTRICT w,
                                           const int32_t *GM_RESTRICT bias,
                                           const int32_t *GM_RESTRICT multiplier,
                                           void *GM_RESTRICT scratch)
{
    gm_conv_transpose2d_stored(p, 1, y, x, w, bias, multiplier, scratch);
}

void gm_conv_transpose2d_s8(const gm_conv_transpose2d_s8_t *p, int8_t *GM_RESTRICT y,
                            const int8_t *GM_RESTRICT x, const int8_t *GM_RESTRICT w,
                            const int32_t *GM_RESTRICT bias, const int32_t *GM_RESTRICT multiplier,
                            void *GM_RESTRICT scratch);

#ifdef __cplusplus
}
#endif

#endif
