/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_average_pool_s16.h"

GM_KERNEL void gm_average_pool_s16(const gm_average_pool_s16_t *p, int16_t *y, const int16_t *x,
                                   const int32_t *GM_RESTRICT multiplier, void *GM_RESTRICT scratch)
{
    gm_average_pool_s16_core(p, y, x, multiplier, scratch);
}
