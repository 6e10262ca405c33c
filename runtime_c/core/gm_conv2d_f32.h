/* SPDX-License-Identifier: Apache-2.0
 * Convolution, float, NHWC: y = clamp(bias + sum x * w), padding is zero. */
#ifndef GM_CONV2D_F32_H
#define GM_CONV2D_F32_H

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
    int32_t groups;
    int32_t channels;     /* input channels of one group */
    int32_t out_channels; /* output channels of one group */
    float low;            /* clamp of y; infinities where there is none */
    float high;
    int32_t descending; /* 1: from the last pixel of a row to the first */
} gm_conv2d_f32_t;

/* Clamp and store up to four channels of a pixel. */
GM_INLINE void gm_conv2d_f32_store(const gm_conv2d_f32_t *p, float *GM_RESTRICT y, int32_t last,
                                   const float acc[4])
{
    y[0] = gm_clamp_f32(acc[0], p->low, p->high);
    if (last > 1) {
        y[1] = gm_clamp_f32(acc[1], p->low, p->high);
    }
    if (last > 2) {
        y[2] = gm_clamp_f32(acc[2], p->low, p->high);
    }
    if (last > 3) {
        y[3] = gm_clamp_f32(acc[3], p->low, p->high);
    }
}

/* One value of each of two pixels times the weights of four channels. */
GM_INLINE void gm_conv2d_f32_step(float a[4], float b[4], float u, float v,
                                  const float *GM_RESTRICT w)
{
    a[0] += u * w[0];
    b[0] += v * w[0];
    a[1] += u * w[1];
    b[1] += v * w[1];
    a[2] += u * w[2];
    b[2] += v * w[2];
    a[3] += u * w[3];
    b[3] += v * w[3];
}

/* All channels of one pixel, or of two neighbours (pixels is 1 or 2, a constant at every call).
 * The window starts `offset` elements into the rows. */
GM_INLINE void gm_conv2d_f32_pixels(const gm_conv2d_f32_t *p, int32_t pixels, float *y,
                                    const void *const *rows, int32_t offset,
                                    const float *GM_RESTRICT w, const float *GM_RESTRICT bias)
{
    const int32_t pitch = p->groups * p->channels;
    /* without groups and dilation, the window's pixels in a row are one run of values */
    const int whole = p->groups == 1 && p->dilation_width == 1;
    const int32_t runs = whole ? 1 : p->kernel_width;
    const int32_t run = whole ? p->kernel_width * p->channels : p->channels;
    const int32_t second = pixels == 2 ? p->stride_width * pitch : 0;
    for (int32_t g = 0; g < p->groups; g++) {
        for (int32_t n = 0; n < p->out_channels; n += 4) {
            const int32_t last = p->out_channels - n;
            float a[4] = {bias[0], bias[1], bias[2], bias[3]};
            float b[4] = {bias[0], bias[1], bias[2], bias[3]};
            for (int32_t i = 0; i < p->kernel_height; i++) {
                const float *u = (const float *)rows[i] + offset;
                for (int32_t j = 0; j < runs; j++) {
                    const float *v = u + second;
                    for (int32_t k = 0; k < run; k++) {
                        gm_conv2d_f32_step(a, b, u[k], v[k], w);
                        w += 4;
                    }
                    u += p->dilation_width * pitch;
                }
            }
            gm_conv2d_f32_store(p, y, last, a);
            if (pixels == 2) {
                gm_conv2d_f32_store(p, y + p->groups * p->out_channels, last, b);
            }
            y += last < 4 ? last : 4;
            bias += 4;
        }
        offset += p->channels;
    }
}

/* `count` neighbouring pixels of the output from kernel_height rows of the input, padded left and
 * right: a row. With `pair` (1x1 only), pixels are moved there before y is written, as y may lie on
 * them. */
GM_INLINE void gm_conv2d_f32_row(const gm_conv2d_f32_t *p, int32_t count, float *y,
                                 const void *const *rows, const float *GM_RESTRICT w,
                                 const float *GM_RESTRICT bias, void *pair)
{
    const int32_t in = p->groups * p->channels;
    const int32_t out = p->groups * p->out_channels;
    const void *const moved[1] = {pair};
    int32_t at = p->descending ? (count - 1) / 2 * 2 : 0;
    for (int32_t left = count; left > 0; left -= 2) {
        const int32_t offset = at * p->stride_width * in;
        if (pair) {
            memcpy(pair, (const float *)rows[0] + offset,
                   (size_t)((count - at > 1 ? 2 : 1) * in) * sizeof(float));
        }
        if (count % 2 == 0 || count - at > 1) {
            gm_conv2d_f32_pixels(p, 2, y + at * out, pair ? moved : rows, pair ? 0 : offset, w,
                                 bias);
        } else {
            gm_conv2d_f32_pixels(p, 1, y + at * out, pair ? moved : rows, pair ? 0 : offset, w,
                                 bias);
        }
        at += p->descending ? -2 : 2;
    }
}

/* w: per group [ceil(out_channels / 4)][kernel_height][kernel_width][channels][4], missing channels
 * as zeros; bias: per group, padded to a multiple of four.
 * scratch: a 1x1 convolution of stride 1 that does not widen, two pixels of x; with padding,
 * (kernel_height - 1) * dilation_height + 1 rows of padded_width pixels; else NULL.
 * y may be x where each output row ends before the first input row that is not yet in the ring. */
GM_INLINE void gm_conv2d_f32_core(const gm_conv2d_f32_t *p, float *y, const float *x,
                                  const float *GM_RESTRICT w, const float *GM_RESTRICT bias,
                                  void *GM_RESTRICT scratch)
{
    const int32_t pixel = p->groups * p->channels;
    const int32_t bytes = pixel * (int32_t)sizeof(float);
    /* a 1x1 convolution of stride 1 sees the whole batch as one row */
    const int pointwise = p->kernel_height == 1 && p->kernel_width == 1 && p->stride_height == 1 &&
                          p->stride_width == 1 && p->padded_width == 0;
    const int32_t batch = pointwise ? 1 : p->batch;
    const int32_t out_height = pointwise ? 1 : p->out_height;
    const int32_t out_width = p->out_width * (pointwise ? p->batch * p->out_height : 1);
    void *pair = pointwise && p->out_channels <= p->channels ? scratch : NULL;
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
    for (int32_t n = 0; n < batch; n++) {
        if (p->padded_width > 0) {
            gm_ring_start(&ring, p->pad_top);
        }
        for (int32_t oy = 0; oy < out_height; oy++) {
            const int32_t first = oy * p->stride_height - p->pad_top;
            const void *rows[GM_WINDOW_ROWS];
            if (p->padded_width > 0) {
                gm_ring_rows(&ring, x, p->width * bytes, first, p->kernel_height,
                             p->dilation_height, rows);
            } else {
                for (int32_t i = 0; i < p->kernel_height; i++) {
                    rows[i] = x + (first + i * p->dilation_height) * p->width * pixel;
                }
            }
            gm_conv2d_f32_row(p, out_width, y, rows, w, bias, pair);
            y += p->out_width * p->groups * p->out_channels;
        }
        x += p->height * p->width * pixel;
    }
}

void gm_conv2d_f32(const gm_conv2d_f32_t *p, float *y, const float *x, const float *GM_RESTRICT w,
                   const float *GM_RESTRICT bias, void *GM_RESTRICT scratch);

#ifdef __cplusplus
}
#endif

#endif
