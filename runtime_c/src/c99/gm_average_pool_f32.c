/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_average_pool_f32.h"

GM_KERNEL void gm_average_pool_f32(const gm_average_pool_f32_t *p, float *y, const float *x,
                                   void *GM_RESTRICT scratch)
{
    gm_average_pool_f32_core(p, y, x, scratch);
}
