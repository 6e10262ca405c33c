/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_conv2d_s8_avx2.h"

GM_KERNEL void gm_conv2d_s8_avx2(const gm_conv2d_s8_avx2_t *p, int8_t *y, const int8_t *x,
                                 const int16_t *GM_RESTRICT w, const int32_t *GM_RESTRICT bias,
                                 const int32_t *GM_RESTRICT multiplier, void *scratch)
{
    gm_conv2d_s8_avx2_core(p, y, x, w, bias, multiplier, scratch);
}
