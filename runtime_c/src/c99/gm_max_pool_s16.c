/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_max_pool_s16.h"

GM_KERNEL void gm_max_pool_s16(const gm_max_pool_s16_t *p, int16_t *y, const int16_t *x,
                               void *GM_RESTRICT scratch)
{
    gm_max_pool_s16_core(p, y, x, scratch);
}
