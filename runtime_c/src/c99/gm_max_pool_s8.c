/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_max_pool_s8.h"

GM_KERNEL void gm_max_pool_s8(const gm_max_pool_s8_t *p, int8_t *y, const int8_t *x,
                              void *GM_RESTRICT scratch)
{
    gm_max_pool_s8_core(p, y, x, scratch);
}
