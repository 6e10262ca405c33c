/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_depthwise_f32_avx2.h"

GM_KERNEL void gm_depthwise_f32_avx2(const gm_depthwise_f32_avx2_t *p, float *y, const float *x,
                                     const float *w, const float *bias)
{
    gm_depthwise_f32_avx2_core(p, y, x, w, bias);
}
