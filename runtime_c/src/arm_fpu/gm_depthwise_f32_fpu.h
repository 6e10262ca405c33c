/* SPDX-License-Identifier: Apache-2.0
 * Depthwise convolution, float, NHWC, for a single-precision FPU: eight channels at a time. */
#ifndef GM_DEPTHWISE_F32_FPU_H
#define GM_DEPTHWISE_F32_FPU_H

#include "gm_depthwise_f32.h"
#include "gm_fpu.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef gm_depthwise_f32_t gm_depthwise_f32_fpu_t;

/* The most taps of a window. */
#define GM_DEPTHWISE_FPU_TAPS 64

/* One row of the output from the rows of the input that it sees, NULL for one of zeros. */
GM_INLINE void gm_depthwise_f32_fpu_row(const gm_depthwise_f32_fpu_t *p, float *y,
                                        const void *const *rows, const float *w, const float *bias,
                                        const float *zeros)
{
    const float *taps[GM_DEPTHWISE_FPU_TAPS];
    gm_fpu_taps_t run;
    run.taps = taps;
    run.count = p->kernel_height * p->kernel_width;
    for (int32_t ox = 0; ox < p->out_width; ox++) {
        const float **tap = taps;
        for (int32_t i = 0; i < p->kernel_height; i++) {
            int32_t x = ox * p->stride_width - p->pad_left;
            for (int32_t j = 0; j < p->kernel_width; j++) {
                const int inside = rows[i] != NULL && x >= 0 && x < p->width;
                *tap++ = inside ? (const float *)rows[i] + x * p->channels : zeros;
                x += p->dilation_width;
            }
        }
        run.w = w;
        for (int32_t c = 0; c < p->channels; c += 8) {
            memcpy(run.sum, bias + c, sizeof(run.sum));
            gm_fpu_taps(&run);
            for (int32_t k = 0; k < 8; k++) {
                y[c + k] = gm_clamp_f32(run.sum[k], p->low, p->high);
            }
        }
        y += p->channels;
    }
}

/* w: [channels / 8][kernel_height][kernel_width][8]; bias: [channels]; channels are a multiple of
 * eight. scratch: a pixel, which becomes zeros. */
GM_INLINE void gm_depthwise_f32_fpu_core(const gm_depthwise_f32_fpu_t *p, float *y, const float *x,
                                         const float *w, const float *bias, void *scratch)
{
    memset(scratch, 0, (size_t)p->channels * sizeof(float));
    for (int32_t n = 0; n < p->batch; n++) {
        for (int32_t oy = 0; oy < p->out_height; oy++) {
            const void *rows[GM_WINDOW_ROWS];
            for (int32_t i = 0; i < p->kernel_height; i++) {
                const int32_t row = oy * p->stride_height - p->pad_top + i * p->dilation_height;
                const int inside = row >= 0 && row < p->height;
                rows[i] = inside ? x + row * p->width * p->channels : NULL;
            }
            gm_depthwise_f32_fpu_row(p, y, rows, w, bias, (const float *)scratch);
            y += p->out_width * p->channels;
        }
        x += p->height * p->width * p->channels;
    }
}

void gm_depthwise_f32_fpu(const gm_depthwise_f32_fpu_t *p, float *y, const float *x, const float *w,
                          const float *bias, void *scratch);

#ifdef __cplusplus
}
#endif

#endif
