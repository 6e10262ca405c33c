/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_depthwise_s8_scan.h"

GM_KERNEL void gm_depthwise_s8_scan(const gm_depthwise_s8_t *p, int8_t *GM_RESTRICT y, int32_t iy,
                                    const int8_t *GM_RESTRICT row, const int8_t *GM_RESTRICT w,
                                    const int32_t *GM_RESTRICT bias,
                                    const int32_t *GM_RESTRICT multiplier, void *GM_RESTRICT sums)
{
    gm_depthwise_s8_scan_core(p, y, iy, row, w, bias, multiplier, sums);
}
