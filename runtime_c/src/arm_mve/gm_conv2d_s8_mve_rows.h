/* SPDX-License-Identifier: Apache-2.0
 * One row of a convolution, int8, for MVE, from rows that lie anywhere. */
#ifndef GM_CONV2D_S8_MVE_ROWS_H
#define GM_CONV2D_S8_MVE_ROWS_H

#include "gm_conv2d_s8_mve.h"

#ifdef __cplusplus
extern "C" {
#endif

/* rows: kernel_height rows of x, NULL for padding; w and scratch as for gm_conv2d_s8_mve. Both
 * windows of two pixels are read before their results are written. */
GM_INLINE void gm_conv2d_s8_mve_rows_core(const gm_conv2d_s8_mve_t *p, int8_t *y, int32_t oy,
                                          const void *const *rows, const int32_t *w, void *scratch)
{
    (void)oy;
    gm_conv2d_s8_mve_row(p, p->out_width, y, rows, (const int8_t *)(const void *)w, scratch);
}

void gm_conv2d_s8_mve_rows(const gm_conv2d_s8_mve_t *p, int8_t *y, int32_t oy,
                           const void *const *rows, const int32_t *w, void *scratch);

#ifdef __cplusplus
}
#endif

#endif
