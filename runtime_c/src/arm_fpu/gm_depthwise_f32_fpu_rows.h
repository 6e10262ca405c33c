/* SPDX-License-Identifier: Apache-2.0
 * One row of a depthwise convolution, float, for a single-precision FPU, from rows that lie
 * anywhere. */
#ifndef GM_DEPTHWISE_F32_FPU_ROWS_H
#define GM_DEPTHWISE_F32_FPU_ROWS_H

#include "gm_depthwise_f32_fpu.h"

#ifdef __cplusplus
extern "C" {
#endif

/* rows: kernel_height rows of x, NULL for padding; w, bias and scratch as for gm_depthwise_f32_fpu.
 * y may lie over a row of x that is not needed afterwards, as far as each output pixel ends before
 * the first input pixel of its window. */
GM_INLINE void gm_depthwise_f32_fpu_rows_core(const gm_depthwise_f32_fpu_t *p, float *y, int32_t oy,
                                              const void *const *rows, const float *w,
                                              const float *bias, void *scratch)
{
    (void)oy;
    memset(scratch, 0, (size_t)p->channels * sizeof(float));
    gm_depthwise_f32_fpu_row(p, y, rows, w, bias, (const float *)scratch);
}

void gm_depthwise_f32_fpu_rows(const gm_depthwise_f32_fpu_t *p, float *y, int32_t oy,
                               const void *const *rows, const float *w, const float *bias,
                               void *scratch);

#ifdef __cplusplus
}
#endif

#endif
