/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_dense_f32.h"

GM_KERNEL void gm_dense_f32(const gm_dense_f32_t *p, float *GM_RESTRICT y,
                            const float *GM_RESTRICT x, const float *GM_RESTRICT w,
                            const float *GM_RESTRICT bias)
{
    gm_dense_f32_core(p, y, x, w, bias);
}
