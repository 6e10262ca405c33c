/* SPDX-License-Identifier: Apache-2.0
 * One row of maxima over windows, int8, for MVE, from rows that lie anywhere. */
#ifndef GM_MAX_POOL_S8_MVE_ROWS_H
#define GM_MAX_POOL_S8_MVE_ROWS_H

#include "gm_max_pool_s8_mve.h"

#ifdef __cplusplus
extern "C" {
#endif

/* rows: kernel_height rows of x, NULL for padding. */
GM_INLINE void gm_max_pool_s8_mve_rows_core(const gm_max_pool_s8_mve_t *p, int8_t *y, int32_t oy,
                                            const void *const *rows)
{
    (void)oy;
    gm_max_pool_s8_mve_row(p, y, rows);
}

void gm_max_pool_s8_mve_rows(const gm_max_pool_s8_mve_t *p, int8_t *y, int32_t oy,
                             const void *const *rows);

#ifdef __cplusplus
}
#endif

#endif
