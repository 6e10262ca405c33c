/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_sample_f32.h"

GM_KERNEL void gm_sample_f32(const gm_sample_f32_t *p, float *GM_RESTRICT y,
                             const float *GM_RESTRICT x, const float *GM_RESTRICT at)
{
    gm_sample_f32_core(p, y, x, at);
}
