/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_depthwise_f32.h"

GM_KERNEL void gm_depthwise_f32(const gm_depthwise_f32_t *p, float *y, const float *x,
                                const float *GM_RESTRICT w, const float *GM_RESTRICT bias,
                                void *GM_RESTRICT scratch)
{
    gm_depthwise_f32_core(p, y, x, w, bias, scratch);
}
