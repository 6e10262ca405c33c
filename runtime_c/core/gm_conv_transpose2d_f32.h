/* SPDX-License-Identifier: Apache-2.0
 * Transposed convolution, float, NHWC, as a gather: y = clamp(bias + sum x * w) over
 * the taps for which output + pad - tap * dilation is a multiple of the stride. */
#ifndef GM_CONV_TRANSPOSE2D_F32_H
#define GM_CONV_TRANSPOSE2D_F32_H

#include "gm_clamp_f32.h"
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
    float low;            /* clamp of y; infinities where there is none */
    float high;
} gm_conv_transpose2d_f32_t;

/* The row (or column) of x that a tap reads, -1 where it reads none. */
GM_INLINE int32_t gm_conv_transpose2d_f32_source(int32_t place, int32_t stride, int32_t size)
{
    const int32_t source = place / stride;
    return place >= 0 && source < size && source * stride == place ? source : -1;
}

/* Up to four channels of a pixel: acc += x * w over the rows that are there; `rest` (0 to 3) of
 * them follow the first. x lies `offset` elements into a row; ox: column of y. */
GM_INLINE void gm_conv_transpose2d_f32_gather(const gm_conv_transpose2d_f32_t *p, float acc[4],
                                              const void *const *rows, int32_t offset, int32_t ox,
                                              const float *GM_RESTRICT w, int32_t rest)
{
    const int32_t pitch = p->groups * p->channels;
    const int32_t window = p->kernel_height * p->kernel_width * p->channels;
    /* a channel past the end is the last one again: its sum is dropped */
    const float *w1 = w + (rest > 0 ? window : 0);
    const float *w2 = w1 + (rest > 1 ? window : 0);
    const float *w3 = w2 + (rest > 2 ? window : 0);
    for (int32_t i = 0; i < p->kernel_height; i++) {
        for (int32_t j = 0; rows[i] && j < p->kernel_width; j++) {
            const int32_t ix = gm_conv_transpose2d_f32_source(
                ox + p->pad_left - j * p->dilation_width, p->stride_width, p->width);
            if (ix < 0) {
                continue;
            }
            const float *x = (const float *)rows[i] + ix * pitch + offset;
            const int32_t at = (i * p->kernel_width + j) * p->channels;
            for (int32_t k = 0; k < p->channels; k++) {
                acc[0] += x[k] * w[at + k];
                acc[1] += x[k] * w1[at + k];
                acc[2] += x[k] * w2[at + k];
                acc[3] += x[k] * w3[at + k];
            }
        }
    }
}

/* One row of the output. rows[i] is the row of x that tap row i reads, NULL where it reads none. */
GM_INLINE void gm_conv_transpose2d_f32_row(const gm_conv_transpose2d_f32_t *p, float *GM_RESTRICT y,
                                           const void *const *rows, const float *GM_RESTRICT w,
                                           const float *GM_RESTRICT bias)
{
    const int32_t window = p->kernel_height * p->kernel_width * p->channels;
    for (int32_t ox = 0; ox < p->out_width; ox++) {
        int32_t c = 0;
        for (int32_t g = 0; g < p->groups; g++) {
            for (int32_t n = 0; n < p->out_channels; n += 4) {
                const int32_t left = p->out_channels - n;
                const int32_t last = left < 4 ? left : 4;
                float acc[4] = {0.0f, 0.0f, 0.0f, 0.0f};
                gm_conv_transpose2d_f32_gather(p, acc, rows, g * p->channels, ox, w + c * window,
                                               last - 1);
                for (int32_t i = 0; i < last; i++) {
                    const float sum = acc[i] + (bias ? bias[c] : 0.0f);
                    *y++ = gm_clamp_f32(sum, p->low, p->high);
                    c++;
                }
            }
        }
    }
}

/* w: [groups * out_channels][kernel_height][kernel_width][channels]; bias: one for each output
 * channel, or NULL. scratch: kernel_height pointers where the window is taller than GM_WINDOW_ROWS,
 * else NULL. y must not overlap x. */
GM_INLINE void gm_conv_transpose2d_f32_core(const gm_conv_transpose2d_f32_t *p,
                                            float *GM_RESTRICT y, const float *GM_RESTRICT x,
                                            const float *GM_RESTRICT w,
                                            const float *GM_RESTRICT bias,
                                            void *GM_RESTRICT scratch)
{
    const int32_t row = p->width * p->groups * p->channels;
    const void *few[GM_WINDOW_ROWS];
    const void **rows = p->kernel_height > GM_WINDOW_ROWS ? (const void **)scratch : few;
    for (int32_t n = 0; n < p->batch; n++) {
        for (int32_t oy = 0; oy < p->out_height; oy++) {
            for (int32_t i = 0; i < p->kernel_height; i++) {
                const int32_t iy = gm_conv_transpose2d_f32_source(
                    oy + p->pad_top - i * p->dilation_height, p->stride_height, p->height);
                rows[i] = iy >= 0 ? x + iy * row : NULL;
            }
            gm_conv_transpose2d_f32_row(p, y, rows, w, bias);
            y += p->out_width * p->groups * p->out_channels;
        }
        x += p->height * row;
    }
}

void gm_conv_transpose2d_f32(const gm_conv_transpose2d_f32_t *p, float *GM_RESTRICT y,
                             const float *GM_RESTRICT x, const float *GM_RESTRICT w,
                             const float *GM_RESTRICT bias, void *GM_RESTRICT scratch);

#ifdef __cplusplus
}
#endif

#endif
