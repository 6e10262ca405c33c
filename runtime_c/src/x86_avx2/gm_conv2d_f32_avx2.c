/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_conv2d_f32_avx2.h"

GM_KERNEL void gm_conv2d_f32_avx2(const gm_conv2d_f32_avx2_t *p, float *y, const float *x,
                                  const float *w, const float *bias, void *scratch)
{
    gm_conv2d_f32_avx2_core(p, y, x, w, bias, scratch);
}
