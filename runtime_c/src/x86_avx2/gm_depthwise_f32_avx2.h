/* SPDX-License-Identifier: Apache-2.0
 * Depthwise convolution, float, NHWC, for AVX2: eight channels at a time. */
#ifndef GM_DEPTHWISE_F32_AVX2_H
#define GM_DEPTHWISE_F32_AVX2_H

#include "gm_depthwise_f32.h"
#include "gm_vector.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef gm_depthwise_f32_t gm_depthwise_f32_avx2_t;

/* One pixel, whose window starts at pixel `first` of the rows; NULL is a row of zeros. Taps of
 * padding are added too, in the order of the C kernel. */
GM_INLINE void gm_depthwise_f32_avx2_pixel(const gm_depthwise_f32_avx2_t *p, float *y,
                                           const void *const *rows, int32_t first, const float *w,
                                           const float *bias)
{
    for (int32_t c = 0; c < p->channels; c += 8) {
        gm_f32x8_t sum = gm_f32x8_load(bias + c);
        for (int32_t i = 0; i < p->kernel_height; i++) {
            const float *const row = (const float *)rows[i];
            for (int32_t j = 0; j < p->kernel_width; j++) {
                const int32_t at = first + j * p->dilation_width;
                const int inside = row != NULL && at >= 0 && at < p->width;
                const gm_f32x8_t zeros = {0};
                const gm_f32x8_t x = inside ? gm_f32x8_load(row + at * p->channels + c) : zeros;
                sum += x * gm_f32x8_load(w);
                w += 8;
            }
        }
        gm_f32x8_store(y + c, 8, sum, p->low, p->high);
    }
}

/* w: [channels / 8][kernel_height][kernel_width][8]; bias: [channels]; channels are a multiple of
 * eight. */
GM_INLINE void gm_depthwise_f32_avx2_core(const gm_depthwise_f32_avx2_t *p, float *y,
                                          const float *x, const float *w, const float *bias)
{
    for (int32_t n = 0; n < p->batch; n++) {
        for (int32_t oy = 0; oy < p->out_height; oy++) {
            const void *rows[GM_WINDOW_ROWS];
            for (int32_t i = 0; i < p->kernel_height; i++) {
                const int32_t row = oy * p->stride_height - p->pad_top + i * p->dilation_height;
                const int inside = row >= 0 && row < p->height;
                rows[i] = inside ? x + row * p->width * p->channels : NULL;
            }
            for (int32_t ox = 0; ox < p->out_width; ox++) {
                gm_depthwise_f32_avx2_pixel(p, y, rows, ox * p->stride_width - p->pad_left, w,
                                            bias);
                y += p->channels;
            }
        }
        x += p->height * p->width * p->channels;
    }
}

void gm_depthwise_f32_avx2(const gm_depthwise_f32_avx2_t *p, float *y, const float *x,
                           const float *w, const float *bias);

#ifdef __cplusplus
}
#endif

#endif
