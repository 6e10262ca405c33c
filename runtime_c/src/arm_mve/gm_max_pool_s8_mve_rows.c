/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_max_pool_s8_mve_rows.h"

GM_KERNEL void gm_max_pool_s8_mve_rows(const gm_max_pool_s8_mve_t *p, int8_t *y, int32_t oy,
                                       const void *const *rows)
{
    gm_max_pool_s8_mve_rows_core(p, y, oy, rows);
}
