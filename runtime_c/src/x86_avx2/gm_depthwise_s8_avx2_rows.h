/* SPDX-License-Identifier: Apache-2.0
 * One row of a depthwise convolution, int8, for AVX2, from rows that lie anywhere. */
#ifndef GM_DEPTHWISE_S8_AVX2_ROWS_H
#define GM_DEPTHWISE_S8_AVX2_ROWS_H

#include "gm_depthwise_s8_avx2.h"

#ifdef __cplusplus
extern "C" {
#endif

/* rows: kernel_height rows of x, NULL for padding; w and scratch as for gm_depthwise_s8_avx2. */
GM_INLINE void gm_depthwise_s8_avx2_rows_core(const gm_depthwise_s8_avx2_t *p, int8_t *y,
                                              int32_t oy, const void *const *rows, const int32_t *w,
                                              void *scratch)
{
    (void)oy;
    gm_depthwise_s8_avx2_row(p, y, rows, w, scratch);
}

void gm_depthwise_s8_avx2_rows(const gm_depthwise_s8_avx2_t *p, int8_t *y, int32_t oy,
                               const void *const *rows, const int32_t *w, void *scratch);

#ifdef __cplusplus
}
#endif

#endif
