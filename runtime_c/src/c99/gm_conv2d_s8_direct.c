/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_conv2d_s8_direct.h"

GM_KERNEL void gm_conv2d_s8_direct(const gm_conv2d_s8_direct_t *p, int8_t *GM_RESTRICT y,
                                   const int8_t *GM_RESTRICT x, const int8_t *GM_RESTRICT w,
                                   const int32_t *GM_RESTRICT bias,
                                   const int32_t *GM_RESTRICT multiplier)
{
    gm_conv2d_s8_direct_core(p, y, x, w, bias, multiplier);
}
