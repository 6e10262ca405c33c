/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_average_pool_f32_scan.h"

GM_KERNEL void gm_average_pool_f32_scan(const gm_average_pool_f32_t *p, float *GM_RESTRICT y,
                                        int32_t iy, const float *GM_RESTRICT row,
                                        void *GM_RESTRICT sums)
{
    gm_average_pool_f32_scan_core(p, y, iy, row, sums);
}
