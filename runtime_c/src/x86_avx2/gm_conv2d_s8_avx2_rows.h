/* SPDX-License-Identifier: Apache-2.0
 * One row of a convolution, int8, for AVX2, from rows that lie anywhere. */
#ifndef GM_CONV2D_S8_AVX2_ROWS_H
#define GM_CONV2D_S8_AVX2_ROWS_H

#include "gm_conv2d_s8_avx2.h"

#ifdef __cplusplus
extern "C" {
#endif

/* rows: kernel_height rows of x, NULL for padding; constants and scratch as for
 * gm_conv2d_s8_avx2. */
GM_INLINE void gm_conv2d_s8_avx2_rows_core(const gm_conv2d_s8_avx2_t *p, int8_t *y, int32_t oy,
                                           const void *const *rows, const int16_t *GM_RESTRICT w,
                                           const int32_t *GM_RESTRICT bias,
                                           const int32_t *GM_RESTRICT multiplier, void *scratch)
{
    (void)oy;
    gm_conv2d_s8_avx2_row(p, p->out_width, y, rows, w, bias, multiplier, scratch);
}

void gm_conv2d_s8_avx2_rows(const gm_conv2d_s8_avx2_t *p, int8_t *y, int32_t oy,
                            const void *const *rows, const int16_t *GM_RESTRICT w,
                            const int32_t *GM_RESTRICT bias, const int32_t *GM_RESTRICT multiplier,
                            void *scratch);

#ifdef __cplusplus
}
#endif

#endif
