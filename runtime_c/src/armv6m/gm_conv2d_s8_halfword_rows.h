/* SPDX-License-Identifier: Apache-2.0
 * One row of a convolution, int8, for Armv6-M, from rows that lie anywhere. */
#ifndef GM_CONV2D_S8_HALFWORD_ROWS_H
#define GM_CONV2D_S8_HALFWORD_ROWS_H

#include "gm_conv2d_s8_halfword.h"

#ifdef __cplusplus
extern "C" {
#endif

/* rows: kernel_height rows of x, NULL for padding; w and scratch as for gm_conv2d_s8_halfword.
 */
GM_INLINE void gm_conv2d_s8_halfword_rows_core(const gm_conv2d_s8_halfword_t *p, int8_t *y,
                                               int32_t oy, const void *const *rows,
                                               const int32_t *w, void *scratch)
{
    (void)oy;
    gm_conv2d_s8_halfword_row(p, p->out_width, y, rows, w, scratch);
}

void gm_conv2d_s8_halfword_rows(const gm_conv2d_s8_halfword_t *p, int8_t *y, int32_t oy,
                                const void *const *rows, const int32_t *w, void *scratch);

#ifdef __cplusplus
}
#endif

#endif
