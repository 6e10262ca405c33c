/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_conv_transpose2d_f32.h"

GM_KERNEL void gm_conv_transpose2d_f32(const gm_conv_transpose2d_f32_t *p, float *GM_RESTRICT y,
                                       const float *GM_RESTRICT x, const float *GM_RESTRICT w,
                                       const float *GM_RESTRICT bias, void *GM_RESTRICT scratch)
{
    gm_conv_transpose2d_f32_core(p, y, x, w, bias, scratch);
}
