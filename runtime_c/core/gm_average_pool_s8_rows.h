/* SPDX-License-Identifier: Apache-2.0
 * One row of averages over windows, int8, from rows that lie anywhere. */
#ifndef GM_AVERAGE_POOL_S8_ROWS_H
#define GM_AVERAGE_POOL_S8_ROWS_H

#include "gm_average_pool_s8.h"

#ifdef __cplusplus
extern "C" {
#endif

/* rows: kernel_height rows of x, NULL for padding; multiplier as for gm_average_pool_s8. y may lie
 * over a row of x that is not needed afterwards, as far as each output pixel ends before the first
 * input pixel of its window. */
GM_INLINE void gm_average_pool_s8_rows_core(const gm_average_pool_s8_t *p, int8_t *y, int32_t oy,
                                            const void *const *rows,
                                            const int32_t *GM_RESTRICT multiplier)
{
    const int32_t first = oy * p->stride_height - p->pad_top;
    const int32_t counted = gm_average_pool_counted(first, p->kernel_height, p->dilation_height,
                                                    -p->count_top, p->height + p->count_bottom);
    gm_average_pool_row(p, 1, y, rows, counted, multiplier);
}

void gm_average_pool_s8_rows(const gm_average_pool_s8_t *p, int8_t *y, int32_t oy,
                             const void *const *rows, const int32_t *GM_RESTRICT multiplier);

#ifdef __cplusplus
}
#endif

#endif
