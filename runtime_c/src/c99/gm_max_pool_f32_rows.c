/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_max_pool_f32_rows.h"

GM_KERNEL void gm_max_pool_f32_rows(const gm_max_pool_f32_t *p, float *y, int32_t oy,
                                    const void *const *rows)
{
    gm_max_pool_f32_rows_core(p, y, oy, rows);
}
