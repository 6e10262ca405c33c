/* SPDX-License-Identifier: Apache-2.0
 * Depthwise convolution, float, NHWC: every channel has a window of its own,
 * y[c] = clamp(bias[c] + sum x[c] * w[c]); padding is zero. */
#ifndef GM_DEPTHWISE_F32_H
#define GM_DEPTHWISE_F32_H

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
    int32_t kernel_height; /* up to GM_WINDOW_ROWS */
    int32_t kernel_width;
    int32_t stride_height;
    int32_t stride_width;
    int32_t dilation_height;
    int32_t dilation_width;
    int32_t pad_top;
    int32_t pad_left;
    int32_t padded_width; /* pixels of a padded row; 0: no padding, rows are read where they lie */
    int32_t channels;
    float low; /* clamp of y; infinities where there is none */
    float high;
} gm_depthwise_f32_t;

/* One tap of `pixels` neighbours, `step` elements apart; the other sums are not used. */
GM_INLINE void gm_depthwise_f32_tap(float acc[4], int32_t pixels, const float *u, int32_t step,
                                    float w)
{
    acc[0] += u[0] * w;
    acc[1] += u[pixels > 1 ? step : 0] * w;
    acc[2] += u[pixels > 2 ? 2 * step : 0] * w;
    acc[3] += u[pixels > 3 ? 3 * step : 0] * w;
}

/* One row of the window. Three taps in a line share most of what they read at stride 1. */
GM_INLINE void gm_depthwise_f32_line(const gm_depthwise_f32_t *p, float acc[4], int32_t pixels,
                                     const float *u, int32_t step, const float *w)
{
    const int32_t n = p->channels;
    const int32_t next = p->dilation_width * n;
    if (GM_IS_CONSTANT(p->kernel_width) && p->kernel_width == 3) {
        gm_depthwise_f32_tap(acc, pixels, u, step, w[0]);
        gm_depthwise_f32_tap(acc, pixels, u + next, step, w[n]);
        gm_depthwise_f32_tap(acc, pixels, u + 2 * next, step, w[2 * n]);
        return;
    }
    for (int32_t j = 0; j < p->kernel_width; j++) {
        gm_depthwise_f32_tap(acc, pixels, u, step, *w);
        u += next;
        w += n;
    }
}

/* One to four neighbouring pixels (a constant at every call). The window starts `offset` elements
 * into the rows. */
GM_INLINE void gm_depthwise_f32_pixels(const gm_depthwise_f32_t *p, int32_t pixels, float *y,
                                       const void *const *rows, int32_t offset,
                                       const float *GM_RESTRICT w, const float *GM_RESTRICT bias)
{
    const int32_t channels = p->channels;
    const int32_t step = p->stride_width * channels;
    const int32_t line = p->kernel_width * channels;
    for (int32_t c = 0; c < channels; c++) {
        const int32_t at = offset + c;
        float acc[4] = {bias[c], bias[c], bias[c], bias[c]};
        if (GM_IS_CONSTANT(p->kernel_height) && p->kernel_height == 3) {
            gm_depthwise_f32_line(p, acc, pixels, (const float *)rows[0] + at, step, w + c);
            gm_depthwise_f32_line(p, acc, pixels, (const float *)rows[1] + at, step, w + c + line);
            gm_depthwise_f32_line(p, acc, pixels, (const float *)rows[2] + at, step,
                                  w + c + 2 * line);
        } else {
            for (int32_t i = 0; i < p->kernel_height; i++) {
                gm_depthwise_f32_line(p, acc, pixels, (const float *)rows[i] + at, step,
                                      w + c + i * line);
            }
        }
        y[c] = gm_clamp_f32(acc[0], p->low, p->high);
        if (pixels > 1) {
            y[channels + c] = gm_clamp_f32(acc[1], p->low, p->high);
        }
        if (pixels > 2) {
            y[2 * channels + c] = gm_clamp_f32(acc[2], p->low, p->high);
        }
        if (pixels > 3) {
            y[3 * channels + c] = gm_clamp_f32(acc[3], p->low, p->high);
        }
    }
}

/* One row of the output from kernel_height rows of the input, padded left and right. */
GM_INLINE void gm_depthwise_f32_row(const gm_depthwise_f32_t *p, float *y, const void *const *rows,
                                    const float *GM_RESTRICT w, const float *GM_RESTRICT bias)
{
    const int32_t step = p->stride_width * p->channels;
    int32_t offset = 0;
    int32_t ox = 0;
    for (; ox <= p->out_width - 4; ox += 4) {
        gm_depthwise_f32_pixels(p, 4, y, rows, offset, w, bias);
        offset += 4 * step;
        y += 4 * p->channels;
    }
    if (GM_IS_CONSTANT(p->out_width) && p->out_width % 4 == 3) {
        gm_depthwise_f32_pixels(p, 3, y, rows, offset, w, bias);
        return;
    }
    if (GM_IS_CONSTANT(p->out_width) && p->out_width % 4 == 2) {
        gm_depthwise_f32_pixels(p, 2, y, rows, offset, w, bias);
        return;
    }
    for (; ox < p->out_width; ox++) {
        gm_depthwise_f32_pixels(p, 1, y, rows, offset, w, bias);
        offset += step;
        y += p->channels;
    }
}

/* w: [kernel_height][kernel_width][channels]; bias: [channels].
 * scratch: with padding, (kernel_height - 1) * dilation_height + 1 rows of padded_width pixels;
 * without it NULL. y may be x where there is padding and each output row ends before the first
 * input row that is not yet in scratch. */
GM_INLINE void gm_depthwise_f32_core(const gm_depthwise_f32_t *p, float *y, const float *x,
                                     const float *GM_RESTRICT w, const float *GM_RESTRICT bias,
                                     void *GM_RESTRICT scratch)
{
    const int32_t bytes = p->channels * (int32_t)sizeof(float);
    const int32_t room = p->padded_width - p->pad_left;
    gm_ring_t ring = {(unsigned char *)scratch,
                      (p->kernel_height - 1) * p->dilation_height + 1,
                      p->padded_width * bytes,
                      p->pad_left * bytes,
                      (room < p->width ? room : p->width) * bytes,
                      p->height,
                      0,
                      0,
                      0};
    for (int32_t n = 0; n < p->batch; n++) {
        if (p->padded_width > 0) {
            gm_ring_start(&ring, p->pad_top);
        }
        for (int32_t oy = 0; oy < p->out_height; oy++) {
            const int32_t first = oy * p->stride_height - p->pad_top;
            const void *rows[GM_WINDOW_ROWS];
            if (p->padded_width > 0) {
                gm_ring_rows(&ring, x, p->width * bytes, first, p->kernel_height,
                             p->dilation_height, rows);
            } else {
                for (int32_t i = 0; i < p->kernel_height; i++) {
                    rows[i] = x + (first + i * p->dilation_height) * p->width * p->channels;
                }
            }
            gm_depthwise_f32_row(p, y, rows, w, bias);
            y += p->out_width * p->channels;
        }
        x += p->height * p->width * p->channels;
    }
}

void gm_depthwise_f32(const gm_depthwise_f32_t *p, float *y, const float *x,
                      const float *GM_RESTRICT w, const float *GM_RESTRICT bias,
                      void *GM_RESTRICT scratch);

#ifdef __cplusplus
}
#endif

#endif
