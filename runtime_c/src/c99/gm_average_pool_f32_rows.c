/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_average_pool_f32_rows.h"

GM_KERNEL void gm_average_pool_f32_rows(const gm_average_pool_f32_t *p, float *y, int32_t oy,
                                        const void *const *rows)
{
    gm_average_pool_f32_rows_core(p, y, oy, rows);
}
