/* SPDX-License-Identifier: Apache-2.0
 * One row of averages over windows, float, from rows that lie anywhere. */
#ifndef GM_AVERAGE_POOL_F32_ROWS_H
#define GM_AVERAGE_POOL_F32_ROWS_H

#include "gm_average_pool_f32.h"

#ifdef __cplusplus
extern "C" {
#endif

/* rows: kernel_height rows of x, NULL for padding. y may lie over a row of x that is not needed
 * afterwards, as far as each output pixel ends before the first input pixel of its window. */
GM_INLINE void gm_average_pool_f32_rows_core(const gm_average_pool_f32_t *p, float *y, int32_t oy,
                                             const void *const *rows)
{
    const int32_t first = oy * p->stride_height - p->pad_top;
    const int32_t counted = gm_average_pool_f32_counted(first, p->kernel_height, p->dilation_height,
                                                        -p->count_top, p->height + p->count_bottom);
    gm_average_pool_f32_row(p, y, rows, counted);
}

void gm_average_pool_f32_rows(const gm_average_pool_f32_t *p, float *y, int32_t oy,
                              const void *const *rows);

#ifdef __cplusplus
}
#endif

#endif
