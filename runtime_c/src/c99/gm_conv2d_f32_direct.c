/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_conv2d_f32_direct.h"

GM_KERNEL void gm_conv2d_f32_direct(const gm_conv2d_f32_direct_t *p, float *GM_RESTRICT y,
                                    const float *GM_RESTRICT x, const float *GM_RESTRICT w,
                                    const float *GM_RESTRICT bias)
{
    gm_conv2d_f32_direct_core(p, y, x, w, bias);
}
