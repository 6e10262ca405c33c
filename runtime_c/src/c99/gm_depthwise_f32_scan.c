/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_depthwise_f32_scan.h"

GM_KERNEL void gm_depthwise_f32_scan(const gm_depthwise_f32_t *p, float *GM_RESTRICT y, int32_t iy,
                                     const float *GM_RESTRICT row, const float *GM_RESTRICT w,
                                     const float *GM_RESTRICT bias, void *GM_RESTRICT sums)
{
    gm_depthwise_f32_scan_core(p, y, iy, row, w, bias, sums);
}
