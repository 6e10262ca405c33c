/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_max_pool_indices_f32.h"

GM_KERNEL void gm_max_pool_indices_f32(const gm_max_pool_indices_f32_t *p, float *GM_RESTRICT y,
                                       int64_t *GM_RESTRICT indices, const float *GM_RESTRICT x)
{
    gm_max_pool_indices_f32_core(p, y, indices, x);
}
