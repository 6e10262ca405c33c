/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_average_pool_s8.h"

GM_KERNEL void gm_average_pool_s8(const gm_average_pool_s8_t *p, int8_t *y, const int8_t *x,
                                  const int32_t *GM_RESTRICT multiplier, void *GM_RESTRICT scratch)
{
    gm_average_pool_s8_core(p, y, x, multiplier, scratch);
}
