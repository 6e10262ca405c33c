/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_max_pool_s8_mve.h"

GM_KERNEL void gm_max_pool_s8_mve(const gm_max_pool_s8_mve_t *p, int8_t *y, const int8_t *x)
{
    gm_max_pool_s8_mve_core(p, y, x);
}
