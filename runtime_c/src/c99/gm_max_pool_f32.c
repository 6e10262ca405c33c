/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_max_pool_f32.h"

GM_KERNEL void gm_max_pool_f32(const gm_max_pool_f32_t *p, float *y, const float *x,
                               void *GM_RESTRICT scratch)
{
    gm_max_pool_f32_core(p, y, x, scratch);
}
