/* SPDX-License-Identifier: Apache-2.0
 * Convolution, float, NHWC, for AVX2: windows of four pixels are gathered, then multiplied with
 * eight channels at a time. Sums are added in the order of the C kernel: the bits are the same. */
#ifndef GM_CONV2D_F32_AVX2_H
#define GM_CONV2D_F32_AVX2_H

#include "gm_gather_f32.h"
#include "gm_vector.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef gm_conv2d_f32_t gm_conv2d_f32_avx2_t;

/* All channels of `pixels` pixels (1 or 4, a constant at every call), whose windows of `inner`
 * values follow each other. */
GM_INLINE void gm_conv2d_f32_avx2_pixels(const gm_conv2d_f32_avx2_t *p, int32_t pixels, float *y,
                                         const float *x, int32_t inner, const float *w,
                                         const float *bias)
{
    for (int32_t n = 0; n < p->out_channels; n += 8) {
        const int32_t left = p->out_channels - n;
        gm_f32x8_t a = gm_f32x8_load(bias + n);
        gm_f32x8_t b = a;
        gm_f32x8_t c = a;
        gm_f32x8_t d = a;
        for (int32_t k = 0; k < inner; k++) {
            const gm_f32x8_t weights = gm_f32x8_load(w);
            a += x[k] * weights;
            if (pixels == 4) {
                b += x[inner + k] * weights;
                c += x[2 * inner + k] * weights;
                d += x[3 * inner + k] * weights;
            }
            w += 8;
        }
        gm_f32x8_store(y + n, left, a, p->low, p->high);
        if (pixels == 4) {
            gm_f32x8_store(y + p->out_channels + n, left, b, p->low, p->high);
            gm_f32x8_store(y + 2 * p->out_channels + n, left, c, p->low, p->high);
            gm_f32x8_store(y + 3 * p->out_channels + n, left, d, p->low, p->high);
        }
    }
}

/* `count` neighbouring pixels of the output from the rows of the input that they see. All windows
 * of four pixels are read before their results are written. */
GM_INLINE void gm_conv2d_f32_avx2_row(const gm_conv2d_f32_avx2_t *p, int32_t count, float *y,
                                      const void *const *rows, const float *w, const float *bias,
                                      float *windows)
{
    const int32_t inner = p->kernel_height * p->kernel_width * p->channels;
    for (int32_t at = 0; at < count; at += 4) {
        const int32_t pixels = count - at < 4 ? count - at : 4;
        for (int32_t i = 0; i < pixels; i++) {
            gm_gather_f32(p, windows + inner * i, rows, (at + i) * p->stride_width - p->pad_left);
        }
        if (pixels == 4) {
            gm_conv2d_f32_avx2_pixels(p, 4, y, windows, inner, w, bias);
        } else {
            for (int32_t i = 0; i < pixels; i++) {
                gm_conv2d_f32_avx2_pixels(p, 1, y + i * p->out_channels, windows + inner * i, inner,
                                          w, bias);
            }
        }
        y += pixels * p->out_channels;
    }
}

/* w: [ceil(out_channels / 8)][kernel_height][kernel_width][channels][8]; bias padded likewise.
 * scratch: the windows of four pixels. Without groups. */
GM_INLINE void gm_conv2d_f32_avx2_core(const gm_conv2d_f32_avx2_t *p, float *y, const float *x,
                                       const float *w, const float *bias, void *scratch)
{
    const int pointwise = p->kernel_height == 1 && p->kernel_width == 1 && p->stride_height == 1 &&
                          p->stride_width == 1 && p->padded_width == 0;
    if (pointwise) {
        /* the whole batch is one row */
        const void *const rows[1] = {x};
        gm_conv2d_f32_avx2_t line = *p;
        line.width = p->batch * p->height * p->width;
        gm_conv2d_f32_avx2_row(&line, line.width, y, rows, w, bias, (float *)scratch);
        return;
    }
    for (int32_t n = 0; n < p->batch; n++) {
        for (int32_t oy = 0; oy < p->out_height; oy++) {
            const void *rows[GM_WINDOW_ROWS];
            for (int32_t i = 0; i < p->kernel_height; i++) {
                const int32_t row = oy * p->stride_height - p->pad_top + i * p->dilation_height;
                const int inside = row >= 0 && row < p->height;
                rows[i] = inside ? x + row * p->width * p->channels : NULL;
            }
            gm_conv2d_f32_avx2_row(p, p->out_width, y, rows, w, bias, (float *)scratch);
            y += p->out_width * p->out_channels;
        }
        x += p->height * p->width * p->channels;
    }
}

void gm_conv2d_f32_avx2(const gm_conv2d_f32_avx2_t *p, float *y, const float *x, const float *w,
                        const float *bias, void *scratch);

#ifdef __cplusplus
}
#endif

#endif
