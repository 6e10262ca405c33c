/* SPDX-License-Identifier: Apache-2.0
 * Convolution, float, NHWC, for a single-precision FPU: windows of four pixels are gathered, then
 * multiplied with four channels at a time. */
#ifndef GM_CONV2D_F32_FPU_H
#define GM_CONV2D_F32_FPU_H

#include "gm_conv2d_f32.h"
#include "gm_fpu.h"
#include "gm_gather_f32.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef gm_conv2d_f32_t gm_conv2d_f32_fpu_t;

/* All channels of up to four pixels, from their windows run->x. */
GM_INLINE void gm_conv2d_f32_fpu_channels(const gm_conv2d_f32_fpu_t *p, gm_fpu_block_t *run,
                                          float *y, int32_t pixels, const float *w,
                                          const float *bias)
{
    run->w = w;
    for (int32_t n = 0; n < p->out_channels; n += 4) {
        const int32_t last = p->out_channels - n < 4 ? p->out_channels - n : 4;
        for (int32_t k = 0; k < 16; k++) {
            run->sum[k] = bias[n + k % 4];
        }
        gm_fpu_block(run);
        for (int32_t k = 0; k < pixels; k++) {
            float *const to = y + k * p->out_channels + n;
            for (int32_t c = 0; c < last; c++) {
                to[c] = gm_clamp_f32(run->sum[4 * k + c], p->low, p->high);
            }
        }
        run->w += 4 * run->count;
    }
}

/* A 1x1 convolution of stride 1, which sees the whole batch as one row. */
GM_INLINE void gm_conv2d_f32_fpu_pointwise(const gm_conv2d_f32_fpu_t *p, float *y, const float *x,
                                           const float *w, const float *bias, float *scratch)
{
    const int32_t count = p->batch * p->height * p->width;
    const int32_t blocks = (count + 3) / 4;
    for (int32_t block = 0; block < blocks; block++) {
        const int32_t at = 4 * (p->descending ? blocks - 1 - block : block);
        const int32_t pixels = count - at < 4 ? count - at : 4;
        const float *from = x + at * p->channels;
        gm_fpu_block_t run;
        run.count = p->channels;
        if (p->out_channels <= p->channels) {
            memcpy(scratch, from, (size_t)(pixels * p->channels) * sizeof(float));
            from = scratch;
        }
        for (int32_t k = 0; k < 4; k++) {
            run.x[k] = from + (k < pixels ? k * p->channels : 0);
        }
        gm_conv2d_f32_fpu_channels(p, &run, y + at * p->out_channels, pixels, w, bias);
    }
}

/* w, bias: as for gm_conv2d_f32. scratch: the windows of four pixels; NULL for a 1x1 convolution of
 * stride 1 that widens. y may be x where a window has one pixel and pixels of y are not wider.
 * Without groups. */
GM_INLINE void gm_conv2d_f32_fpu_core(const gm_conv2d_f32_fpu_t *p, float *y, const float *x,
                                      const float *w, const float *bias, void *scratch)
{
    const int pointwise = p->kernel_height == 1 && p->kernel_width == 1 && p->stride_height == 1 &&
                          p->stride_width == 1 && p->padded_width == 0;
    const int32_t inner = p->kernel_height * p->kernel_width * p->channels;
    float *const windows = (float *)scratch;
    if (pointwise) {
        gm_conv2d_f32_fpu_pointwise(p, y, x, w, bias, windows);
        return;
    }
    for (int32_t n = 0; n < p->batch; n++) {
        int32_t left = p->out_height * p->out_width;
        int32_t oy = 0;
        int32_t ox = 0;
        while (left > 0) {
            const int32_t pixels = left < 4 ? left : 4;
            gm_fpu_block_t run;
            run.count = inner;
            for (int32_t k = 0; k < 4; k++) {
                run.x[k] = windows + (k < pixels ? k * inner : 0);
            }
            for (int32_t k = 0; k < pixels; k++) {
                const void *rows[GM_WINDOW_ROWS];
                for (int32_t i = 0; i < p->kernel_height; i++) {
                    const int32_t row = oy * p->stride_height - p->pad_top + i * p->dilation_height;
                    const int inside = row >= 0 && row < p->height;
                    rows[i] = inside ? x + row * p->width * p->channels : NULL;
                }
                gm_gather_f32(p, windows + k * inner, rows, ox * p->stride_width - p->pad_left);
                oy += ox + 1 == p->out_width;
                ox = ox + 1 == p->out_width ? 0 : ox + 1;
            }
            gm_conv2d_f32_fpu_channels(p, &run, y, pixels, w, bias);
            y += pixels * p->out_channels;
            left -= pixels;
        }
        x += p->height * p->width * p->channels;
    }
}

void gm_conv2d_f32_fpu(const gm_conv2d_f32_fpu_t *p, float *y, const float *x, const float *w,
                       const float *bias, void *scratch);

#ifdef __cplusplus
}
#endif

#endif
