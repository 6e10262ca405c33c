/* SPDX-License-Identifier: Apache-2.0
 * One row of a convolution, float, for a single-precision FPU, from rows that lie anywhere. */
#ifndef GM_CONV2D_F32_FPU_ROWS_H
#define GM_CONV2D_F32_FPU_ROWS_H

#include "gm_conv2d_f32_fpu.h"

#ifdef __cplusplus
extern "C" {
#endif

/* rows: kernel_height rows of x, NULL for padding; w, bias as for gm_conv2d_f32; scratch: the
 * windows of four pixels. y may lie over a row of x that is not needed afterwards, as far as each
 * output pixel ends before the first input pixel of the window of the pixel three before it. */
GM_INLINE void gm_conv2d_f32_fpu_rows_core(const gm_conv2d_f32_fpu_t *p, float *y, int32_t oy,
                                           const void *const *rows, const float *w,
                                           const float *bias, void *scratch)
{
    const int32_t inner = p->kernel_height * p->kernel_width * p->channels;
    float *const windows = (float *)scratch;
    (void)oy;
    for (int32_t ox = 0; ox < p->out_width; ox += 4) {
        const int32_t pixels = p->out_width - ox < 4 ? p->out_width - ox : 4;
        gm_fpu_block_t run;
        run.count = inner;
        for (int32_t k = 0; k < 4; k++) {
            run.x[k] = windows + (k < pixels ? k * inner : 0);
        }
        for (int32_t k = 0; k < pixels; k++) {
            gm_gather_f32(p, windows + k * inner, rows, (ox + k) * p->stride_width - p->pad_left);
        }
        gm_conv2d_f32_fpu_channels(p, &run, y, pixels, w, bias);
        y += pixels * p->out_channels;
    }
}

void gm_conv2d_f32_fpu_rows(const gm_conv2d_f32_fpu_t *p, float *y, int32_t oy,
                            const void *const *rows, const float *w, const float *bias,
                            void *scratch);

#ifdef __cplusplus
}
#endif

#endif
