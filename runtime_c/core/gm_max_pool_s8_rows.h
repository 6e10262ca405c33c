/* SPDX-License-Identifier: Apache-2.0
 * One row of maxima over windows, int8, from rows that lie anywhere. */
#ifndef GM_MAX_POOL_S8_ROWS_H
#define GM_MAX_POOL_S8_ROWS_H

#include "gm_max_pool_s8.h"

#ifdef __cplusplus
extern "C" {
#endif

/* rows: kernel_height rows of x, NULL for padding. y may lie over a row of x that is not needed
 * afterwards, as far as each output pixel ends before the first input pixel of its window. */
GM_INLINE void gm_max_pool_s8_rows_core(const gm_max_pool_s8_t *p, int8_t *y, int32_t oy,
                                        const void *const *rows)
{
    (void)oy;
    gm_max_pool_row(p, 1, y, rows);
}

void gm_max_pool_s8_rows(const gm_max_pool_s8_t *p, int8_t *y, int32_t oy, const void *const *rows);

#ifdef __cplusplus
}
#endif

#endif
