/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_depthwise_f32_fpu.h"

GM_KERNEL void gm_depthwise_f32_fpu(const gm_depthwise_f32_fpu_t *p, float *y, const float *x,
                                    const float *w, const float *bias, void *scratch)
{
    gm_depthwise_f32_fpu_core(p, y, x, w, bias, scratch);
}
